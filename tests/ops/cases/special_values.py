"""NaN, infinities and both zeros: what C says of a function there holds on every driver."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.support.case import Array, Case
from tflite_vk.ir import attributes as ir
from tflite_vk.testing.model_writer import ModelWriter

VALUES = np.array(
    [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 100.0, -100.0, 0.125, -0.5, 7.0], np.float32
)
_UNARY: dict[str, ir.Attributes | None] = {
    **dict.fromkeys(
        [
            "ABS",
            "CEIL",
            "COS",
            "ELU",
            "EXP",
            "FLOOR",
            "HARD_SWISH",
            "LOG",
            "LOGISTIC",
            "NEG",
            "RELU",
            "RELU6",
            "RELU_0_TO_1",
            "RELU_N1_TO_1",
            "ROUND",
            "RSQRT",
            "SIGN",
            "SIN",
            "SQRT",
            "SQUARE",
            "TANH",
        ]
    ),
    "GELU": ir.GeluAttributes(),
    "LEAKY_RELU": ir.LeakyReluAttributes(0.25),
}
_PAIRS = np.repeat(VALUES, VALUES.size).reshape(VALUES.size, VALUES.size)


def _unary(op: str, a: ir.Attributes | None) -> Callable[[ModelWriter], None]:
    def build(w: ModelWriter) -> None:
        w.output(w.op(op, [w.input(VALUES.shape)], [VALUES.shape], a))

    return build


def _binary(op: str, *, fused: bool) -> Callable[[ModelWriter], None]:
    def build(w: ModelWriter) -> None:
        x, y = w.input(_PAIRS.shape), w.input(_PAIRS.shape)
        if fused:
            x = w.op("NEG", [x], [_PAIRS.shape])
        w.output(w.op(op, [x, y], [_PAIRS.shape]))

    return build


def _rows(op: str, a: ir.Attributes | None) -> Callable[[ModelWriter], None]:
    def build(w: ModelWriter) -> None:
        w.output(w.op(op, [w.input((5, 5))], [(5, 5)], a))

    return build


def _odd_rows(rng: np.random.Generator) -> dict[int, Array]:
    """A row with a NaN, one with each infinity, one of zeros."""
    rows = rng.uniform(-2, 2, (5, 5)).astype(np.float32)
    rows[0, 1], rows[1, 2], rows[2, 3], rows[3] = np.nan, np.inf, -np.inf, 0.0
    return {0: rows}


CASES = [
    Case(f"{op}_special", _unary(op, a), inputs=lambda rng: {0: VALUES}) for op, a in _UNARY.items()
]
CASES += [
    Case(f"{op}_special{'_fused' if fused else ''}", _binary(op, fused=fused), inputs=lambda rng: {0: _PAIRS, 1: _PAIRS.T})
    for op in ("ATAN2", "MAXIMUM", "MINIMUM", "POW", "SQUARED_DIFFERENCE")
    for fused in (False, True)
]  # fmt: skip
CASES += [
    Case(f"{op}_special", _rows(op, a), inputs=_odd_rows)
    for op, a in (
        ("SOFTMAX", ir.SoftmaxAttributes(1.0)),
        ("LOG_SOFTMAX", None),
        ("L2_NORMALIZATION", ir.BinaryAttributes()),
    )
]
