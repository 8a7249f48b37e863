"""SOFTMAX, LOG_SOFTMAX, L2_NORMALIZATION: ranks, row lengths, and values that overflow a naive kernel."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.support.case import Array, Case
from tflite_vk.ir.attributes import Attributes, BinaryAttributes, SoftmaxAttributes
from tflite_vk.testing.model_writer import ModelWriter

_SHAPES: tuple[tuple[int, ...], ...] = (
    (5,),
    (1, 1),
    (3, 1),
    (1, 10, 3),
    (1, 7, 7, 21),
    (2, 113),
    (37, 37),
    (3, 1001),
    (2, 3, 5, 4),
    (2, 1, 3, 2, 2, 7),
    (1, 5003),
)


def _rows(
    op: str, shape: tuple[int, ...], a: Attributes | None = None
) -> Callable[[ModelWriter], None]:
    if a is None and op == "SOFTMAX":
        a = SoftmaxAttributes()
    if a is None and op == "L2_NORMALIZATION":
        a = BinaryAttributes()

    def build(w: ModelWriter) -> None:
        w.output(w.op(op, [w.input(shape)], [shape], a))

    return build


def _fixed(values: object) -> Callable[[np.random.Generator], dict[int, Array]]:
    return lambda rng: {0: np.asarray(values, np.float32)}


def _name(op: str, shape: tuple[int, ...]) -> str:
    return f"{op}_{'x'.join(map(str, shape))}"


def _large(shape: tuple[int, ...]) -> Callable[[np.random.Generator], dict[int, Array]]:
    return lambda rng: {0: (rng.uniform(-1, 1, shape) * 1e4).astype(np.float32)}


_INF = np.inf
_EXTREME = [[151, 150, -1e9, 0], [-1e9] * 4, [1e4, -1e4, 9999, 9998], [88, 89, 90, 1000]]
_INFINITE = [[-_INF, 0, 1, 2], [-_INF] * 4, [_INF, 0, 1, 2], [0, np.nan, 1, 2]]


def _scaled(w: ModelWriter) -> None:
    x = w.input((3, 37))
    y = w.op("SOFTMAX", [x], [(3, 37)], SoftmaxAttributes())
    w.output(w.op("MUL", [y, w.const(np.linspace(0.5, 2, 37).astype(np.float32))], [(3, 37)]))


def _dfl_head(w: ModelWriter) -> None:
    x = w.input((1, 16, 4, 21))
    order = w.const(np.array([0, 3, 2, 1], np.int32))
    t = w.op("TRANSPOSE", [x, order], [(1, 21, 4, 16)])
    y = w.op("SOFTMAX", [t], [(1, 21, 4, 16)], SoftmaxAttributes())
    w.output(w.op("TRANSPOSE", [y, order], [(1, 16, 4, 21)]))


CASES = [
    Case(_name(op, shape), _rows(op, shape), low=-9.0, high=9.0)
    for op in ("SOFTMAX", "LOG_SOFTMAX")
    for shape in _SHAPES
]
CASES += [
    Case(
        f"SOFTMAX_beta_{beta}",
        _rows("SOFTMAX", (3, 37), SoftmaxAttributes(beta=beta)),
        low=-5.0,
        high=5.0,
    )
    for beta in (0.5, 2.5, 0.0, -1.0)
]
CASES += [
    Case(
        f"D4_{_name('SOFTMAX', shape)}_beta{beta:g}",
        _rows("SOFTMAX", shape, SoftmaxAttributes(beta=beta)),
    )
    for shape in ((1, 1917, 2), (1, 10, 3), (1, 7, 7, 21), (5,))
    for beta in (1.0, 0.3)
]
CASES += [
    Case("D5_SOFTMAX_H_differs_from_C", _rows("SOFTMAX", (1, 6, 3, 5))),
    Case("D7_SOFTMAX_extreme", _rows("SOFTMAX", (4, 4)), inputs=_fixed(_EXTREME)),
    Case("D7_LOG_SOFTMAX_extreme", _rows("LOG_SOFTMAX", (4, 4)), inputs=_fixed(_EXTREME)),
    Case("D7_SOFTMAX_infinite", _rows("SOFTMAX", (4, 4)), inputs=_fixed(_INFINITE)),
    Case(
        "D7_SOFTMAX_masked_rows_of_113",
        _rows("SOFTMAX", (3, 113)),
        inputs=_fixed(np.full((3, 113), -1e9)),
    ),
    Case(
        "SOFTMAX_of_1e4", _rows("SOFTMAX", (5, 1001)), inputs=_large((5, 1001)), atol_of_scale=1e-6
    ),
    Case("LOG_SOFTMAX_of_1e4", _rows("LOG_SOFTMAX", (5, 1001)), inputs=_large((5, 1001))),
    Case("I2_SOFTMAX_70000_rows", _rows("SOFTMAX", (1, 70000, 8))),
    Case("I3_SOFTMAX_70000_long_rows", _rows("SOFTMAX", (70000, 37))),
    Case("SOFTMAX_empty", _rows("SOFTMAX", (0, 5))),
    Case(
        "D9_TANH_of_large",
        _rows("TANH", (2, 3)),
        inputs=_fixed([[88, 89, 1000], [-88, -89, -1000]]),
    ),
    Case("SOFTMAX_fused_mul", _scaled),
    Case("D6_SOFTMAX_of_transposed", _dfl_head),
]
CASES += [
    Case(_name("L2_NORMALIZATION", shape), _rows("L2_NORMALIZATION", shape)) for shape in _SHAPES
]
CASES += [
    Case("E4_L2_NORMALIZATION_256", _rows("L2_NORMALIZATION", (1, 5)), inputs=_fixed([[256] * 5])),
    Case(
        "E4_L2_NORMALIZATION_3000", _rows("L2_NORMALIZATION", (1, 8)), inputs=_fixed([[3000] * 8])
    ),
    Case(
        "E4_L2_NORMALIZATION_zeros",
        _rows("L2_NORMALIZATION", (2, 7)),
        inputs=_fixed(np.zeros((2, 7))),
    ),
    Case(
        "E4_L2_NORMALIZATION_tiny",
        _rows("L2_NORMALIZATION", (1, 5)),
        inputs=_fixed([[1e-7, 0, 2e-7, 0, 0]]),
    ),
    Case(
        "L2_NORMALIZATION_RELU",
        _rows("L2_NORMALIZATION", (3, 37), BinaryAttributes(fused_activation_function="RELU")),
        expected=lambda x: [np.maximum(x / np.sqrt((x * x).sum(-1, keepdims=True)), 0)],
        why="LiteRT refuses a fused activation here",
    ),
]
