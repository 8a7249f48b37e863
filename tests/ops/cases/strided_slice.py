"""SLICE and STRIDED_SLICE."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.ops.cases.reshape import label
from tests.support.case import Case
from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import StridedSliceAttributes
from tflite_vk.testing.model_writer import ModelWriter

Shape = tuple[int, ...]
Build = Callable[[ModelWriter], None]

F32, I32, BOOL = DType.FLOAT32, DType.INT32, DType.BOOL


def _slice(
    source: Shape, begin: Shape, size: Shape, dtype: DType = F32, index_type: type = np.int32
) -> Build:
    result = tuple(d - b if s == -1 else s for d, b, s in zip(source, begin, size, strict=True))

    def build(w: ModelWriter) -> None:
        x = w.input(source, dtype=dtype)
        indices = [w.const(np.array(v, index_type)) for v in (begin, size)]
        w.output(w.op("SLICE", [x, *indices], [(result, dtype)]))

    return build


def _strided(
    source: Shape,
    begin: Shape,
    end: Shape,
    strides: Shape,
    result: Shape,
    dtype: DType = F32,
    **masks: int,
) -> Build:
    def build(w: ModelWriter) -> None:
        x = w.input(source, dtype=dtype)
        indices = [w.const(np.array(v, np.int32)) for v in (begin, end, strides)]
        attributes = StridedSliceAttributes(**masks)  # type: ignore[arg-type]
        w.output(w.op("STRIDED_SLICE", [x, *indices], [(result, dtype)], attributes))

    return build


def _numpy(source: Shape, key: object, name: str = "") -> Case:
    """STRIDED_SLICE as NumPy's x[key], the masks made as the converter makes them."""
    entries = key if isinstance(key, tuple) else (key,)
    begin, end, strides = [], [], []
    masks = dict.fromkeys(
        ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0
    )
    for i, entry in enumerate(entries):
        first, last, step = 0, 0, 1
        if entry is Ellipsis:
            masks["ellipsis_mask"] |= 1 << i
        elif entry is None:
            masks["new_axis_mask"] |= 1 << i
        elif isinstance(entry, int):
            masks["shrink_axis_mask"] |= 1 << i
            first, last = entry, entry + 1
        else:
            assert isinstance(entry, slice)
            step = 1 if entry.step is None else entry.step
            masks["begin_mask"] |= (entry.start is None) << i
            masks["end_mask"] |= (entry.stop is None) << i
            first = 0 if entry.start is None else entry.start
            last = 0 if entry.stop is None else entry.stop
        begin.append(first)
        end.append(last)
        strides.append(step)
    result = np.zeros(source, np.bool_)[key].shape  # type: ignore[index]
    text = "_".join(
        "new"
        if e is None
        else "dots"
        if e is Ellipsis
        else str(e).replace("slice", "").replace(" ", "")
        for e in entries
    )
    return Case(
        f"{name or 'STRIDED_SLICE'}_{label(source)}_{text}",
        _strided(source, tuple(begin), tuple(end), tuple(strides), result, **masks),
        exact=True,
    )


def _run_time_begin(w: ModelWriter) -> None:
    x = w.input((5, 3))
    w.output(w.op("SLICE", [x, w.input((2,), dtype=I32), w.const([2, 2])], [(2, 2)]))


