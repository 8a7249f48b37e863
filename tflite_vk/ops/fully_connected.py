"""FULLY_CONNECTED: any rank, implicit flattening, keep_num_dims, constant or run-time filter."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tflite_vk.device_info import DeviceInfo
from tflite_vk.ir.attributes import FullyConnectedAttributes
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.conv_2d import Product, lower_product
from tflite_vk.ops.conv_weights import (
    bias_buffer,
    check_bias_size,
    check_weights,
    filter_buffer,
    filter_build,
)
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.registry import register
from tflite_vk.ops.repack import repack
from tflite_vk.ops.sizes import Offer, Size, fits_workgroup, powers_of_two
from tflite_vk.shape import LANES, Shape, ceil_div, num_elements

FEW_ROWS = 4
"""With fewer rows the weights are read once for each: a matrix-vector kernel; else a product."""


@register
class FullyConnected(Operator):
    """FULLY_CONNECTED."""

    versions = {"FULLY_CONNECTED": 14}
    ends_in_epilogue = True
    notes = "weights_format DEFAULT; bias optional"

    def check(self, node: Node, graph: Graph) -> str | None:
        a = node.attributes
        assert isinstance(a, FullyConnectedAttributes)
        if graph.input(node, 0).is_const:
            return "its input is a constant"
        if a.weights_format != "DEFAULT":
            return f"weights_format is {a.weights_format} (supported: DEFAULT)"
        return check_weights(graph, node)

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape]:
        source, weights = graph.input(node, 0).shape, graph.input(node, 1).shape
        a = node.attributes
        assert isinstance(a, FullyConnectedAttributes)
        if len(weights) != 2 or 0 in weights:
            raise ValueError(f"filter {list(weights)} must be a matrix that isn't empty")
        outputs, inputs = weights
        if num_elements(source) % inputs:
            raise ValueError(f"input {list(source)} doesn't divide into rows of {inputs}")
        check_bias_size(graph, node, outputs)
        if a.keep_num_dims:
            if not source or source[-1] != inputs:
                raise ValueError(
                    f"keep_num_dims needs rows of {inputs}, the input is {list(source)}"
                )
            return [(*source[:-1], outputs)]
        return [(num_elements(source) // inputs, outputs)]

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        weights = ctx.graph.input(node, 1)
        outputs, inputs = weights.shape
        source = ctx.graph.input(node, 0)
        rows = source.num_elements // inputs
        x = repack(ctx, node, source, (rows, inputs))
        bias = bias_buffer(ctx, node, outputs)
        if rows >= FEW_ROWS:
            product = Product(
                num_pixels=rows,
                output_channels=outputs,
                input_channels=inputs,
                input_stride=ceil_div(inputs, LANES),
                output_size=(1, rows),
                input_size=(1, rows),
                kernel=(1, 1),
                stride=(1, 1),
                dilation=(1, 1),
                pad=(0, 0),
            )
            lower_product(ctx, node, product, x, weights, bias)
            return
        output_groups, input_groups = ceil_div(outputs, LANES), ceil_div(inputs, LANES)
        shader = filter_build(ctx, "fully_connected", weights)
        buffers = [x, filter_buffer(ctx, node, weights, 1), bias]
        target = ctx.buffer(node.outputs[0])

        def add(size: Size) -> None:
            ctx.compute(
                node,
                shader,
                buffers,
                target,
                local=(size[0], size[1], 1),
                groups=(ceil_div(output_groups, size[0]), rows, 1),
                spec=(inputs % LANES,),
                push=(output_groups, input_groups),
                flops=2 * rows * inputs * outputs,
            )

        signature = f"{ctx.variant(shader)} {rows}x{inputs}x{outputs}"
        rule = _local_size(ctx.device, input_groups)
        sizes = partial(_local_sizes, ctx.device, output_groups, input_groups)
        ctx.add_sized(Offer(signature, rule, sizes), add)


def _local_size(device: DeviceInfo, input_groups: int) -> Size:
    """Local size by rule: x along the outputs, y along the sum.

    A GPU has far more lanes than outputs: share each sum. A software driver gains nothing. The
    kernel halves the number of sharers, so it is a power of two.
    """
    x = 8
    most = min(256, device.limits.max_workgroup_invocations) // x
    sharers = 1 << (most.bit_length() - 1)
    return x, 1 if device.is_software or input_groups < 32 else sharers


def _local_sizes(device: DeviceInfo, output_groups: int, input_groups: int) -> list[Size]:
    """Local sizes worth trying."""
    widths = [x for x in (4, 8, 16, 32, 64) if x < 2 * output_groups or x == 4]
    sharers = powers_of_two(1, min(64, max(1, input_groups)))
    return [
        (x, y)
        for x in widths
        for y in sharers
        if x * y >= 32 and fits_workgroup(x, y, 1, device.limits)
    ]
