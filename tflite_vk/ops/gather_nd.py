"""GATHER_ND: elements or slices that rows of coordinates name."""

from __future__ import annotations

from collections.abc import Sequence

from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.moving import (
    MOVED,
    check_data_types,
    check_indices,
    index_buffer,
    lanes_variant,
)
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.registry import MAX_RANK, register
from tflite_vk.shape import LANES, Shape, inner, num_vectors, strides, vectors_per_row


@register
class GatherNd(Operator):
    """Elements or slices that rows of coordinates name."""

    versions = {"GATHER_ND": 5}
    dtypes = MOVED
    differs = dict.fromkeys(
        versions,
        "a run-time index that lies outside gives zeros: TFLite stops with an error, which a device can't",
    )

    def check(self, node: Node, graph: Graph) -> str | None:
        source, indices = graph.input(node, 0).shape, graph.input(node, 1).shape
        reason = check_data_types(node, graph, [0])
        return reason or check_indices(node, graph, 1, source[: indices[-1]])

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape]:
        source, indices = graph.input(node, 0).shape, graph.input(node, 1).shape
        if not indices or not 1 <= indices[-1] <= len(source):
            raise ValueError(
                f"indices of shape {list(indices)} into a tensor of shape {list(source)}"
            )
        return [(*indices[:-1], *source[indices[-1] :])]

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        source, indices, output = (
            *(ctx.graph.input(node, i) for i in (0, 1)),
            ctx.graph.output(node),
        )
        depth = indices.shape[-1]
        in_lanes = depth == source.rank
        steps = [s // (1 if in_lanes else LANES) for s in strides(source.shape)[:depth]]
        spare = MAX_RANK - depth
        vectors = num_vectors(output.shape)
        ctx.dispatch_flat(
            node,
            lanes_variant("gather_nd", ctx.storage(output)),
            [ctx.buffer(source.id), index_buffer(ctx, indices), ctx.buffer(output.id)],
            invocations=vectors,
            spec=(int(in_lanes),),
            push=(
                vectors,
                num_vectors(source.shape[depth:]),
                inner(output.shape),
                vectors_per_row(output.shape),
                depth,
                vectors_per_row(indices.shape) * LANES,
                *source.shape[:depth],
                *[1] * spare,
                *steps,
                *[0] * spare,
            ),
        )
