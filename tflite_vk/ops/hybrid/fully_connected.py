"""FULLY_CONNECTED of float activations and a filter of int8 or int4.

Source: EvalHybrid of tflite/kernels/fully_connected.cc.
"""

from __future__ import annotations

import numpy as np

from tflite_vk.ir.attributes import FullyConnectedAttributes
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.layout import words_for
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.fully_connected import FEW_ROWS, FullyConnected
from tflite_vk.ops.hybrid.activations import INT8_OR_INT4, check_hybrid, quantize_rows, scale_sums
from tflite_vk.ops.quantized.fully_connected import lower_rows, rows_product
from tflite_vk.ops.quantized.product import lower_sums
from tflite_vk.ops.quantized.weights import Ints, filter_values
from tflite_vk.ops.registry import register
from tflite_vk.ops.repack import repack


@register
class HybridFullyConnected(FullyConnected):
    """FULLY_CONNECTED."""

    kind = "hybrid"
    notes = "constant filter of INT8 or INT4; rows are quantized while running, as TFLite does"

    def check(self, node: Node, graph: Graph) -> str | None:
        a = node.attributes
        assert isinstance(a, FullyConnectedAttributes)
        if a.weights_format != "DEFAULT":
            return f"weights_format is {a.weights_format} (supported: DEFAULT)"
        return check_hybrid(graph, node, 0, INT8_OR_INT4)

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        a = node.attributes
        assert isinstance(a, FullyConnectedAttributes)
        values = filter_values(ctx.graph.input(node, 1))
        lower_rows_of_reals(ctx, node, values, is_asymmetric=a.asymmetric_quantize_inputs)


def lower_rows_of_reals(
    ctx: LoweringContext, node: Node, matrix: Ints, *, is_asymmetric: bool
) -> None:
    """Add the dispatches of a product of rows that are quantized while running.

    Args:
        ctx: the program being made.
        node: its input 0 is made of rows; the scales are those of input 1.
        matrix: constant [outputs, inputs] as int8.
        is_asymmetric: quantize with a zero point.
    """
    source, output = ctx.graph.input(node, 0), ctx.graph.output(node)
    outputs, inputs = matrix.shape
    count = source.num_elements // inputs
    x = repack(ctx, node, source, (count, inputs))
    rows = quantize_rows(ctx, node, x, (count, inputs), count, is_asymmetric=is_asymmetric)
    values = matrix.reshape(outputs, 1, inputs)
    if count >= FEW_ROWS:
        product = rows_product(count, inputs, outputs)
        sums = lower_sums(ctx, node, product, rows.values, rows.found, values)
    else:
        sums = ctx.temporary(words_for(output.shape, "i32"), f"{output.name}/sums")
        buffers = (rows.values, rows.found, sums)
        lower_rows(ctx, node, "_raw", buffers, count, values, spec=(0, 0, 0), push=(0,) * 6)
    of_weights = np.asarray(matrix.sum(axis=1))
    scale_sums(ctx, node, rows, sums, of_weights, scales_first=True)
