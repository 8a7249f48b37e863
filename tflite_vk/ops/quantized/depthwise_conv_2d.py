"""DEPTHWISE_CONV_2D of int8, uint8 and int16.

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
from tflite_vk.ops.quantization import EIGHT_BIT, INTEGERS, affine, check_activation
from tflite_vk.ops.quantized.product import channels_buffer, output_push, with_table
from tflite_vk.ops.quantized.weights import (
    Ints,
    bias_values,
    check_operands,
    filter_values,
    filter_zero,
    output_scales,
)
from tflite_vk.ops.quantized.wide import check_wide, is_wide, wide_of
from tflite_vk.ops.registry import register
from tflite_vk.ops.window import Window, check_window
from tflite_vk.program import int_word
from tflite_vk.shape import LANES, ceil_div

_MAX_UNROLLED_SPAN = 24
"""Input registers of the row kernel; a wider span would spill, so it runs the general one."""


def _tile(device: DeviceInfo) -> int:
    """Pixels of a row that one invocation makes: a software driver is bound by loads."""
    return 8 if device.is_software else 4


@register
class QuantizedDepthwiseConv2D(DepthwiseConv2D):
    """DEPTHWISE_CONV_2D."""

    kind = "quantized"
    dtypes = INTEGERS
    ends_in_epilogue = False
    notes = (
        "constant filter of INT8, with INT8 also of INT4 (UINT8 for UINT8), one scale or one for each "
        "output channel; bias of INT16 is INT64; exact"
    )

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
            or (check_wide(graph, node, 3) if is_wide(graph.input(node, 0)) else None)
        )

    def takes_table(self, node: Node, graph: Graph) -> bool:
        return graph.made(node).dtype in EIGHT_BIT

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        a = node.attributes
        assert isinstance(a, DepthwiseConv2DAttributes)
        source, weights = ctx.graph.input(node, 0), ctx.graph.input(node, 1)
        if is_wide(source):
            _lower_wide(ctx, node)
            return
        channels = weights.shape[3]
        q = affine(source)
        lower_depthwise(
            ctx,
            node,
            "",
            (
                ctx.buffer(source.id),
                channels_buffer(
                    ctx,
                    node,
                    bias_values(ctx.graph, node, channels),
                    output_scales(ctx.graph, node),
                    as_double=False,
                ),
                ctx.buffer(node.outputs[0]),
            ),
            filter_values(weights),
            push=(
                *(q.flip, int_word(q.zero_point), int_word(filter_zero(weights))),
                *output_push(ctx, node, a.fused_activation_function),
            ),
        )


def _lower_wide(ctx: LoweringContext, node: Node) -> None:
    a = node.attributes
    assert isinstance(a, DepthwiseConv2DAttributes)
    source, weights = ctx.graph.input(node, 0), ctx.graph.input(node, 1)
    values = filter_values(weights)
    wide = wide_of(ctx, node, np.moveaxis(values, 3, 0), a.fused_activation_function)
    packed = ctx.constant(pack(values.astype(np.int8), "i8"), weights.name)
    buffers = [ctx.buffer(source.id), packed, wide.channels, ctx.buffer(node.outputs[0])]
    _dispatch_general(
        ctx, node, "depthwise_conv_2d_i16", buffers, values, spec=wide.spec, push=wide.push
    )


def lower_depthwise(
    ctx: LoweringContext,
    node: Node,
    suffix: str,
    buffers: tuple[int, int, int],
    values: Ints,
    *,
    push: tuple[int, ...],
) -> None:
    """Add the dispatch of a depthwise convolution.

    Args:
        ctx: the program being made.
        node: DEPTHWISE_CONV_2D.
        suffix: of the shaders' build.
        buffers: input, what binding 2 reads, output.
        values: filter as int8, in its own shape.
        push: the last push words.
    """
    a = node.attributes
    assert isinstance(a, DepthwiseConv2DAttributes)
    n, oh, ow, oc = ctx.graph.output(node).shape
    _, h, w, c = ctx.graph.input(node, 0).shape
    kh, kw = values.shape[1:3]
    sizes = (oh, ow, h, w, kh)
    with_function, has_table = with_table(ctx, node, suffix, buffers)
    source, *others = with_function
    weights = ctx.constant(pack(values.astype(np.int8), "i8"), ctx.graph.input(node, 1).name)
    bindings = [source, weights, *others]
    flops = 2 * n * oh * ow * oc * kh * kw
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
            f"depthwise_conv_2d_i8{suffix}",
            bindings,
            groups=(ceil_div(groups, x), ceil_div(rows, z), z),
            spec=(x, y, 1, tile, kw, a.stride_w, a.dilation_w_factor, *has_table),
            push=(
                *(tiles, per_row, groups),
                *(*sizes, a.stride_h, a.dilation_h_factor),
                *(*_pads(ctx, node, kh, kw), *push),
            ),
            flops=flops,
        )
        return
    shader = f"depthwise_conv_2d_general_i8{suffix}"
    _dispatch_general(ctx, node, shader, bindings, values, spec=has_table, push=push)


def _dispatch_general(
    ctx: LoweringContext,
    node: Node,
    shader: str,
    bindings: list[int],
    values: Ints,
    *,
    spec: tuple[int, ...],
    push: tuple[int, ...],
) -> None:
    """Add the dispatch of a kernel for any multiplier; the arguments are those of lower_depthwise."""
    a = node.attributes
    assert isinstance(a, DepthwiseConv2DAttributes)
    n, oh, ow, oc = ctx.graph.output(node).shape
    _, h, w, c = ctx.graph.input(node, 0).shape
    kh, kw = values.shape[1:3]
    vectors = n * oh * ow * ceil_div(oc, LANES)
    ctx.dispatch_flat(
        node,
        shader,
        bindings,
        invocations=vectors,
        spec=spec,
        push=(
            *(vectors, ceil_div(oc, LANES), ceil_div(c, LANES), c, oc // c),
            *(oh, ow, h, w, kh, kw),
            *(a.stride_h, a.stride_w, a.dilation_h_factor, a.dilation_w_factor),
            *_pads(ctx, node, kh, kw),
            *push,
        ),
        flops=2 * n * oh * ow * oc * kh * kw,
    )


def _pads(ctx: LoweringContext, node: Node, kh: int, kw: int) -> tuple[int, int]:
    """Words of the padding above and left."""
    a = node.attributes
    assert isinstance(a, DepthwiseConv2DAttributes)
    _, oh, ow, _ = ctx.graph.output(node).shape
    _, h, w, _ = ctx.graph.input(node, 0).shape
    return (
        int_word(Window(kh, a.stride_h, a.dilation_h_factor).pad_before(h, oh)),
        int_word(Window(kw, a.stride_w, a.dilation_w_factor).pad_before(w, ow)),
    )
