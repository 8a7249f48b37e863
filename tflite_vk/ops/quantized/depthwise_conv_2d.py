"""DEPTHWISE_CONV_2D of int8 and uint8.

Source: DepthwiseConvPerChannel of tflite/kernels/internal/reference/integer_ops/depthwise_conv.h, and
DepthwiseConv of uint8 in reference/depthwiseconv_uint8.h.
"""

from __future__ import annotations

import numpy as np

from tflite_vk.device_info import DeviceInfo
from tflite_vk.ir.attributes import DepthwiseConv2DAttributes
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.layout import pack
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.depthwise_conv_2d import DepthwiseConv2D
from tflite_vk.ops.launch import shrink_local
from tflite_vk.ops.quantization import EIGHT_BIT, affine, check_activation
from tflite_vk.ops.quantized.product import channels_buffer, output_push
from tflite_vk.ops.quantized.weights import (
    bias_values,
    check_operands,
    filter_values,
    filter_zero,
    output_scales,
)
from tflite_vk.ops.registry import register
from tflite_vk.ops.window import Window, check_window
from tflite_vk.program import int_word
from tflite_vk.shape import LANES, ceil_div, num_vectors

_MAX_UNROLLED_SPAN = 24
"""Input registers of the row kernel; a wider span would spill, so it runs the general one."""


def _tile(device: DeviceInfo) -> int:
    """Pixels of a row that one invocation makes: a software driver is bound by loads."""
    return 8 if device.is_software else 4


@register
class QuantizedDepthwiseConv2D(DepthwiseConv2D):
    """DEPTHWISE_CONV_2D."""

    kind = "quantized"
    dtypes = EIGHT_BIT
    ends_in_epilogue = False
    notes = "constant filter, one scale or one for each output channel; exact"

    def check(self, node: Node, graph: Graph) -> str | None:
        a = node.attributes
        assert isinstance(a, DepthwiseConv2DAttributes)
        window = check_window(
            stride_h=a.stride_h,
            stride_w=a.stride_w,
            dilation_h_factor=a.dilation_h_factor,
            dilation_w_factor=a.dilation_w_factor,
        )
        return (
            window
            or check_activation(a.fused_activation_function)
            or check_operands(graph, node, axis=3)
        )

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        a = node.attributes
        assert isinstance(a, DepthwiseConv2DAttributes)
        source, weights = ctx.graph.input(node, 0), ctx.graph.input(node, 1)
        output = ctx.graph.output(node)
        n, oh, ow, oc = output.shape
        _, h, w, c = source.shape
        kh, kw = weights.shape[1:3]
        q = affine(source)
        sizes = (oh, ow, h, w, kh)
        pad = (
            int_word(Window(kh, a.stride_h, a.dilation_h_factor).pad_before(h, oh)),
            int_word(Window(kw, a.stride_w, a.dilation_w_factor).pad_before(w, ow)),
        )
        zeros = (q.flip, int_word(q.zero_point), int_word(filter_zero(weights)))
        values = filter_values(weights).astype(np.int8)
        bindings = [
            ctx.buffer(source.id),
            ctx.constant(pack(values, "i8"), weights.name),
            channels_buffer(
                ctx,
                node,
                bias_values(ctx.graph, node, oc),
                output_scales(ctx.graph, node),
                as_double=False,
            ),
            ctx.buffer(output.id),
        ]
        tail = output_push(ctx, node, a.fused_activation_function)
        flops = 2 * output.num_elements * kh * kw
        tile = _tile(ctx.device)
        span = (tile - 1) * a.stride_w + (kw - 1) * a.dilation_w_factor + 1
        if oc == c and span <= _MAX_UNROLLED_SPAN:
            groups = ceil_div(c, LANES)
            per_row = ceil_div(ow, tile)
            tiles = n * oh * per_row
            x, y = shrink_local(min(8 if ctx.device.is_software else 32, groups), 8, ctx.limits)
            rows = ceil_div(tiles, y)
            z = ceil_div(rows, ctx.limits.max_workgroup_count[1])
            ctx.dispatch(
                node,
                "depthwise_conv_2d_i8",
                bindings,
                groups=(ceil_div(groups, x), ceil_div(rows, z), z),
                spec=(x, y, 1, tile, kw, a.stride_w, a.dilation_w_factor),
                push=(
                    *(tiles, per_row, groups),
                    *(*sizes, a.stride_h, a.dilation_h_factor),
                    *(*pad, *zeros, *tail),
                ),
                flops=flops,
            )
            return
        ctx.dispatch_flat(
            node,
            "depthwise_conv_2d_general_i8",
            bindings,
            invocations=num_vectors(output.shape),
            push=(
                *(num_vectors(output.shape), ceil_div(oc, LANES), ceil_div(c, LANES), c, oc // c),
                *(*sizes, kw, a.stride_h, a.stride_w, a.dilation_h_factor, a.dilation_w_factor),
                *(*pad, *zeros, *tail),
            ),
            flops=flops,
        )
