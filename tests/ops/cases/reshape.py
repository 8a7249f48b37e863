"""RESHAPE, SQUEEZE, EXPAND_DIMS."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tests.support.case import Case
from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import ReshapeAttributes, SqueezeAttributes
from tflite_vk.testing.model_writer import ModelWriter

Shape = tuple[int, ...]
Build = Callable[[ModelWriter], None]

F32, I32, BOOL = DType.FLOAT32, DType.INT32, DType.BOOL


def label(shape: Sequence[int]) -> str:
    """A shape in a test's name."""
    return "x".join(str(d) if d >= 0 else f"m{-d}" for d in shape) or "scalar"


def _reshape(source: Shape, wanted: Sequence[int], dtype: DType = F32, by: str = "input") -> Build:
    result = np.zeros(source, np.bool_).reshape(wanted).shape

    def build(w: ModelWriter) -> None:
        x = w.input(source, dtype=dtype)
        shape = np.array(wanted, np.int32)
        inputs = [x] if by == "attribute" else [x, w.const(shape)]
        attributes = ReshapeAttributes(tuple(wanted)) if by != "input" else ReshapeAttributes()
        w.output(w.op("RESHAPE", inputs, [(result, dtype)], attributes))

    return build


def _squeeze(source: Shape, axes: Shape, result: Shape, dtype: DType = F32) -> Build:
    def build(w: ModelWriter) -> None:
        x = w.input(source, dtype=dtype)
        w.output(w.op("SQUEEZE", [x], [(result, dtype)], SqueezeAttributes(axes)))

    return build


def _expand(source: Shape, axis: int, index_type: type = np.int32) -> Build:
    def build(w: ModelWriter) -> None:
        x = w.input(source)
        result = np.expand_dims(np.zeros(source, np.bool_), axis).shape
        w.output(w.op("EXPAND_DIMS", [x, w.const(np.array(axis, index_type))], [result]))

    return build


def _two_in_a_row(w: ModelWriter) -> None:
    x = w.input((1, 5, 7, 6))
    rows = w.op("RESHAPE", [x, w.const([1, 35, 6])], [(1, 35, 6)], ReshapeAttributes())
    back = w.op("RESHAPE", [rows, w.const([6, 35])], [(6, 35)], ReshapeAttributes())
    w.output(rows, back)


def _rank_5_and_back(w: ModelWriter) -> None:
    x = w.input((1, 13, 13, 255))
    wide = (1, 13, 13, 3, 85)
    split = w.op("RESHAPE", [x, w.const(wide)], [wide], ReshapeAttributes())
    y = w.op("LOGISTIC", [split], [wide])
    w.output(
        w.op("RESHAPE", [y, w.const([1, 13, 13, 255])], [(1, 13, 13, 255)], ReshapeAttributes())
    )


def _constant(w: ModelWriter) -> None:
    c = w.op("RESHAPE", [w.const(np.arange(6.0)), w.const([2, 3])], [(2, 3)], ReshapeAttributes())
    w.output(w.op("ADD", [w.input((2, 3)), c], [(2, 3)]), c)


def _identity(w: ModelWriter) -> None:
    x = w.input((2, 3))
    w.output(w.op("RESHAPE", [x, w.const([2, 3])], [(2, 3)], ReshapeAttributes()))


def _run_time_shape(w: ModelWriter) -> None:
    x = w.input((2, 3))
    w.output(w.op("RESHAPE", [x, w.input((1,), dtype=I32)], [(6,)], ReshapeAttributes()))


_RESHAPES: tuple[tuple[Shape, Shape], ...] = (
    ((1, 2, 6, 1), (2, 3, 2, 1)),
    ((1, 4, 4, 3), (1, 48)),
    ((1, 1, 48), (1, 4, 4, 3)),
    ((1, 5, 7, 6), (1, 35, 6)),
    ((1, 5, 7, 6), (1, -1)),
    ((4, 3, 5), (-1, 4)),
    ((2, 3, 4, 5), (6, 20)),
    ((37,), (37, 1)),
    ((37, 1), (1, 37)),
    ((1, 1, 1), ()),
    ((), (1, 1)),
    ((3, 5), (15,)),
    ((2, 3, 2, 3, 2, 3), (12, 18)),
    ((12, 18), (2, 3, 2, 3, 2, 3)),
    ((1, 8, 8, 2), (1, 64, 2)),
    ((1, 8, 8, 6), (1, 384, 1)),
    ((0, 3), (3, 0)),
    ((2, 0), (-1, 5)),
)

CASES = [
    Case(f"RESHAPE_{label(a)}_to_{label(b)}", _reshape(a, b), exact=True)
    for a, b in _RESHAPES
    if a != (2, 0)
]
CASES += [
    Case(f"RESHAPE_attribute_{label(a)}_to_{label(b)}", _reshape(a, b, by="attribute"), exact=True)
    for a, b in _RESHAPES[:5]
]
CASES += [
    Case(f"RESHAPE_{t.name}", _reshape((3, 5, 7), (7, 15), t), exact=True) for t in (I32, BOOL)
]
CASES += [
    Case("D10_RESHAPE_batch", _reshape((1, 2, 6, 1), (2, 3, 2, 1)), exact=True),
    Case("D11_RESHAPE_rank_5_LOGISTIC_back", _rank_5_and_back),
    Case("RESHAPE_two_in_a_row", _two_in_a_row, exact=True),
    Case("RESHAPE_constant", _constant, exact=True),
    Case("E11_RESHAPE_identity", _identity, exact=True),
    Case("RESHAPE_run_time_shape", _run_time_shape, declined="depends on run-time values"),
    Case("SQUEEZE_all", _squeeze((1, 3, 1, 5), (), (3, 5)), exact=True),
    Case("SQUEEZE_last", _squeeze((1, 3, 5, 1), (-1,), (1, 3, 5)), exact=True),
    Case("SQUEEZE_some", _squeeze((1, 3, 1, 5), (0,), (3, 1, 5)), exact=True),
    Case("SQUEEZE_BOOL", _squeeze((4, 1, 5), (-2,), (4, 5), BOOL), exact=True),
    Case("SQUEEZE_to_scalar", _squeeze((1, 1), (0, 1), ()), exact=True),
    Case("EXPAND_DIMS_int64_axis", _expand((3, 5), -1, np.int64), exact=True),
]
CASES += [
    Case(f"EXPAND_DIMS_{label(s)}_axis_{a}", _expand(s, a), exact=True)
    for s, axes in (((3, 5), (-3, -1, 0, 1, 2)), ((), (0, -1)), ((2, 3, 4, 5, 3), (0, -1)))
    for a in axes
]
