"""SLICE and STRIDED_SLICE: a box of a tensor, with steps in any direction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tflite_vk.ir.attributes import StridedSliceAttributes
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.moving import MOVED, check_data_types, expect_inputs, input_ints
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.registry import register
from tflite_vk.ops.strided_copy import rows_view, strided_copy
from tflite_vk.shape import Shape, strides


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


def _slice_ranges(source: Shape, begin: Sequence[int], size: Sequence[int]) -> list[Range]:
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


def _ranges(node: Node, graph: Graph) -> list[Range] | None:
    source = graph.input(node, 0).shape
    vectors = [input_ints(node, graph, i) for i in range(1, len(node.inputs))]
    given = [v for v in vectors if v is not None]
    if len(given) != len(vectors):
        return None
    if node.op == "SLICE":
        return _slice_ranges(source, *given)
    begin, end, step = given
    if not len(begin) == len(end) == len(step):
        raise ValueError(f"{len(begin)} begins, {len(end)} ends and {len(step)} strides")
    assert isinstance(node.attributes, StridedSliceAttributes)
    return strided_ranges(source, list(zip(begin, end, step, strict=True)), node.attributes)


@register
class StridedSlice(Operator):
    """A box of a tensor."""

    versions = {"SLICE": 7, "STRIDED_SLICE": 8}
    dtypes = MOVED
    notes = "begin, end, size and strides must be constants; every mask and negative strides run"

    def check(self, node: Node, graph: Graph) -> str | None:
        return check_data_types(node, graph, [0])

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape] | None:
        expect_inputs(node, 3 if node.op == "SLICE" else 4)
        ranges = _ranges(node, graph)
        return None if ranges is None else [tuple(r.count for r in ranges if r.is_kept)]

    def is_alias(self, node: Node, graph: Graph) -> bool:
        source = graph.input(node, 0)
        ranges = _ranges(node, graph)
        assert ranges is not None
        whole = all(
            r.axis is None or (r.count == source.shape[r.axis] and (r.step == 1 or r.count == 1))
            for r in ranges
        )
        return (
            whole and not source.is_variable and graph.output(node).shape[-1:] == source.shape[-1:]
        )

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        source, target = ctx.graph.input(node, 0), ctx.graph.output(node)
        ranges = _ranges(node, ctx.graph)
        assert ranges is not None
        steps = strides(source.shape)
        base = sum(r.start * steps[r.axis] for r in ranges if r.axis is not None)
        kept = [0 if r.axis is None else r.step * steps[r.axis] for r in ranges if r.is_kept]
        strided_copy(
            ctx,
            node,
            ctx.buffer(source.id),
            ctx.buffer(target.id),
            target.shape,
            rows_view(target.shape, kept, base),
            ctx.storage(target),
        )
