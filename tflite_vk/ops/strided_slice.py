"""SLICE and STRIDED_SLICE: a box of a tensor, with steps in any direction."""

from __future__ import annotations

from collections.abc import Sequence

from tflite_vk.ir.attributes import StridedSliceAttributes
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.moving import MOVED, check_data_types, input_ints
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.registry import register
from tflite_vk.ops.slice_ranges import Range, slice_ranges, strided_ranges
from tflite_vk.ops.strided_copy import rows_view, strided_copy
from tflite_vk.shape import Shape, strides


def _ranges(node: Node, graph: Graph) -> list[Range] | None:
    source = graph.input(node, 0).shape
    vectors = [input_ints(node, graph, i) for i in range(1, len(node.inputs))]
    given = [v for v in vectors if v is not None]
    if len(given) != len(vectors):
        return None
    if node.op == "SLICE":
        return slice_ranges(source, *given)
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
