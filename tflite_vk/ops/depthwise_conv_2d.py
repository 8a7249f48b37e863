"""DEPTHWISE_CONV_2D: any multiplier, stride, dilation, padding and batch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tflite_vk.device_info import DeviceInfo
from tflite_vk.ir.attributes import DepthwiseConv2DAttributes
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.layout import pack
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.conv_weights import (
    bias_buffer,
    check_bias_size,
    check_weights,
    filter_build,
    filter_storage,
)
from tflite_vk.ops.launch import shrink_local
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.registry import register
from tflite_vk.ops.sizes import Offer, Size, fits_workgroup
from tflite_vk.ops.window import Window, check_window
from tflite_vk.program import int_word
from tflite_vk.shape import LANES, Shape, ceil_div, num_vectors

_MAX_UNROLLED_SPAN = 24
"""Input registers of the row kernel; a wider span would spill, so it runs the general one."""

_MOST_LIVE = 48
"""Sums that the kernel going down columns keeps; more take a driver seconds to compile."""

_SOFTWARE_ROWS = 14
"""Rows that an invocation goes down on a software driver, which is bound by loads: two to four
times faster on lavapipe than one row at a time. A GPU hides loads by having more invocations: one
pixel each was the fastest on an H200."""


@register
class DepthwiseConv2D(Operator):
    """DEPTHWISE_CONV_2D."""

    versions = {"DEPTHWISE_CONV_2D": 7}
    ends_in_epilogue = True
    notes = "the multiplier is output channels / input channels, as TFLite's kernels take it"

    def check(self, node: Node, graph: Graph) -> str | None:
        a = node.attributes
        assert isinstance(a, DepthwiseConv2DAttributes)
        if graph.input(node, 0).is_const:
            return "its input is a constant"
        reason = check_window(
            stride_h=a.stride_h,
            stride_w=a.stride_w,
            dilation_h_factor=a.dilation_h_factor,
            dilation_w_factor=a.dilation_w_factor,
        )
        return reason or check_weights(graph, node)

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape]:
        source, weights = graph.input(node, 0).shape, graph.input(node, 1).shape
        a = node.attributes
        assert isinstance(a, DepthwiseConv2DAttributes)
        if len(source) != 4 or len(weights) != 4:
            raise ValueError(f"input {list(source)} and filter {list(weights)} must have rank 4")
        n, h, w, c = source
        one, kh, kw, o = weights
        if one != 1 or c == 0 or o % c or 0 in weights:
            raise ValueError(f"filter {list(weights)} doesn't fit an input of {c} channels")
        check_bias_size(graph, node, o)
        if (reason := check_window(stride_h=a.stride_h, stride_w=a.stride_w)) is not None:
            raise ValueError(reason)
        rows = Window(kh, a.stride_h, a.dilation_h_factor).output_size(h, a.padding)
        columns = Window(kw, a.stride_w, a.dilation_w_factor).output_size(w, a.padding)
        return [(n, rows, columns, o)]

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        a = node.attributes
        assert isinstance(a, DepthwiseConv2DAttributes)
        source, weights = ctx.graph.input(node, 0), ctx.graph.input(node, 1)
        output = ctx.graph.output(node)
        n, oh, ow, oc = output.shape
        _, h, w, c = source.shape
        kh, kw = weights.shape[1:3]
        pad = (
            int_word(Window(kh, a.stride_h, a.dilation_h_factor).pad_before(h, oh)),
            int_word(Window(kw, a.stride_w, a.dilation_w_factor).pad_before(w, ow)),
        )
        # The plain tensor layout is the kernels' layout, so a run-time filter needs no packing.
        filter_at = (
            ctx.buffer(weights.id)
            if weights.data is None
            else ctx.constant(pack(weights.data, filter_storage(ctx, weights)), weights.name)
        )
        inputs = [ctx.buffer(source.id), filter_at, bias_buffer(ctx, node, oc)]
        target = ctx.buffer(output.id)
        flops = 2 * output.num_elements * kh * kw
        rule = _size(a, (kh, kw), output.shape, ctx.device)
        if oc == c and _span(rule[0], a, kw) <= _MAX_UNROLLED_SPAN:
            groups = ceil_div(c, LANES)

            def add(size: Size) -> None:
                tile, rows, x, y = size
                per_row, per_column = ceil_div(ow, tile), ceil_div(oh, rows)
                tiles = n * per_column * per_row
                count = ceil_div(tiles, y)
                z = ceil_div(count, ctx.limits.max_workgroup_count[1])
                goes_down = rows > 1
                shader = "depthwise_conv_2d_rows" if goes_down else "depthwise_conv_2d"
                columns = (kw, a.stride_w, a.dilation_w_factor)
                ctx.compute(
                    node,
                    filter_build(ctx, shader, weights),
                    inputs,
                    target,
                    local=(x, y, 1),
                    groups=(ceil_div(groups, x), ceil_div(count, z), z),
                    spec=(tile, kh, a.stride_h, *columns) if goes_down else (tile, *columns),
                    push=(
                        tiles,
                        per_row,
                        *((per_column, rows) if goes_down else ()),
                        groups,
                        oh,
                        ow,
                        h,
                        w,
                        *(() if goes_down else (kh, a.stride_h, a.dilation_h_factor)),
                        *pad,
                    ),
                    flops=flops,
                )

            build = ctx.variant(filter_build(ctx, "depthwise_conv_2d", weights))
            signature = f"{build} {source.shape} {weights.shape} {a}"
            sizes = partial(_sizes, a, (kh, kw), output.shape, ctx.device)
            ctx.add_sized(Offer(signature, rule, sizes), add)
            return
        ctx.compute_flat(
            node,
            filter_build(ctx, "depthwise_conv_2d_general", weights),
            inputs,
            target,
            invocations=num_vectors(output.shape),
            push=(
                num_vectors(output.shape),
                ceil_div(oc, LANES),
                ceil_div(c, LANES),
                c,
                oc // c,
                oh,
                ow,
                h,
                w,
                kh,
                kw,
                a.stride_h,
                a.stride_w,
                a.dilation_h_factor,
                a.dilation_w_factor,
                *pad,
            ),
            flops=flops,
        )


def _span(tile: int, a: DepthwiseConv2DAttributes, kernel_width: int) -> int:
    """Input pixels of a row that so many neighbouring output pixels read."""
    return (tile - 1) * a.stride_w + (kernel_width - 1) * a.dilation_w_factor + 1


def _can_go_down(a: DepthwiseConv2DAttributes, kernel: tuple[int, int], tile: int) -> bool:
    """True where the kernel that goes down columns can run so many at a time."""
    live = ceil_div(kernel[0], a.stride_h)
    is_small = live * tile <= _MOST_LIVE and _span(tile, a, kernel[1]) <= _MAX_UNROLLED_SPAN
    return a.dilation_h_factor == 1 and a.stride_h <= 2 and kernel[0] * kernel[1] <= 25 and is_small


def _size(
    a: DepthwiseConv2DAttributes, kernel: tuple[int, int], output: Shape, device: DeviceInfo
) -> Size:
    """Pixels of an invocation in a row, rows, and local size x along the channels and y along tiles.

    With one row it is the kernel without a loop over rows.
    """
    _, height, width, channels = output
    x = min(8, ceil_div(channels, LANES))
    if not device.is_software:
        return 1, 1, *shrink_local(x, 128 // x, device.limits)
    # Seven divides the images of most networks for 224 pixels, eight those for 256. With a stride four
    # are as fast, and compile in half the time.
    is_wide = width > 4 and a.stride_w == 1
    tile = min((7, 8), key=lambda t: ceil_div(width, t) * t) if is_wide else 4
    if height > 1 and _can_go_down(a, kernel, tile):
        return tile, min(height, _SOFTWARE_ROWS), *shrink_local(x, 2, device.limits)
    return 4, 1, *shrink_local(x, 8, device.limits)


def _sizes(
    a: DepthwiseConv2DAttributes, kernel: tuple[int, int], output: Shape, device: DeviceInfo
) -> list[Size]:
    """Sizes worth trying."""
    _, height, _, channels = output
    groups = ceil_div(channels, LANES)
    totals = (8, 16, 32, 64) if device.is_software else (64, 128, 256)
    counts = (7, 14, 28) if device.is_software else ()
    widths = [x for x in (1, 2, 4, 8, 16, 32) if x <= groups]
    return [
        (tile, rows, x, total // x)
        for tile in ((1, 2, 4, 7, 8) if device.is_software else (1, 2, 4, 8))
        for rows in dict.fromkeys((1, *(min(height, count) for count in counts)))
        for x in widths[-4:]
        for total in totals
        if _span(tile, a, kernel[1]) <= _MAX_UNROLLED_SPAN
        and (rows == 1 or _can_go_down(a, kernel, tile))
        and total >= x
        and fits_workgroup(x, total // x, 1, device.limits)
    ]