CASES = [
    Case(f"SLICE_{label(s)}_from_{label(b)}_size_{label(n)}", _slice(s, b, n), exact=True)
    for s, b, n in (
        ((4, 3, 3, 5), (1, 0, 0, 0), (2, 3, 3, 5)),
        ((1, 9, 7, 8), (0, 2, 1, 4), (1, 5, 6, 4)),
        ((1, 9, 7, 8), (0, 2, 1, 3), (1, 5, 6, 4)),
        ((1, 9, 7, 37), (0, 0, 0, 4), (1, 9, 7, 33)),
        ((1, 9, 7, 37), (0, 0, 0, 5), (-1, -1, -1, -1)),
        ((113,), (7,), (100,)),
        ((113,), (8,), (100,)),
        ((2, 5, 3), (1, 4, 2), (1, 1, 1)),
        ((2, 3, 4, 3, 5), (0, 1, 2, 0, 1), (2, 2, 2, 3, 3)),
        ((2, 3, 2, 3, 2, 5), (1, 0, 1, 1, 0, 2), (1, 3, 1, 2, 2, 3)),
        ((2, 3), (0, 0), (2, 3)),
    )
]
CASES += [
    Case(
        "D14_SLICE_axis_0_of_4x3x3x5", _slice((4, 3, 3, 5), (2, 0, 0, 0), (1, 3, 3, 5)), exact=True
    ),
    Case("G6_SLICE_to_0x2", _slice((3, 2), (1, 0), (0, 2)), exact=True),
    Case("SLICE_INT32", _slice((5, 7), (1, 2), (3, 4), I32), exact=True),
    Case("SLICE_BOOL", _slice((5, 7), (1, 2), (3, 4), BOOL), exact=True),
    Case("SLICE_int64_indices", _slice((5, 7), (1, 2), (3, -1), index_type=np.int64), exact=True),
    Case("SLICE_run_time_begin", _run_time_begin, declined="depends on run-time values"),
    Case("SLICE_too_large", _slice((5, 7), (1, 2), (3, 6)), declined="don't fit axis 1 of size 7"),
]

_ALL = slice(None)
CASES += [
    _numpy((1, 9, 7, 3), (_ALL, slice(None, None, 2), slice(1, None, 2)), "D13_STRIDED_SLICE"),
    _numpy((1, 9, 7, 3), (0, slice(1, -1, 2)), "D13_STRIDED_SLICE_shrink"),
    _numpy((4, 3, 3, 5), (slice(1, 3),), "D14_STRIDED_SLICE"),
    _numpy((1, 2), (0, 0), "D15_STRIDED_SLICE"),
    _numpy((1, 2), (0, 1), "D15_STRIDED_SLICE"),
    _numpy((37,), (slice(30, 2, -3),)),
    _numpy((37,), (slice(None, None, -1),)),
    _numpy((5, 7), (slice(None, None, -2), slice(None, None, -1))),
    _numpy((5, 8), (slice(None, None, -1), _ALL)),
    _numpy((5, 7), (slice(-2, None), slice(-100, 100))),
    _numpy((5, 7), (slice(3, 1), _ALL)),
    _numpy((5, 7), (-1, slice(2, 6))),
    _numpy((5, 7), (slice(1, 4), -2)),
    _numpy((3, 5, 7), (_ALL, 2)),
    _numpy((3, 5, 7), (Ellipsis, 3)),
    _numpy((3, 5, 8), (Ellipsis, slice(4, 8))),
    _numpy((3, 5, 7), (1, Ellipsis, slice(0, 5, 2))),
    _numpy((3, 5, 7), (Ellipsis,)),
    _numpy((3, 5), (_ALL, None, slice(1, 4))),
    _numpy((3, 5), (None, Ellipsis)),
    _numpy((3, 5), (Ellipsis, None)),
    _numpy((3, 5), (0, Ellipsis, None)),
    _numpy((3, 5, 7), (slice(1, None), None, 2, slice(None, None, 3))),
    _numpy((2, 3, 4, 3, 5), (_ALL, slice(None, None, 2), 1, Ellipsis)),
    _numpy((1, 17, 17, 4), (_ALL, slice(0, 16), slice(1, 17))),
    _numpy((1, 65, 1, 5), (0, slice(1, None), _ALL, slice(1, 5))),
]
CASES += [
    Case(
        "STRIDED_SLICE_offset",
        _strided((9, 7), (2, -6), (3, 4), (1, 2), (3, 2), offset=1),
        exact=True,
        expected=lambda x: [x[2:5, 1:5:2]],
        why="with offset the ends count from the begins",
    ),
    Case(
        "STRIDED_SLICE_INT32",
        _strided((9, 7), (1, 6), (8, 0), (3, -2), (3, 3), I32),
        exact=True,
    ),
    Case("STRIDED_SLICE_BOOL", _strided((9, 7), (1, 1), (8, 6), (3, 1), (3, 5), BOOL), exact=True),
    Case(
        "STRIDED_SLICE_stride_0",
        _strided((9,), (0,), (8,), (0,), (8,)),
        declined="stride of axis 0 is 0",
    ),
    Case(
        "STRIDED_SLICE_index_outside",
        _strided((3, 5), (3,), (4,), (1,), (5,), shrink_axis_mask=1),
        declined="index 3 lies outside axis 0 of size 3",
    ),
]
