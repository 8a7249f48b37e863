"""int32 arithmetic, comparisons, logic."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from tests.ops.cases.elementwise import _BROADCASTS
from tests.ops.cases.reshape import label
from tests.support.case import Array, Case
from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import Attributes, BinaryAttributes, CastAttributes
from tflite_vk.testing.model_writer import ModelWriter

Shape = tuple[int, ...]
Build = Callable[[ModelWriter], None]

F32, I32, BOOL = DType.FLOAT32, DType.INT32, DType.BOOL

_ARITHMETIC = ("ADD", "SUB", "MUL", "DIV")
_DIVISIONS = {"DIV", "FLOOR_DIV", "FLOOR_MOD"}
_COMPARISONS = ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")

_EDGES = np.array([-7, -2, -1, 1, 2, 7, 1 << 20, -(1 << 20)], np.int32)


def _binary(
    op: str, a: Shape, b: Shape, dtype: DType, result: DType, attributes: Attributes | None = None
) -> Build:
    def build(w: ModelWriter) -> None:
        inputs = [w.input(shape, dtype=dtype) for shape in (a, b)]
        options = attributes or (BinaryAttributes() if op in _ARITHMETIC else None)
        w.output(w.op(op, inputs, [(np.broadcast_shapes(a, b), result)], options))

    return build


def _with_const(
    op: str, dtype: DType, result: DType, position: int, *, zero: bool = False
) -> Build:
    def build(w: ModelWriter) -> None:
        rng = np.random.default_rng(1)
        value = rng.integers(1, 9, (5,)).astype(dtype.numpy)
        value[3] *= not zero
        inputs = [w.input((3, 5), dtype=dtype), w.const(value)]
        options = BinaryAttributes() if op in _ARITHMETIC else None
        w.output(w.op(op, inputs[:: -1 if position == 0 else 1], [((3, 5), result)], options))

    return build


def _unary(op: str, shape: Shape, dtype: DType) -> Build:
    def build(w: ModelWriter) -> None:
        w.output(w.op(op, [w.input(shape, dtype=dtype)], [(shape, dtype)]))

    return build


def _divisors(
    a: Shape, b: Shape, dtype: DType = I32
) -> Callable[[np.random.Generator], Mapping[int, Array]]:
    """Dividends and divisors of both signs; no divisor is zero."""

    def inputs(rng: np.random.Generator) -> Mapping[int, Array]:
        return {
            0: np.asarray(rng.integers(-100, 100, a), dtype.numpy),
            1: np.asarray(rng.integers(1, 9, b) * rng.choice([-1, 1], b), dtype.numpy),
        }

    return inputs


def _close(
    a: Shape, b: Shape, dtype: DType
) -> Callable[[np.random.Generator], Mapping[int, Array]]:
    """Small whole numbers, so that many pairs are equal."""

    def inputs(rng: np.random.Generator) -> Mapping[int, Array]:
        return {i: rng.integers(-1, 2, s).astype(dtype.numpy) for i, s in enumerate((a, b))}

    return inputs


def _cast_of_comparison(w: ModelWriter) -> None:
    x, y = w.input((1, 5, 3)), w.input((1, 5, 3))
    less = w.op("LESS", [x, y], [((1, 5, 3), BOOL)])
    more = w.op("GREATER", [x, w.const(np.array(0.5, np.float32))], [((1, 5, 3), BOOL)])
    both = w.op("LOGICAL_OR", [less, more], [((1, 5, 3), BOOL)])
    w.output(less, w.op("CAST", [both], [(1, 5, 3)], CastAttributes(BOOL, F32)))


CASES = [
    Case(
        f"{op}_INT32_{label(a)}_{label(b)}",
        _binary(op, a, b, I32, I32),
        inputs=_divisors(a, b) if op in _DIVISIONS else None,
        exact=True,
    )
    for op in (*_ARITHMETIC, "MAXIMUM", "MINIMUM", "FLOOR_DIV", "FLOOR_MOD", "SQUARED_DIFFERENCE")
    for a, b in (
        _BROADCASTS if op == "ADD" else (((3, 37), (3, 37)), ((2, 1, 5), (3, 1)), ((), (2, 3)))
    )
    if max(len(a), len(b)) < 5
]
CASES += [
    Case(
        "ADD_INT32_rank_6",
        _binary("ADD", (2, 1, 3, 1, 2, 5), (4, 1, 2, 2, 1), I32, I32),
        exact=True,
        expected=lambda a, b: [a + b],
        why="BUILTIN_REF broadcasts fewer dimensions",
    ),
    Case(
        "POW_INT32",
        _binary("POW", (3, 5), (3, 5), I32, I32),
        inputs=lambda rng: {
            0: rng.integers(-9, 10, (3, 5)).astype(np.int32),
            1: rng.integers(0, 9, (3, 5)).astype(np.int32),
        },
        exact=True,
    ),
    Case(
        "MUL_INT32_wraps",
        _binary("MUL", (8,), (8,), I32, I32),
        inputs=lambda rng: {0: _EDGES * 4099, 1: _EDGES[::-1].copy()},
        exact=True,
    ),
    *(
        Case(
            f"{op}_{t.name}_{label(a)}_{label(b)}",
            _binary(op, a, b, t, t),
            inputs=_divisors(a, b, t),
            exact=True,
        )
        for op in ("FLOOR_DIV", "FLOOR_MOD")
        for t in (DType.INT8, DType.INT16)
        for a, b in (((3, 37), (3, 37)), ((2, 1, 5), (3, 1)), ((), (2, 3)))
    ),
    *(
        Case(
            f"{op}_{t.name}_constant_zero",
            _with_const(op, t, t, 1, zero=True),
            declined="its constant divisor has a zero",
        )
        for op, t in (
            ("DIV", I32),
            ("FLOOR_DIV", F32),
            ("FLOOR_DIV", I32),
            ("FLOOR_MOD", I32),
            ("FLOOR_MOD", DType.INT64),
            ("FLOOR_MOD", DType.INT8),
        )
    ),
    Case("POW_INT8", _binary("POW", (3, 5), (3, 5), DType.INT8, DType.INT8), declined="is INT8"),
    Case(
        "DIV_INT32_by_zero_does_not_trap",
        _binary("DIV", (4,), (4,), I32, I32),
        inputs=lambda rng: {
            0: np.array([7, -(1 << 31), 0, -7], np.int32),
            1: np.array([0, -1, 5, 2], np.int32),
        },
        expected=lambda a, b: [np.array([0, -(1 << 31), 0, -3], np.int32)],
        exact=True,
        why="TFLite stops with an error",
    ),
    *(
        Case(
            f"ADD_INT32_{activation}",
            _binary("ADD", (3, 5), (5,), I32, I32, BinaryAttributes(activation)),  # type: ignore[arg-type]
            exact=True,
        )
        for activation in ("RELU", "RELU6", "RELU_N1_TO_1")
    ),
    Case(
        "ADD_INT32_TANH",
        _binary("ADD", (3, 5), (5,), I32, I32, BinaryAttributes("TANH")),
        declined="fused activation TANH of INT32",
    ),
    *(
        Case(f"{op}_INT32_const_{i}", _with_const(op, I32, I32, i), exact=True,
             inputs=lambda rng: {0: rng.integers(1, 99, (3, 5)).astype(np.int32)})
        for op in ("SUB", "DIV", "FLOOR_MOD")
        for i in (0, 1)
    ),
    *(Case(f"{op}_INT32", _unary(op, (3, 37), I32), exact=True) for op in ("NEG", "ABS", "SIGN")),
    Case("EXP_INT32", _unary("EXP", (3, 37), I32), declined="INT32 (supported: FLOAT32)"),
]  # fmt: skip
CASES += [
    Case(
        f"{op}_{dtype.name}_{label(a)}_{label(b)}",
        _binary(op, a, b, dtype, BOOL),
        inputs=_close(a, b, dtype),
        exact=True,
    )
    for op in _COMPARISONS
    for dtype in (F32, I32)
    for a, b in (
        _BROADCASTS if op == "LESS" else (((3, 37), (3, 37)), ((2, 1, 5), (3, 1)), ((), (2, 3)))
    )
    if max(len(a), len(b)) < 5
]
CASES += [
    Case(f"{op}_BOOL", _binary(op, (2, 1, 5), (3, 1), BOOL, BOOL), exact=True)
    for op in ("EQUAL", "NOT_EQUAL")
]
CASES += [
    Case(f"{op}_{label(a)}_{label(b)}", _binary(op, a, b, BOOL, BOOL), exact=True)
    for op in ("LOGICAL_AND", "LOGICAL_OR")
    for a, b in (((3, 37), (3, 37)), ((2, 1, 5), (3, 1)), ((1, 4, 5, 3), (3,)), ((), (2, 3)))
]
CASES += [
    Case("LOGICAL_NOT", _unary("LOGICAL_NOT", (3, 37), BOOL), exact=True),
    Case("LESS_constant", _with_const("LESS", F32, BOOL, 0), exact=True, low=0, high=9),
    Case("GREATER_EQUAL_NaN", _binary("GREATER_EQUAL", (4,), (4,), F32, BOOL), exact=True,
         inputs=lambda rng: {0: np.array([np.nan, 1, np.inf, -np.inf], np.float32),
                             1: np.array([1, np.nan, np.inf, 0], np.float32)}),
    Case("comparisons_CAST", _cast_of_comparison, exact=True),
]  # fmt: skip
