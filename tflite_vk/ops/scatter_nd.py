"""SCATTER_ND: updates added into zeros."""

from __future__ import annotations

from collections.abc import Sequence

from tflite_vk.dtypes import DType
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.moving import (
    check_data_types,
    check_indices,
    index_buffer,
    input_ints,
)
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.registry import MAX_RANK, register
from tflite_vk.shape import (
    LANES,
    Shape,
    inner,
    num_elements,
    num_vectors,
    strides,
    vectors_per_row,
)


@register
class ScatterNd(Operator):
    """Updates added into zeros."""

    versions = {"SCATTER_ND": 1}
    dtypes = frozenset(
        {DType.FLOAT32, DType.INT32, DType.INT64, DType.INT8, DType.UINT8, DType.BOOL}
    )
    notes = "the shape must be a constant; time grows with updates times result"
    differs = dict.fromkeys(
        versions,
        "an update whose run-time index lies outside is left out: TFLite stops with an error, which a device can't",
    )

    def check(self, node: Node, graph: Graph) -> str | None:
        depth = graph.input(node, 0).shape[-1]
        reason = check_data_types(node, graph, [1])
        return reason or check_indices(node, graph, 0, graph.output(node).shape[:depth])

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape] | None:
        shape = input_ints(node, graph, 2)
        if shape is None:
            return None
        indices, updates = graph.input(node, 0).shape, graph.input(node, 1).shape
        if not indices or not 1 <= indices[-1] <= len(shape) or min(shape) < 0:
            raise ValueError(f"indices of shape {list(indices)} into shape {list(shape)}")
        if updates != (*indices[:-1], *shape[indices[-1] :]):
            raise ValueError(
                f"updates of shape {list(updates)} for indices {list(indices)} into {list(shape)}"
            )
        return [shape]

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        indices, updates = (ctx.graph.input(node, i) for i in range(2))
        output = ctx.graph.output(node)
        storage = ctx.storage(output)
        depth = indices.shape[-1]
        in_lanes = depth == output.rank
        steps = [s // (1 if in_lanes else LANES) for s in strides(output.shape)[:depth]]
        spare = MAX_RANK - depth
        vectors = num_vectors(output.shape)
        ctx.dispatch_flat(
            node,
            "scatter_nd" if storage == "f32" else f"scatter_nd_{storage}",
            [index_buffer(ctx, indices), ctx.buffer(updates.id), ctx.buffer(output.id)],
            invocations=vectors,
            spec=(int(in_lanes),),
            push=(
                vectors,
                num_elements(indices.shape[:-1]),
                num_vectors(output.shape[depth:]),
                inner(updates.shape),
                vectors_per_row(updates.shape),
                depth,
                vectors_per_row(indices.shape) * LANES,
                *output.shape[:depth],
                *[1] * spare,
                *steps,
                *[0] * spare,
            ),
            flops=output.num_elements,
        )
