"""RNN, sequence RNNs in one and two directions, bidirectional LSTM, basic LSTM, SVDF."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.support.case import Array, Case
from tests.support.half import to_half
from tflite_vk.ir.attributes import (
    Activation,
    BidirectionalLstmAttributes,
    BidirectionalRnnAttributes,
    LstmAttributes,
    RnnAttributes,
    SvdfAttributes,
)
from tflite_vk.ir.graph import Quantization
from tflite_vk.testing.model_writer import ModelWriter

Build = Callable[[ModelWriter], None]


def _uniform(rng: np.random.Generator, *shape: int) -> Array:
    """Values that float16 holds, so small that a recurrence doesn't amplify rounding."""
    bound = 1.0 / np.sqrt(shape[-1])
    return to_half(rng.uniform(-bound, bound, shape))


class _Constants:
    """Random constants of a model."""

    def __init__(self, w: ModelWriter, *, hybrid: bool = False) -> None:
        self.w = w
        self.rng = np.random.default_rng(23)
        self.hybrid = hybrid

    def __call__(self, *shape: int) -> int:
        if self.hybrid and len(shape) == 2:
            values = self.rng.integers(-127, 128, shape).astype(np.int8)
            scale = float(np.float32(self.rng.uniform(0.5, 1) / (127 * np.sqrt(shape[-1]))))
            return self.w.const(values, quantization=Quantization((scale,), (0,)))
        return self.w.const(_uniform(self.rng, *shape))


def _rnn(
    batch: int,
    steps: int,
    inputs: int,
    units: int,
    activation: Activation = "TANH",
    *,
    time_major: bool = False,
    hybrid: bool = False,
    asymmetric: bool = False,
) -> Build:
    def build(w: ModelWriter) -> None:
        c = _Constants(w, hybrid=hybrid)
        leading = (batch,) if steps == 0 else (steps, batch) if time_major else (batch, steps)
        operands = [
            w.input((*leading, inputs)),
            c(units, inputs),
            c(units, units),
            c(units),
            w.variable((batch, units)),
        ]
        op = "RNN" if steps == 0 else "UNIDIRECTIONAL_SEQUENCE_RNN"
        a = RnnAttributes(
            fused_activation_function=activation,
            time_major=time_major,
            asymmetric_quantize_inputs=asymmetric,
        )
        w.output(w.op(op, operands, [(*leading, units)], a, version=3 if hybrid else 1))

    return build


def _bidirectional_rnn(units: tuple[int, int], *, merge: bool, time_major: bool) -> Build:
    def build(w: ModelWriter) -> None:
        c = _Constants(w)
        leading = (5, 2) if time_major else (2, 5)
        operands: list[int | None] = [w.input((*leading, 3))]
        for n in units:
            operands += [c(n, 3), c(n, n), c(n), w.variable((2, n))]
        operands += [None] * 3
        a = BidirectionalRnnAttributes(
            fused_activation_function="TANH", time_major=time_major, merge_outputs=merge
        )
        outs = [(*leading, sum(units))] if merge else [(*leading, n) for n in units]
        w.output(*w.multi_op("BIDIRECTIONAL_SEQUENCE_RNN", operands, outs, a))

    return build


def _bidirectional_lstm(
    cells: tuple[int, int],
    *,
    merge: bool,
    time_major: bool = False,
    coupled: bool = False,
    peephole: bool = False,
    projected: int = 0,
) -> Build:
    def build(w: ModelWriter) -> None:
        c = _Constants(w)
        leading = (4, 2) if time_major else (2, 4)
        operands: list[int | None] = [w.input((*leading, 3))]
        outputs = [projected or n for n in cells]
        for n, m in zip(cells, outputs, strict=True):
            skip = 1 if coupled else 0
            for shape, count in (((n, 3), 4), ((n, m), 4)):
                operands += [None] * skip + [c(*shape) for _ in range(count - skip)]
            operands += [None] * skip + [c(n) if peephole else None for _ in range(3 - skip)]
            operands += [None] * skip + [c(n) for _ in range(4 - skip)]
            operands += [c(m, n) if projected else None, c(m) if projected else None]
        for n, m in zip(cells, outputs, strict=True):
            operands += [w.variable((2, m)), w.variable((2, n))]
        operands += [None] * 9
        a = BidirectionalLstmAttributes(
            fused_activation_function="TANH", time_major=time_major, merge_outputs=merge
        )
        outs = [(*leading, sum(outputs))] if merge else [(*leading, m) for m in outputs]
        w.output(*w.multi_op("BIDIRECTIONAL_SEQUENCE_LSTM", operands, outs, a))

    return build


def _basic_lstm(
    batch: int, inputs: int, cells: int, *, read_scratch: bool = False, kept: bool = False
) -> Build:
    def build(w: ModelWriter) -> None:
        c = _Constants(w)
        x = w.input((batch, inputs))
        h, s = ((w.variable if kept else w.input)((batch, cells)) for _ in range(2))
        operands = [x, h, c(4 * cells, inputs + cells), c(4 * cells), s]
        outs = [(batch, cells), (batch, cells), (batch, inputs + cells), (batch, 4 * cells)]
        a = LstmAttributes(fused_activation_function="TANH", kernel_type="BASIC")
        results = w.multi_op("LSTM", operands, outs, a, version=2)
        w.output(*results[: 3 if read_scratch else 2])

    return build


