"""DEPTHWISE_CONV_2D of float activations and an int8 filter.

Source: EvalHybridPerChannel of tflite/kernels/depthwise_conv.cc, DepthwiseConvHybridPerChannel of
tflite/kernels/internal/reference/integer_ops/depthwise_conv.h.
"""

from __future__ import annotations

import numpy as np

from tflite_vk.ir.attributes import DepthwiseConv2DAttributes
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.layout import words_for
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.depthwise_conv_2d import DepthwiseConv2D
from tflite_vk.ops.hybrid.activations import check_hybrid, quantize_rows, scale_sums
from tflite_vk.ops.quantized.depthwise_conv_2d import lower_depthwise
from tflite_vk.ops.quantized.weights import filter_values
from tflite_vk.ops.registry import register
from tflite_vk.ops.window import check_window


@register
class HybridDepthwiseConv2D(DepthwiseConv2D):
    """DEPTHWISE_CONV_2D."""

    kind = "hybrid"
    notes = "constant int8 filter with a scale for each output channel; activations are quantized while running, as TFLite does"

    def check(self, node: Node, graph: Graph) -> str | None:
        a = node.attributes
        assert isinstance(a, DepthwiseConv2DAttributes)
        window = check_window(
            stride_h=a.stride_h,
            stride_w=a.stride_w,
            dilation_h_factor=a.dilation_h_factor,
            dilation_w_factor=a.dilation_w_factor,
        )
        reason = window or check_hybrid(graph, node, axis=3)
        q = graph.input(node, 1).quantization
        if reason is None and q is not None and len(q.scale) != graph.output(node).shape[3]:
            return "filter has one scale (TFLite takes one for each output channel)"
        return reason

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        source, output = ctx.graph.input(node, 0), ctx.graph.output(node)
        rows = quantize_rows(
            ctx, node, ctx.buffer(source.id), source.shape, source.shape[0], is_asymmetric=True
        )
        sums = ctx.temporary(words_for(output.shape, "i32"), f"{output.name}/sums")
        values = filter_values(ctx.graph.input(node, 1))
        buffers = (rows.values, rows.found, sums)
        lower_depthwise(ctx, node, "_raw", buffers, values, push=(0,) * 7)
        # The kernel has subtracted the zero point from every input.
        nothing = np.zeros(output.shape[3], np.int64)
        scale_sums(ctx, node, rows, sums, nothing, scales_first=True)
