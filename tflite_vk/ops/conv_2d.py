"""CONV_2D: any stride, dilation, padding, batch and filter size, constant or run-time filter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tflite_vk.device_info import DeviceInfo
from tflite_vk.ir.attributes import Conv2DAttributes
from tflite_vk.ir.graph import Graph, Node, Tensor
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.conv_shared_tile import is_shared, make_shared_tile, with_shared
from tflite_vk.ops.conv_tile import make_tile, shares_loads, tile_offer
from tflite_vk.ops.conv_weights import (
    bias_buffer,
    check_bias_size,
    check_weights,
    filter_buffer,
    filter_build,
)
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.registry import register
from tflite_vk.ops.separable_conv_2d import joins_depthwise
from tflite_vk.ops.sizes import Size
from tflite_vk.ops.window import Window, check_window
from tflite_vk.program import int_word
from tflite_vk.shape import LANES, Shape, ceil_div


@dataclass(frozen=True)
class Product:
    """The matrix product a convolution is, as the kernel's push constants name it."""

    num_pixels: int
    output_channels: int
    input_channels: int
    input_stride: int
    output_size: tuple[int, int]
    input_size: tuple[int, int]
    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    pad: tuple[int, int]
    num_groups: int = 1

    @property
    def is_pointwise(self) -> bool:
        """True where each pixel reads one input pixel, its own."""
        same_size = self.output_size == self.input_size
        return self.kernel == (1, 1) and self.stride == (1, 1) and same_size

    @property
    def words(self) -> tuple[int, ...]:
        """The push constants of its kernels, which other words may follow."""
        output_groups = ceil_div(self.output_channels, LANES)
        return (
            self.num_pixels,
            output_groups,
            ceil_div(self.input_channels, LANES),
            self.input_stride,
            *self.output_size,
            *self.input_size,
            *self.kernel,
            *self.stride,
            *self.dilation,
            *(int_word(p) for p in self.pad),
            output_groups // self.num_groups,
        )

    @property
    def flops(self) -> int:
        """Multiplications and additions."""
        taps = self.kernel[0] * self.kernel[1]
        return 2 * self.num_pixels * self.output_channels * self.input_channels * taps


def product_of(
    graph: Graph, node: Node, kernel: tuple[int, int], input_channels: int, num_groups: int
) -> Product:
    """The product that a CONV_2D is.

    Args:
        graph: the graph.
        node: the node.
        kernel: height and width of its filter.
        input_channels: those of a group.
        num_groups: how many.
    """
    a = node.attributes
    assert isinstance(a, Conv2DAttributes)
    n, oh, ow, oc = graph.output(node).shape
    _, h, w, c = graph.input(node, 0).shape
    kh, kw = kernel
    return Product(
        num_pixels=n * oh * ow,
        output_channels=oc,
        input_channels=input_channels,
        input_stride=ceil_div(c, LANES),
        output_size=(oh, ow),
        input_size=(h, w),
        kernel=kernel,
        stride=(a.stride_h, a.stride_w),
        dilation=(a.dilation_h_factor, a.dilation_w_factor),
        pad=(
            Window(kh, a.stride_h, a.dilation_h_factor).pad_before(h, oh),
            Window(kw, a.stride_w, a.dilation_w_factor).pad_before(w, ow),
        ),
        num_groups=num_groups,
    )


def lower_product(
    ctx: LoweringContext, node: Node, product: Product, source: int, weights: Tensor, bias: int
) -> None:
    """Add the dispatch of `conv_2d`, or of `conv_2d_shared` where that is better.

    Args:
        ctx: the program being made.
        node: CONV_2D or FULLY_CONNECTED.
        product: what to compute.
        source: buffer of the input.
        weights: filter [output, ..., input].
        bias: buffer of the bias.
    """
    output_groups = ceil_div(product.output_channels, LANES)
    input_groups = ceil_div(product.input_channels, LANES)
    taps = product.kernel[0] * product.kernel[1]
    is_sharing = shares_loads(output_groups, ctx.device, product.num_groups > 1)
    direct = filter_build(ctx, "conv_2d_subgroup" if is_sharing else "conv_2d", weights)
    shared = filter_build(ctx, "conv_2d_shared", weights)
    inputs = [source, filter_buffer(ctx, node, weights, taps), bias]
    target = ctx.buffer(node.outputs[0])

    def add(size: Size) -> None:
        make, shader = make_tile, direct
        own: tuple[int, ...] = (int(product.num_groups > 1), size[5])
        if is_sharing:
            own = ()
        elif is_shared(size):
            make, shader, own = make_shared_tile, shared, (size[6], size[5])
        tile = make(size, product.num_pixels, output_groups, ctx.device)
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
                product.input_channels % LANES,
                int(product.is_pointwise),
                *own,
            ),
            push=product.words,
            flops=product.flops,
        )

    offer = tile_offer(
        f"{ctx.variant(direct)} {product}",
        product.num_pixels,
        output_groups,
        ctx.device,
        product.num_groups > 1,
        input_groups,
        is_sharing=is_sharing,
    )
    if product.num_groups == 1:
        offer = with_shared(
            offer, product.num_pixels, output_groups, taps * input_groups, ctx.device
        )
    ctx.add_sized(offer, add)


