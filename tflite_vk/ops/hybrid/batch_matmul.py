"""BATCH_MATMUL of float activations and a constant int8 matrix.

Source: EvalHybrid of tflite/kernels/batch_matmul.cc.
"""

from __future__ import annotations

import math

from tflite_vk.ir.attributes import BatchMatMulAttributes
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops.batch_matmul import BatchMatMul
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.hybrid.activations import check_hybrid
from tflite_vk.ops.hybrid.fully_connected import lower_rows_of_reals
from tflite_vk.ops.quantized.weights import filter_values
from tflite_vk.ops.registry import register


@register
class HybridBatchMatMul(BatchMatMul):
    """BATCH_MATMUL."""

    kind = "hybrid"
    notes = "one constant int8 matrix on the right, of one scale or one for each column; rows are quantized while running, as TFLite does"

    def check(self, node: Node, graph: Graph) -> str | None:
        a = node.attributes
        assert isinstance(a, BatchMatMulAttributes)
        matrix = graph.input(node, 1)
        if a.adj_x:
            return "adj_x with an integer matrix on the right (supported: without)"
        if math.prod(matrix.shape[:-2]) != 1:
            return "several integer matrices on the right (supported: one)"
        columns = len(matrix.shape) - (2 if a.adj_y else 1)
        return check_hybrid(graph, node, axis=columns)

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        a = node.attributes
        assert isinstance(a, BatchMatMulAttributes)
        matrix = ctx.graph.input(node, 1)
        values = filter_values(matrix).reshape(matrix.shape[-2:])
        lower_rows_of_reals(
            ctx,
            node,
            values if a.adj_y else values.T,
            is_asymmetric=a.asymmetric_quantize_inputs,
        )