def _svdf(
    batch: int,
    inputs: int,
    units: int,
    memory: int,
    rank: int,
    activation: Activation = "NONE",
    *,
    bias: bool = True,
    hybrid: bool = False,
    asymmetric: bool = False,
) -> Build:
    def build(w: ModelWriter) -> None:
        c = _Constants(w, hybrid=hybrid)
        filters = units * rank
        operands = [
            w.input((batch, inputs)),
            c(filters, inputs),
            c(filters, memory),
            c(units) if bias else None,
            w.variable((batch, filters * memory)),
        ]
        a = SvdfAttributes(
            fused_activation_function=activation, rank=rank, asymmetric_quantize_inputs=asymmetric
        )
        w.output(w.op("SVDF", operands, [(batch, units)], a, version=4 if hybrid else 1))

    return build


def _basic_step(inputs: int, cells: int) -> Callable[[Array, Array, Array], list[Array]]:
    def expected(x: Array, h: Array, s: Array) -> list[Array]:
        rng = np.random.default_rng(23)
        weights = _uniform(rng, 4 * cells, inputs + cells)
        bias = _uniform(rng, 4 * cells)
        gates = np.concatenate([x, h], 1).astype(np.float64) @ weights.T + bias
        enter, cell, forget, out = np.split(gates, 4, axis=1)
        sigmoid = lambda v: 1 / (1 + np.exp(-v))  # noqa: E731
        state = sigmoid(enter) * np.tanh(cell) + sigmoid(forget) * s
        return [(sigmoid(out) * np.tanh(state)).astype(np.float32), state.astype(np.float32)]

    return expected


CASES = [
    Case("RNN_plain", _rnn(2, 0, 5, 6)),
    Case("RNN_RELU", _rnn(3, 0, 37, 13, "RELU")),
    Case("UNIDIRECTIONAL_SEQUENCE_RNN_plain", _rnn(2, 5, 3, 7)),
    Case("UNIDIRECTIONAL_SEQUENCE_RNN_time_major", _rnn(3, 4, 6, 5, time_major=True)),
    Case("UNIDIRECTIONAL_SEQUENCE_RNN_wide", _rnn(1, 9, 37, 113)),
    Case("UNIDIRECTIONAL_SEQUENCE_RNN_RELU6", _rnn(1, 3, 4, 4, "RELU6")),
]
CASES += [
    Case(
        f"BIDIRECTIONAL_SEQUENCE_RNN_{'merged' if merge else 'apart'}{'_time_major' if time_major else ''}",
        _bidirectional_rnn((8, 5), merge=merge, time_major=time_major),
    )
    for merge in (False, True)
    for time_major in (False, True)
]
CASES += [
    Case(
        "BIDIRECTIONAL_SEQUENCE_RNN_merged_odd",
        _bidirectional_rnn((6, 5), merge=True, time_major=False),
        declined="6 forward outputs",
    ),
    Case("BIDIRECTIONAL_SEQUENCE_LSTM_apart", _bidirectional_lstm((6, 6), merge=False)),
    Case(
        "BIDIRECTIONAL_SEQUENCE_LSTM_merged_time_major",
        _bidirectional_lstm((8, 8), merge=True, time_major=True),
    ),
    Case(
        "BIDIRECTIONAL_SEQUENCE_LSTM_coupled_peephole",
        _bidirectional_lstm((6, 6), merge=False, coupled=True, peephole=True),
    ),
    Case(
        "BIDIRECTIONAL_SEQUENCE_LSTM_projected",
        _bidirectional_lstm((6, 6), merge=False, peephole=True, projected=4),
    ),
    Case(
        "LSTM_BASIC",
        _basic_lstm(2, 3, 5),
        expected=_basic_step(3, 5),
        why="LiteRT's reference resolver reads its states as variables",
    ),
    Case("LSTM_BASIC_kept", _basic_lstm(2, 3, 5, kept=True)),
    Case("LSTM_BASIC_kept_wide", _basic_lstm(3, 37, 24, kept=True)),
    Case("LSTM_BASIC_wide", _basic_lstm(3, 37, 24), expected=_basic_step(37, 24), why="as above"),
    Case(
        "LSTM_BASIC_scratch_is_read",
        _basic_lstm(2, 3, 5, read_scratch=True),
        declined="scratch output",
    ),
]
CASES += [
    Case("SVDF_rank1", _svdf(2, 3, 5, 7, 1)),
    Case("SVDF_rank2_RELU", _svdf(3, 6, 5, 10, 2, "RELU")),
    Case("SVDF_no_bias", _svdf(1, 37, 13, 4, 1, bias=False)),
    Case("SVDF_memory1", _svdf(2, 5, 6, 1, 1)),
]
CASES += [
    Case(f"hybrid_{name}{'_asymmetric' * asymmetric}", build)
    for asymmetric in (False, True)
    for name, build in {
        "RNN": _rnn(2, 0, 5, 6, hybrid=True, asymmetric=asymmetric),
        "UNIDIRECTIONAL_SEQUENCE_RNN": _rnn(2, 5, 3, 7, hybrid=True, asymmetric=asymmetric),
        "UNIDIRECTIONAL_SEQUENCE_RNN_time_major": _rnn(
            3, 4, 6, 5, "RELU6", time_major=True, hybrid=True, asymmetric=asymmetric
        ),
        "UNIDIRECTIONAL_SEQUENCE_RNN_wide": _rnn(1, 9, 37, 113, hybrid=True, asymmetric=asymmetric),
        "SVDF_rank1": _svdf(2, 3, 5, 7, 1, hybrid=True, asymmetric=asymmetric),
        "SVDF_rank2_RELU": _svdf(5, 6, 5, 10, 2, "RELU", hybrid=True, asymmetric=asymmetric),
        "SVDF_no_bias": _svdf(1, 37, 13, 4, 1, bias=False, hybrid=True, asymmetric=asymmetric),
    }.items()
]
