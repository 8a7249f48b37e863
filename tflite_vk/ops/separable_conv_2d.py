"""A DEPTHWISE_CONV_2D and the 1x1 CONV_2D that alone reads its result, in one kernel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflite_vk.device_info import DeviceInfo
from tflite_vk.dtypes import DType
from tflite_vk.epilogue import UNARY_CODES
from tflite_vk.ir.attributes import (
    Conv2DAttributes,
    DepthwiseConv2DAttributes,
    SeparableConv2DAttributes,
)
from tflite_vk.ir.graph import Graph, Node, Tensor
from tflite_vk.layout import pack
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.conv_weights import bias_buffer, filter_buffer, filter_build, filter_storage
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.registry import register
from tflite_vk.ops.separable_tile import SeparableShape, make_tile, pays, separable_offer
from tflite_vk.ops.sizes import Size
from tflite_vk.ops.window import Window
from tflite_vk.program import int_word
from tflite_vk.shape import LANES, Shape, ceil_div

_BETWEEN = frozenset({"RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "HARD_SWISH"})
"""Steps of the depthwise part that cost next to nothing, and so may be computed by several workgroups."""

_POINTWISE_BIAS = 4
"""Position among the node's inputs: input, depthwise filter and bias, filter, bias."""


def joins_depthwise(before: Node, node: Node, graph: Graph, device: DeviceInfo) -> bool:
    """True where a CONV_2D and the node whose result it reads are such a pair, and one kernel pays.

    Args:
        before: the node that makes input 0, and which the device takes by itself.
        node: CONV_2D, taken too.
        graph: with elementwise operators fused.
        device: the device.
    """
    return _is_pair(before, node, graph) and pays(_shape_of(before, node, graph), device)


def _is_pair(before: Node, node: Node, graph: Graph) -> bool:
    a = node.attributes
    if before.op != "DEPTHWISE_CONV_2D" or not isinstance(a, Conv2DAttributes):
        return False
    source, middle = graph.input(before, 0), graph.output(before)
    filters = graph.input(before, 1), graph.input(node, 1)
    floats = (source, middle, *filters, graph.output(node))
    if any(t.dtype is not DType.FLOAT32 for t in floats) or 0 in graph.output(node).shape:
        return False
    if source.is_variable:
        return False  # read where the convolution stands, it might be another value
    channels = middle.shape[3]
    return (
        source.shape[3] == channels
        and filters[1].shape[1:] == (1, 1, channels)
        and (a.stride_h, a.stride_w) == (1, 1)
        and _is_half(filters[0]) == _is_half(filters[1])
        and all(t.is_const for t in filters)
        and len(before.steps) <= 1
        and all(s.op in _BETWEEN and s.operand is None for s in before.steps)
    )


def _is_half(tensor: Tensor) -> bool:
    return tensor.data is not None and tensor.data.dtype == np.float16


def _shape_of(depthwise: Node, pointwise: Node, graph: Graph) -> SeparableShape:
    return _shape(graph.input(depthwise, 1).shape, graph.output(pointwise).shape)


def _shape(depthwise_filter: Shape, output: Shape) -> SeparableShape:
    n, oh, ow, oc = output
    _, kh, kw, c = depthwise_filter
    return SeparableShape(n * oh * ow, ceil_div(oc, LANES), ceil_div(c, LANES), kh * kw)


@register
class SeparableConv2D(Operator):
    """SEPARABLE_CONV_2D, which passes/fuse_separable.py makes; no model has it."""

    versions = {"SEPARABLE_CONV_2D": 1}
    ends_in_epilogue = True

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape]:
        n, h, w, _ = graph.input(node, 0).shape
        kh, kw = graph.input(node, 1).shape[1:3]
        a = node.attributes
        assert isinstance(a, DepthwiseConv2DAttributes)
        rows = Window(kh, a.stride_h, a.dilation_h_factor).output_size(h, a.padding)
        columns = Window(kw, a.stride_w, a.dilation_w_factor).output_size(w, a.padding)
        return [(n, rows, columns, graph.input(node, 3).shape[0])]

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        a = node.attributes
        assert isinstance(a, SeparableConv2DAttributes)
        source, output = ctx.graph.input(node, 0), ctx.graph.output(node)
        depthwise, pointwise = ctx.graph.input(node, 1), ctx.graph.input(node, 3)
        assert depthwise.data is not None
        n, oh, ow, oc = output.shape
        _, h, w, c = source.shape
        kh, kw = depthwise.shape[1:3]
        shape = _shape(depthwise.shape, output.shape)
        shader = filter_build(ctx, "separable_conv_2d", depthwise)
        inputs = [
            ctx.buffer(source.id),
            ctx.constant(pack(depthwise.data, filter_storage(ctx, depthwise)), depthwise.name),
            bias_buffer(ctx, node, c),
            filter_buffer(ctx, node, pointwise, 1),
            bias_buffer(ctx, node, oc, _POINTWISE_BIAS),
        ]
        target = ctx.buffer(output.id)

        def add(size: Size) -> None:
            tile = make_tile(size, shape, ctx.device)
            ctx.compute(
                node,
                shader,
                inputs,
                target,
                local=tile.local,
                groups=tile.groups,
                spec=(
                    tile.pixels,
                    tile.channel_groups,
                    c % LANES,
                    tile.depth,
                    shape.input_groups,
                    tile.chunk,
                    tile.unit,
                    tile.slice,
                    kh,
                    kw,
                    UNARY_CODES[a.between] if a.between else 0,
                ),
                push=(
                    shape.num_pixels,
                    shape.output_groups,
                    oh,
                    ow,
                    h,
                    w,
                    a.stride_h,
                    a.stride_w,
                    a.dilation_h_factor,
                    a.dilation_w_factor,
                    int_word(Window(kh, a.stride_h, a.dilation_h_factor).pad_before(h, oh)),
                    int_word(Window(kw, a.stride_w, a.dilation_w_factor).pad_before(w, ow)),
                ),
                flops=2 * n * oh * ow * c * (kh * kw + oc),
            )

        signature = f"{ctx.variant(shader)} {source.shape} {depthwise.shape} {oc} {a}"
        ctx.add_sized(separable_offer(signature, shape, ctx.device), add)
