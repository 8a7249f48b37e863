"""FULLY_CONNECTED: any rank, implicit flattening, keep_num_dims, constant or run-time filter."""

from __future__ import annotations

from collections.abc import Sequence

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
        local_x = 8
        # A GPU has far more lanes than outputs: share each sum. A software driver gains nothing.
        # The kernel halves the number of sharers, so it is a power of two.
        most = min(256, ctx.limits.max_workgroup_invocations) // local_x
        sharers = 1 << (most.bit_length() - 1)
        local_y = 1 if ctx.device.is_software or input_groups < 32 else sharers
        ctx.compute(
            node,
            filter_build(ctx, "fully_connected", weights),
            [x, filter_buffer(ctx, node, weights, 1), bias],
            ctx.buffer(node.outputs[0]),
            local=(local_x, local_y, 1),
            groups=(ceil_div(output_groups, local_x), rows, 1),
            spec=(inputs % LANES,),
            push=(output_groups, input_groups),
            flops=2 * rows * inputs * outputs,
        )
