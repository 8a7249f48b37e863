"""ONE_HOT: indices as vectors with one element set."""

from __future__ import annotations

from collections.abc import Sequence

from tflite_vk.ir.attributes import OneHotAttributes
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.moving import (
    MOVED,
    check_data_types,
    check_index_type,
    index_buffer,
    input_ints,
    lanes_variant,
)
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.registry import register
from tflite_vk.shape import (
    LANES,
    Shape,
    inner,
    normalize_axis,
    num_elements,
    num_vectors,
    vectors_per_row,
)


def _axis(node: Node, graph: Graph) -> int:
    rank = graph.input(node, 0).rank + 1
    assert isinstance(node.attributes, OneHotAttributes)
    given = node.attributes.axis
    axis = rank - 1 if given == -1 else normalize_axis(given, rank)
    if axis is None or given < -1:
        raise ValueError(f"axis {given} of a result of rank {rank}")
    return axis


@register
class OneHot(Operator):
    """Indices as vectors with one element set."""

    versions = {"ONE_HOT": 1}
    dtypes = MOVED
    notes = "the depth must be a constant; the values for on and off may be run-time tensors"

    def check(self, node: Node, graph: Graph) -> str | None:
        if (reason := check_index_type(node, graph, 0)) is not None:
            return reason
        for position in (2, 3):
            if graph.input(node, position).num_elements != 1:
                return f"input {position} has {graph.input(node, position).num_elements} elements (supported: 1)"
        return check_data_types(node, graph, (2, 3))

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape] | None:
        depth = input_ints(node, graph, 1)
        if depth is None:
            return None
        if len(depth) != 1 or depth[0] < 0:
            raise ValueError(f"depth {list(depth)}")
        axis, source = _axis(node, graph), graph.input(node, 0).shape
        return [(*source[:axis], depth[0], *source[axis:])]

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        indices, output = ctx.graph.input(node, 0), ctx.graph.output(node)
        axis = _axis(node, ctx.graph)
        vectors = num_vectors(output.shape)
        ctx.dispatch_flat(
            node,
            lanes_variant("one_hot", ctx.storage(output)),
            [
                index_buffer(ctx, indices),
                ctx.buffer(node.inputs[2]),
                ctx.buffer(node.inputs[3]),
                ctx.buffer(output.id),
            ],
            invocations=vectors,
            push=(
                vectors,
                inner(output.shape),
                vectors_per_row(output.shape),
                output.shape[axis],
                num_elements(output.shape[axis + 1 :]),
                inner(indices.shape),
                vectors_per_row(indices.shape) * LANES,
            ),
        )
