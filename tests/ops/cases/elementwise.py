"""Functions of one value, binary operators in every broadcast, and chains of both."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.support.case import Array, Case
from tflite_vk.ir.attributes import (
    BinaryAttributes,
    GeluAttributes,
    LeakyReluAttributes,
    NoAttributes,
)
from tflite_vk.testing.model_writer import ModelWriter

_POSITIVE = {"LOG", "SQRT", "RSQRT", "POW"}
_BINARY_ATTRIBUTES = {"ADD", "SUB", "MUL", "DIV"}

_UNARY = (
    "ABS", "CEIL", "COS", "ELU", "EXP", "FLOOR", "HARD_SWISH", "LOG", "LOGISTIC", "NEG", "RELU", "RELU6",
    "RELU_0_TO_1", "RELU_N1_TO_1", "ROUND", "RSQRT", "SIGN", "SIN", "SQRT", "SQUARE", "TANH",
)  # fmt: skip

_BROADCASTS: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((1, 4, 5, 3), (1, 4, 5, 3)),
    ((1, 10, 1), (1, 10, 3)),
    ((1, 10, 3), (3,)),
    ((3,), (1, 10, 3)),
    ((1, 7, 1, 5), (1, 1, 6, 5)),
    ((1, 1, 1, 6), (1, 5, 3, 1)),
    ((1, 4, 6, 7), (4, 6, 7)),
    ((1, 5, 7, 3), (1, 1, 1, 1)),
    ((), (2, 3)),
    ((2, 3, 4, 5), (2, 1, 4, 5)),
    ((2, 4, 4, 6), (2, 1, 1, 6)),
    ((1, 98, 8), (98, 8)),
    ((2, 1, 3, 1, 5), (4, 1, 2, 1)),
)


def _unary(
    op: str, shape: tuple[int, ...], attributes: object = None
) -> Callable[[ModelWriter], None]:
    def build(w: ModelWriter) -> None:
        w.output(w.op(op, [w.input(shape)], [shape], attributes or NoAttributes()))  # type: ignore[arg-type]

    return build


def _binary(
    op: str, a: tuple[int, ...], b: tuple[int, ...], const: int | None
) -> Callable[[ModelWriter], None]:
    def build(w: ModelWriter) -> None:
        rng = np.random.default_rng(7)
        operands = [
            w.const(rng.uniform(0.5, 2.0, shape).astype(np.float32))
            if const == i
            else w.input(shape)
            for i, shape in enumerate((a, b))
        ]
        out = np.broadcast_shapes(a, b)
        attributes = BinaryAttributes() if op in _BINARY_ATTRIBUTES else None
        w.output(w.op(op, operands, [out], attributes))

    return build


def _every_magnitude(rng: np.random.Generator) -> dict[int, Array]:
    """Floats of any exponent, whole quarters of a turn, infinities and NaN."""
    x = rng.uniform(-1, 1, (9, 100)) * 2.0 ** rng.integers(-20, 128, (9, 100))
    x[0] = np.arange(-50, 50) * np.pi / 2
    x[1] = rng.integers(5000, 6000, 100) * np.pi / 2
    x[2, :4] = [np.inf, -np.inf, np.nan, 0]
    return {0: x.astype(np.float32)}


def _near_one(rng: np.random.Generator) -> dict[int, Array]:
    distance = rng.choice([-1, 1], (2, 99)) * 2.0 ** rng.uniform(-23, -1, (2, 99))
    return {0: (1 + distance).astype(np.float32)}


def _label(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "scalar"


CASES = [
    Case(f"{op}_{_label(shape)}", _unary(op, shape), low=0.1 if op in _POSITIVE else -9.0, high=9.0)
    for op in _UNARY
    for shape in ((1, 5, 7, 3), (113,))
]
CASES += [
    Case(f"{op}_every_magnitude", _unary(op, (9, 100)), inputs=_every_magnitude,
         rtol=1e-6, atol_of_scale=1e-7, nan_equal=True,
         why="every argument is as exact as a small one")
    for op in ("SIN", "COS")
]  # fmt: skip
CASES += [
    Case("LOG_near_one", _unary("LOG", (2, 99)), inputs=_near_one, rtol=1e-6, atol_of_scale=0,
         why="a logarithm near 0 has as many digits as any other"),
]  # fmt: skip
CASES += [
    Case("GELU_exact", _unary("GELU", (3, 37), GeluAttributes()), low=-5, high=5),
    Case("GELU_tanh", _unary("GELU", (3, 37), GeluAttributes(approximate=True)), low=-5, high=5),
    Case("LEAKY_RELU", _unary("LEAKY_RELU", (3, 37), LeakyReluAttributes(alpha=0.3))),
    Case("TANH_large", _unary("TANH", (4, 5)), low=-1000.0, high=1000.0),
    Case("LOGISTIC_large", _unary("LOGISTIC", (4, 5)), low=-1000.0, high=1000.0),
    Case("RELU_large", _unary("RELU", (1, 1024, 1025, 2))),
]
CASES += [
    Case(
        f"{op}_{_label(a)}_{_label(b)}",
        _binary(op, a, b, None),
        low=0.5 if op in ("DIV", "POW", "FLOOR_DIV", "FLOOR_MOD") else -2.0,
    )
    for op in ("ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE")
    for a, b in _BROADCASTS
    if max(len(a), len(b)) <= 4 or op in ("ADD", "MUL")
]
CASES += [
    Case(f"{op}_const{const}_{_label(a)}_{_label(b)}", _binary(op, a, b, const), low=0.5)
    for op in ("SUB", "DIV", "POW")
    for const in (0, 1)
    for a, b in (
        ((3,), (1, 4, 4, 3)),
        ((1, 4, 4, 3), (1, 4, 4, 3)),
        ((), (2, 5)),
        ((1, 1, 1, 1), (1, 3, 5, 2)),
    )
]
