"""SELECT, SELECT_V2, CAST."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.ops.cases.reshape import label
from tests.support.case import Case
from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import CastAttributes
from tflite_vk.testing.model_writer import ModelWriter

Shape = tuple[int, ...]
Build = Callable[[ModelWriter], None]

F32, I32, U32, BOOL = DType.FLOAT32, DType.INT32, DType.UINT32, DType.BOOL


def _select(op: str, condition: Shape, a: Shape, b: Shape, dtype: DType = F32) -> Build:
    result = a if op == "SELECT" else np.broadcast_shapes(condition, a, b)

    def build(w: ModelWriter) -> None:
        inputs = [w.input(condition, dtype=BOOL), w.input(a, dtype=dtype), w.input(b, dtype=dtype)]
        w.output(w.op(op, inputs, [(result, dtype)]))

    return build


def _select_constants(w: ModelWriter) -> None:
    x = w.input((3, 5))
    c = w.op("GREATER", [x, w.const(np.zeros((5,), np.float32))], [((3, 5), BOOL)])
    w.output(w.op("SELECT_V2", [c, x, w.const(np.array(-1, np.float32))], [(3, 5)]))


def _float_condition(w: ModelWriter) -> None:
    w.output(w.op("SELECT_V2", [w.input((3,)), w.input((3,)), w.input((3,))], [(3,)]))


def _cast(shape: Shape, source: DType, target: DType) -> Build:
    def build(w: ModelWriter) -> None:
        x = w.input(shape, dtype=source)
        w.output(w.op("CAST", [x], [(shape, target)], CastAttributes(source, target)))

    return build


def _cast_chain(w: ModelWriter) -> None:
    x = w.input((2, 3, 5))
    i = w.op("CAST", [x], [((2, 3, 5), I32)], CastAttributes(F32, I32))
    b = w.op("CAST", [i], [((2, 3, 5), BOOL)], CastAttributes(I32, BOOL))
    again = w.op("CAST", [b], [((2, 3, 5), I32)], CastAttributes(BOOL, I32))
    w.output(again, w.op("CAST", [again], [(2, 3, 5)], CastAttributes(I32, F32)))


CASES = [
    Case(f"SELECT_{'_'.join(map(label, shapes))}", _select("SELECT", *shapes), exact=True)
    for shapes in (
        ((3, 5), (3, 5), (3, 5)),
        ((), (3, 5), (3, 5)),
        ((7,), (7, 5), (7, 5)),
        ((7,), (7, 3, 5), (7, 3, 5)),
        ((7,), (7, 3, 8, 4), (7, 3, 8, 4)),
        ((5,), (5,), (5,)),
    )
]
CASES += [
    Case(f"SELECT_V2_{'_'.join(map(label, shapes))}", _select("SELECT_V2", *shapes), exact=True)
    for shapes in (
        ((3, 5), (3, 5), (3, 5)),
        ((3, 1), (1, 5), (3, 5)),
        ((5,), (3, 5), ()),
        ((1,), (2, 3, 5), (5,)),
        ((2, 1, 5), (3, 1), (1,)),
        ((1, 4, 5, 1), (1, 4, 5, 7), (7,)),
        ((1, 4, 5, 7), (1, 1, 1, 1), (1, 4, 5, 1)),
        ((), (3,), (2, 1)),
    )
]
CASES += [
    Case("SELECT_INT32", _select("SELECT", (3, 5), (3, 5), (3, 5), I32), exact=True),
    Case("SELECT_V2_INT32", _select("SELECT_V2", (3, 1), (5,), (3, 5), I32), exact=True),
    Case(
        "SELECT_V2_BOOL",
        _select("SELECT_V2", (3, 1), (5,), (3, 5), BOOL),
        exact=True,
        expected=lambda c, a, b: [np.where(c, a, b)],
    ),
    Case(
        "SELECT_V2_rank_6",
        _select("SELECT_V2", (2, 1, 3, 1, 2, 5), (4, 1, 2, 2, 1), (5,)),
        exact=True,
        expected=lambda c, a, b: [np.where(c, a, b)],
        why="BUILTIN_REF broadcasts fewer dimensions",
    ),
    Case("SELECT_V2_constants", _select_constants, exact=True),
    Case("SELECT_V2_float_condition", _float_condition, declined="condition is FLOAT32"),
]
CASES += [
    Case(
        f"CAST_{source.name}_{target.name}_{label(shape)}",
        _cast(shape, source, target),
        exact=True,
        low=0.0 if target is U32 else -9.0,
        high=9.0,
    )
    for source, target in (
        (F32, I32),
        (F32, BOOL),
        (I32, F32),
        (I32, BOOL),
        (BOOL, F32),
        (BOOL, I32),
        (F32, F32),
        (I32, I32),
        (F32, U32),
    )
    for shape in ((2, 3, 5), (37,), ())
]
CASES += [
    Case("CAST_UINT32_FLOAT32", _cast((64,), U32, F32), exact=True,
         inputs=lambda rng: {0: rng.integers(0, 1 << 32, (64,)).astype(np.uint32)},
         expected=lambda x: [x.astype(np.float32)]),
    Case("CAST_INT32_FLOAT32_large", _cast((64,), I32, F32), exact=True,
         inputs=lambda rng: {0: rng.integers(-(1 << 31), 1 << 31, (64,)).astype(np.int32)}),
    Case("CAST_FLOAT32_BOOL_zeros", _cast((5,), F32, BOOL), exact=True,
         inputs=lambda rng: {0: np.array([0.0, -0.0, 0.25, -3, 0], np.float32)}),
    Case("CAST_chain", _cast_chain, exact=True),
]  # fmt: skip
