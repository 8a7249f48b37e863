"""TOPK_V2: the k largest elements of each row, largest first, and where they stand."""

from __future__ import annotations

from collections.abc import Sequence

from tflite_vk.dtypes import DType
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.moving import input_ints, lanes_variant
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.registry import register
from tflite_vk.shape import LANES, Shape, inner, num_vectors, vectors_per_row

_MAX_ROW = 1 << 17
"""Every element meets every other of its row: longer rows would take seconds."""


@register
class TopK(Operator):
    """TOPK_V2.

    Source: tflite/kernels/topk_v2.cc: ties in order of position.
    """

    versions = {"TOPK_V2": 3}
    dtypes = frozenset(
        {DType.FLOAT32, DType.INT32, DType.INT64, DType.INT16, DType.INT8, DType.UINT8}
    )
    notes = "constant k; rows of up to 131,072 elements"

    def check(self, node: Node, graph: Graph) -> str | None:
        x = graph.input(node, 0)
        if x.is_const:
            return "its input is a constant"
        values, indices = (graph.output(node, i).dtype for i in range(2))
        if values is not x.dtype or indices is not DType.INT32:
            return (
                f"its outputs are {values.name} and {indices.name} "
                f"(supported: {x.dtype.name} and INT32)"
            )
        if inner(x.shape) > _MAX_ROW:
            return f"a row has {inner(x.shape)} elements (supported: up to {_MAX_ROW})"
        return None

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape] | None:
        shape, k = graph.input(node, 0).shape, graph.input(node, 1)
        if not shape:
            raise ValueError("input is a scalar (supported: rank 1 and more)")
        if k.data is None:
            return None
        values = input_ints(node, graph, 1)
        if values is None or len(values) != 1:
            raise ValueError(f"k is {list(k.shape)} of {k.dtype.name} (supported: one integer)")
        count = max(0, values[0])
        if count > shape[-1]:
            raise ValueError(f"k is {count}, a row has {shape[-1]} elements")
        return [(*shape[:-1], count)] * 2

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        x, values = ctx.graph.input(node, 0), ctx.graph.output(node)
        k = inner(values.shape)
        storage = ctx.storage(x)
        source, indices = ctx.buffer(x.id), ctx.buffer(node.outputs[1])
        groups, row_groups = vectors_per_row(values.shape), vectors_per_row(x.shape)
        ctx.dispatch_flat(
            node,
            "top_k_ranks" if storage == "f32" else f"top_k_ranks_{storage}",
            [source, indices],
            invocations=num_vectors(x.shape),
            push=(num_vectors(x.shape), row_groups, inner(x.shape), k, groups * LANES),
            flops=x.num_elements * inner(x.shape),
        )
        ctx.dispatch_flat(
            node,
            lanes_variant("top_k_values", storage),
            [source, indices, ctx.buffer(values.id)],
            invocations=num_vectors(values.shape),
            push=(num_vectors(values.shape), groups, row_groups, k),
        )
