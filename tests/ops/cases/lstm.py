"""UNIDIRECTIONAL_SEQUENCE_LSTM and LSTM: every optional part, alone and together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tests.support.case import Case
from tflite_vk.ir.attributes import Activation, LstmAttributes
from tflite_vk.ir.graph import Quantization
from tflite_vk.testing.model_writer import ModelWriter


@dataclass(frozen=True)
class Parts:
    """Sizes and optional parts of an LSTM."""

    batch: int = 2
    steps: int = 5
    inputs: int = 3
    cells: int = 6
    outputs: int = 0
    """0: as many as cells, without projection."""
    coupled: bool = False
    peephole: bool = False
    norm: bool = False
    projection_bias: bool = False
    time_major: bool = False
    cell_clip: float = 0.0
    proj_clip: float = 0.0
    activation: Activation = "TANH"
    hybrid: bool = False
    """int8 weights; values between the steps are quantized while running."""
    asymmetric: bool = False


def _lstm(parts: Parts, op: str = "UNIDIRECTIONAL_SEQUENCE_LSTM") -> Callable[[ModelWriter], None]:
    def build(w: ModelWriter) -> None:
        rng = np.random.default_rng(17)
        outputs = parts.outputs or parts.cells

        def random(*shape: int, quantized: bool = False) -> int:
            if parts.hybrid and (quantized or len(shape) == 2):
                values = rng.integers(-127, 128, shape).astype(np.int8)
                scale = float(np.float32(rng.uniform(0.5, 1) / 127))
                return w.const(values, quantization=Quantization((scale,), (0,)))
            return w.const(rng.uniform(-1, 1, shape).astype(np.float32))

        def gates(
            *shape: int, count: int = 4, enabled: bool = True, quantized: bool = False
        ) -> list[int | None]:
            given = [random(*shape, quantized=quantized) if enabled else None for _ in range(count)]
            return [None, *given[1:]] if parts.coupled else given

        if op == "LSTM":
            x = w.input((parts.batch, parts.inputs))
            result: tuple[int, ...] = (parts.batch, outputs)
        elif parts.time_major:
            x = w.input((parts.steps, parts.batch, parts.inputs))
            result = (parts.steps, parts.batch, outputs)
        else:
            x = w.input((parts.batch, parts.steps, parts.inputs))
            result = (parts.batch, parts.steps, outputs)
        inputs: list[int | None] = [
            x,
            *gates(parts.cells, parts.inputs),
            *gates(parts.cells, outputs),
            *gates(parts.cells, count=3, enabled=parts.peephole, quantized=True),
            *gates(parts.cells),
            random(outputs, parts.cells) if parts.outputs else None,
            random(outputs) if parts.projection_bias else None,
            w.variable((parts.batch, outputs)),
            w.variable((parts.batch, parts.cells)),
        ]
        if parts.norm or op != "LSTM":
            inputs += gates(parts.cells, enabled=parts.norm)
        a = LstmAttributes(
            fused_activation_function=parts.activation,
            cell_clip=parts.cell_clip,
            proj_clip=parts.proj_clip,
            time_major=parts.time_major and op != "LSTM",
            asymmetric_quantize_inputs=parts.asymmetric,
        )
        w.output(w.op(op, inputs, [result], a, version=3 if parts.hybrid else 1))

    return build


def _run_time_weights(w: ModelWriter) -> None:
    _lstm(Parts())(w)
    record = w.operators[-1]
    weights = w.input((6, 3))
    inputs = [weights if i == 2 else t for i, t in enumerate(record.inputs)]
    result = w.outputs.pop()
    w.operators.pop()
    w.op_into(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        [None if t < 0 else t for t in inputs],
        [result],
        record.attributes,
    )
    w.output(result)


_PARTS = {
    "plain": Parts(),
    "one_step": Parts(batch=1, steps=1),
    "wide": Parts(batch=1, steps=7, inputs=37, cells=113),
    "time_major": Parts(batch=3, time_major=True),
    "coupled": Parts(coupled=True),
    "peephole": Parts(peephole=True),
    "projection": Parts(outputs=5),
    "projection_bias": Parts(cells=5, outputs=9, projection_bias=True),
    "norm": Parts(norm=True),
    "cell_clip": Parts(cell_clip=0.3),
    "proj_clip": Parts(outputs=5, proj_clip=0.2),
    "coupled_peephole_norm_projection": Parts(
        coupled=True, peephole=True, norm=True, outputs=7, projection_bias=True
    ),
    "all": Parts(
        cells=37,
        peephole=True,
        norm=True,
        outputs=13,
        projection_bias=True,
        cell_clip=0.8,
        proj_clip=0.9,
        time_major=True,
    ),
    "relu": Parts(activation="RELU", cell_clip=2.0),
    "relu6": Parts(activation="RELU6"),
}

CASES = [
    Case(
        f"UNIDIRECTIONAL_SEQUENCE_LSTM_{name}",
        _lstm(parts),
        rtol=5e-4,
        why="errors add up over the steps",
    )
    if parts.norm
    else Case(f"UNIDIRECTIONAL_SEQUENCE_LSTM_{name}", _lstm(parts))
    for name, parts in _PARTS.items()
]
CASES += [
    Case(f"LSTM_{name}", _lstm(_PARTS[name], "LSTM"))
    for name in ("plain", "coupled", "peephole", "projection_bias", "norm", "cell_clip")
]
CASES += [
    Case(
        "LSTM_20_inputs_run_time_weights",
        _run_time_weights,
        declined="input 2 is a run-time FLOAT32",
    )
]
CASES += [
    Case(
        f"hybrid_UNIDIRECTIONAL_SEQUENCE_LSTM_{name}{'_asymmetric' * asymmetric}",
        _lstm(replace(parts, hybrid=True, asymmetric=asymmetric)),
    )
    for name, parts in _PARTS.items()
    for asymmetric in (False, True)
]
CASES += [
    Case(f"hybrid_LSTM_{name}", _lstm(replace(_PARTS[name], hybrid=True), "LSTM"))
    for name in ("plain", "coupled", "peephole", "projection_bias", "norm", "cell_clip")
]
