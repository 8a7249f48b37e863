"""TILE and BROADCAST_TO: a tensor repeated."""

from __future__ import annotations

from collections.abc import Sequence

from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.moving import MOVED, check_data_types, input_ints
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.registry import register
from tflite_vk.ops.strided_copy import rows_view, strided_copy
from tflite_vk.ops.surround import Extent, surround
from tflite_vk.shape import Shape, broadcast, inner, pad_rank, strides


class _Repeating(Operator):
    """What the two share."""

    dtypes = MOVED

    def check(self, node: Node, graph: Graph) -> str | None:
        return check_data_types(node, graph, [0])

    def is_alias(self, node: Node, graph: Graph) -> bool:
        source, target = graph.input(node, 0), graph.output(node)
        return (
            source.num_elements == target.num_elements
            and inner(source.shape) == inner(target.shape)
            and not source.is_variable
        )


@register
class Tile(_Repeating):
    """A tensor repeated along its dimensions."""

    versions = {"TILE": 3}
    notes = "multiples must be constants"

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape] | None:
        source = graph.input(node, 0).shape
        multiples = input_ints(node, graph, 1)
        if multiples is None:
            return None
        if len(multiples) != len(source) or min(multiples, default=0) < 0:
            raise ValueError(f"multiples {list(multiples)} of a shape {list(source)}")
        return [tuple(d * n for d, n in zip(source, multiples, strict=True))]

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        source, target = ctx.graph.input(node, 0).shape, ctx.graph.output(node).shape
        extents = [Extent(y, x, 0) for x, y in zip(source, target, strict=True)]
        surround(ctx, node, extents, "wrap")


@register
class BroadcastTo(_Repeating):
    """A tensor repeated along its dimensions of 1, and new ones in front."""

    versions = {"BROADCAST_TO": 3}
    notes = "the shape must be a constant"

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape] | None:
        source = graph.input(node, 0).shape
        shape = input_ints(node, graph, 1)
        if shape is None:
            return None
        if min(shape, default=0) < 0 or broadcast([source, shape]) != shape:
            raise ValueError(f"shape {list(source)} doesn't broadcast to {list(shape)}")
        return [shape]

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        source, target = ctx.graph.input(node, 0), ctx.graph.output(node)
        full = pad_rank(source.shape, target.rank)
        steps = [0 if d == 1 else s for d, s in zip(full, strides(full), strict=True)]
        strided_copy(
            ctx,
            node,
            ctx.buffer(source.id),
            ctx.buffer(target.id),
            target.shape,
            rows_view(target.shape, steps),
            ctx.storage(target),
        )
