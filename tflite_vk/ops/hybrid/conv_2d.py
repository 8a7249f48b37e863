"""CONV_2D of float activations and a filter of int8 or int4.

Source: EvalHybrid and EvalHybridPerChannel of tflite/kernels/conv.cc, HybridConvPerChannel of
tflite/kernels/internal/reference/conv.h.
"""

from __future__ import annotations

import numpy as np

from tflite_vk.ir.attributes import Conv2DAttributes
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.conv_2d import Conv2D
from tflite_vk.ops.hybrid.activations import INT8_OR_INT4, check_hybrid, quantize_rows, scale_sums
from tflite_vk.ops.quantized.conv_2d import integer_product
from tflite_vk.ops.quantized.product import lower_sums
from tflite_vk.ops.quantized.weights import filter_values
from tflite_vk.ops.registry import register
from tflite_vk.ops.window import check_window


@register
class HybridConv2D(Conv2D):
    """CONV_2D."""

    kind = "hybrid"
    notes = (
        "constant filter of INT8 or INT4; activations are quantized while running, as TFLite does"
    )

    def check(self, node: Node, graph: Graph) -> str | None:
        a = node.attributes
        assert isinstance(a, Conv2DAttributes)
        window = check_window(
            stride_h=a.stride_h,
            stride_w=a.stride_w,
            dilation_h_factor=a.dilation_h_factor,
            dilation_w_factor=a.dilation_w_factor,
        )
        return window or check_hybrid(graph, node, 0, INT8_OR_INT4)

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        source, weights = ctx.graph.input(node, 0), ctx.graph.input(node, 1)
        assert weights.quantization is not None
        product, values = integer_product(ctx.graph, node, filter_values(weights), 0)
        per_channel = not weights.quantization.is_per_tensor
        rows = quantize_rows(
            ctx,
            node,
            ctx.buffer(source.id),
            source.shape,
            source.shape[0],
            is_asymmetric=per_channel,
        )
        sums = lower_sums(ctx, node, product, rows.values, rows.found, values)
        of_weights = np.asarray(values.sum(axis=(1, 2)))
        scale_sums(ctx, node, rows, sums, of_weights, scales_first=not per_channel)
