"""Custom MaxUnpooling2D: the inverse of MediaPipe's pool with indices."""

from __future__ import annotations

from collections.abc import Sequence

from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.pool_2d import pool_attributes, pool_push, pool_windows
from tflite_vk.ops.registry import register
from tflite_vk.shape import Shape, num_vectors


@register
class MaxUnpooling2D(Operator):
    """Custom MaxUnpooling2D: each value at the tap that its index names, zero elsewhere.

    Source: MediaPipe, util/tflite/operations/max_unpooling.cc.
    """

    versions = {"MaxUnpooling2D": 1}
    custom = True
    ends_in_epilogue = True
    notes = "indices as MaxPoolingWithArgmax2D makes them: taps of the same window"

    def check(self, node: Node, graph: Graph) -> str | None:
        if any(graph.input(node, i).is_const for i in range(2)):
            return "one of its inputs is a constant"
        return None

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape]:
        shape, indices = (graph.input(node, i).shape for i in range(2))
        if len(shape) != 4 or shape != indices:
            raise ValueError(
                f"input {list(shape)} and indices {list(indices)} must be alike, rank 4"
            )
        rows, columns = pool_windows(pool_attributes(node))
        n, h, w, c = shape
        return [(n, h * rows.size, w * columns.size, c)]

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        x, y = ctx.graph.input(node, 0), ctx.graph.output(node)
        a = pool_attributes(node)
        rows, columns = pool_windows(a)
        pads = rows.pad_before(y.shape[1], x.shape[1]), columns.pad_before(y.shape[2], x.shape[2])
        ctx.compute_flat(
            node,
            "max_unpool_2d",
            [ctx.buffer(x.id), ctx.buffer(node.inputs[1])],
            ctx.buffer(y.id),
            invocations=num_vectors(y.shape),
            push=pool_push(a, y.shape, x.shape, y.shape, pads),
        )
