"""DYNAMIC_UPDATE_SLICE: a tensor with another written over it at a run-time place."""

from __future__ import annotations

from collections.abc import Sequence

from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.moving import (
    MOVED,
    check_data_types,
    check_index_type,
    index_buffer,
    lanes_variant,
)
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.registry import register
from tflite_vk.shape import Shape, inner, num_vectors, vectors_per_row

MAX_OUTER = 5


@register
class DynamicUpdateSlice(Operator):
    """A tensor with another written over it at a run-time place."""

    versions = {"DYNAMIC_UPDATE_SLICE": 3}
    dtypes = MOVED
    differs = dict.fromkeys(
        versions,
        "64-bit start indices are clamped as they are: TFLite narrows them to 32 bits before, and so may write elsewhere",
    )

    def check(self, node: Node, graph: Graph) -> str | None:
        reason = check_index_type(node, graph, 2)
        return reason or check_data_types(node, graph, (0, 1))

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape]:
        operand, update, starts = (graph.input(node, i).shape for i in range(3))
        if len(update) != len(operand) or any(u > d for u, d in zip(update, operand, strict=True)):
            raise ValueError(f"update of shape {list(update)} doesn't fit {list(operand)}")
        if starts != (len(operand),):
            raise ValueError(f"start indices of shape {list(starts)} for rank {len(operand)}")
        return [operand]

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        operand, update, starts = (ctx.graph.input(node, i) for i in range(3))
        output = ctx.graph.output(node)
        spare = MAX_OUTER - max(0, operand.rank - 1)
        vectors = num_vectors(output.shape)
        ctx.dispatch_flat(
            node,
            lanes_variant("dynamic_update_slice", ctx.storage(output)),
            [
                ctx.buffer(operand.id),
                ctx.buffer(update.id),
                index_buffer(ctx, starts),
                ctx.buffer(output.id),
            ],
            invocations=vectors,
            spec=(int(inner(update.shape) != inner(operand.shape)),),
            push=(
                vectors,
                inner(operand.shape),
                vectors_per_row(operand.shape),
                inner(update.shape),
                vectors_per_row(update.shape),
                max(0, operand.rank - 1),
                *operand.shape[:-1],
                *[1] * spare,
                *update.shape[:-1],
                *[1] * spare,
            ),
        )
