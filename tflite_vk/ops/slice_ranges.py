"""What SLICE and STRIDED_SLICE take of each dimension, worked out from their arguments and masks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tflite_vk.ir.attributes import StridedSliceAttributes
from tflite_vk.shape import Shape


@dataclass(frozen=True)
class Range:
    """What is taken of one dimension of the input; a new axis (`axis` None) takes one element."""

    axis: int | None
    start: int
    step: int
    count: int
    is_kept: bool = True
    """False for an axis that shrinks away."""


def _bit(mask: int, position: int) -> bool:
    return bool(mask >> position & 1)


def _range(
    size: int, axis: int, spec: tuple[int, int, int], masks: tuple[bool, bool, bool], offset: bool
) -> Range:
    """One dimension of STRIDED_SLICE.

    Args:
        size: of the dimension.
        axis: which of the input's.
        spec: begin, end, stride as given.
        masks: begin mask, end mask, shrink axis mask.
        offset: end counts from begin.

    Source: tflite/kernels/internal/strided_slice_logic.h.
    """
    begin, end, step = spec
    begin_masked, end_masked, shrinks = masks
    if step == 0:
        raise ValueError(f"stride of axis {axis} is 0")
    low, high = (0, size) if step > 0 else (-1, size - 1)
    start = min(max(begin + size if begin < 0 else begin, low), high)
    if begin_masked:
        start = 0 if step > 0 else size - 1
    if shrinks:
        if not 0 <= start < size:
            raise ValueError(f"index {begin} lies outside axis {axis} of size {size}")
        return Range(axis, start, 1, 1, is_kept=False)
    if offset:
        end += start
    stop = min(max(end + size if end < 0 else end, low), high)
    if end_masked:
        stop = size if step > 0 else -1
    return Range(axis, start, step, max(0, -((start - stop) // step)))


def strided_ranges(
    source: Shape, specs: Sequence[tuple[int, int, int]], attributes: StridedSliceAttributes
) -> list[Range]:
    """What STRIDED_SLICE takes, one range for each entry of the expanded specification.

    Args:
        source: shape of the input.
        specs: begin, end and stride of each entry.
        attributes: the masks.

    Raises:
        ValueError: a stride of 0, or a specification that doesn't fit the shape.
    """
    a = attributes
    added = sum(_bit(a.new_axis_mask & ~a.ellipsis_mask, i) for i in range(len(specs)))
    # Dimensions that no entry names belong to the ellipsis, or stand behind the last entry.
    unnamed = len(source) + added - len(specs)
    out: list[Range] = []
    axis = 0

    def whole(count: int) -> None:
        nonlocal axis
        for _ in range(count):
            if axis >= len(source):
                raise ValueError(f"the slice names more dimensions than the input's {len(source)}")
            out.append(Range(axis, 0, 1, source[axis]))
            axis += 1

    ellipsis_seen = False
    for i, spec in enumerate(specs):
        if _bit(a.ellipsis_mask, i):
            if ellipsis_seen:
                raise ValueError("more than one ellipsis")
            ellipsis_seen = True
            whole(max(0, unnamed + 1))
        elif _bit(a.new_axis_mask, i):
            out.append(Range(None, 0, 1, 1))
        elif axis >= len(source):
            raise ValueError(f"the slice names more dimensions than the input's {len(source)}")
        else:
            masks = (_bit(a.begin_mask, i), _bit(a.end_mask, i), _bit(a.shrink_axis_mask, i))
            out.append(_range(source[axis], axis, spec, masks, a.offset))
            axis += 1
    whole(len(source) - axis)
    return out


def slice_ranges(source: Shape, begin: Sequence[int], size: Sequence[int]) -> list[Range]:
    """What SLICE takes of each dimension; a size of -1 takes the rest.

    Raises:
        ValueError: the box doesn't fit the shape.
    """
    if not len(begin) == len(size) == len(source):
        raise ValueError(f"begin {list(begin)} and size {list(size)} for a shape {list(source)}")
    out = []
    for axis, (first, count, available) in enumerate(zip(begin, size, source, strict=True)):
        taken = available - first if count == -1 else count
        if first < 0 or taken < 0 or first + taken > available:
            raise ValueError(
                f"begin {first} and size {count} don't fit axis {axis} of size {available}"
            )
        out.append(Range(axis, first, 1, taken))
    return out