@register
class Conv2D(Operator):
    """CONV_2D."""

    versions = {"CONV_2D": 8}
    ends_in_epilogue = True
    notes = "filter OHWI, constant or run-time; bias optional; grouped where a constant filter or whole groups of 4"

    def check(self, node: Node, graph: Graph) -> str | None:
        a = node.attributes
        assert isinstance(a, Conv2DAttributes)
        if graph.input(node, 0).is_const:
            return "its input is a constant"
        reason = check_window(
            stride_h=a.stride_h,
            stride_w=a.stride_w,
            dilation_h_factor=a.dilation_h_factor,
            dilation_w_factor=a.dilation_w_factor,
        )
        if reason is not None:
            return reason
        weights = graph.input(node, 1)
        groups = graph.input(node, 0).shape[3] // weights.shape[3]
        if groups > 1 and not weights.is_const and not _has_whole_groups(weights.shape, groups):
            return f"run-time filter in {groups} groups of {weights.shape[3]} channels (supported: multiples of 4)"
        return check_weights(graph, node)

    def joins(self, before: Node, node: Node, graph: Graph, device: DeviceInfo) -> bool:
        return joins_depthwise(before, node, graph, device)

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape]:
        source, weights = graph.input(node, 0).shape, graph.input(node, 1).shape
        a = node.attributes
        assert isinstance(a, Conv2DAttributes)
        if len(source) != 4 or len(weights) != 4:
            raise ValueError(f"input {list(source)} and filter {list(weights)} must have rank 4")
        n, h, w, c = source
        o, kh, kw, i = weights
        if 0 in weights or c % i or o % (c // i):
            raise ValueError(f"filter {list(weights)} doesn't fit an input of {c} channels")
        check_bias_size(graph, node, o)
        if (reason := check_window(stride_h=a.stride_h, stride_w=a.stride_w)) is not None:
            raise ValueError(reason)
        rows = Window(kh, a.stride_h, a.dilation_h_factor).output_size(h, a.padding)
        columns = Window(kw, a.stride_w, a.dilation_w_factor).output_size(w, a.padding)
        return [(n, rows, columns, o)]

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        source, weights = ctx.graph.input(node, 0), ctx.graph.input(node, 1)
        kh, kw = weights.shape[1:3]
        groups = source.shape[3] // weights.shape[3]
        if groups > 1 and not _has_whole_groups(weights.shape, groups):
            weights, groups = _ungroup(weights, groups), 1
        product = product_of(ctx.graph, node, (kh, kw), weights.shape[3], groups)
        lower_product(
            ctx,
            node,
            product,
            ctx.buffer(source.id),
            weights,
            bias_buffer(ctx, node, product.output_channels),
        )


def _has_whole_groups(filter_shape: Shape, groups: int) -> bool:
    """True where no group of four lanes spans two groups of the convolution."""
    return filter_shape[3] % LANES == 0 and (filter_shape[0] // groups) % LANES == 0


def _ungroup(weights: Tensor, groups: int) -> Tensor:
    """The filter of an equal convolution without groups: zeros where channels don't meet."""
    assert weights.data is not None
    o, kh, kw, i = weights.shape
    per_group = o // groups
    dense = np.zeros((o, kh, kw, i * groups), np.float32)
    for g in range(groups):
        outputs = slice(g * per_group, (g + 1) * per_group)
        dense[outputs, :, :, g * i : (g + 1) * i] = weights.data[outputs]
    return replace(weights, shape=dense.shape, data=dense)
