"""CONV_2D of int8, uint8 and int16.

Source: ConvPerChannel of tflite/kernels/internal/reference/integer_ops/conv.h, and Conv of uint8 in
reference/conv.h.
"""

from __future__ import annotations

import numpy as np

from tflite_vk.ir.attributes import Conv2DAttributes
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.conv_2d import Conv2D, Product, product_of
from tflite_vk.ops.quantization import EIGHT_BIT, INTEGERS, check_activation
from tflite_vk.ops.quantized.product import lower_product
from tflite_vk.ops.quantized.weights import (
    Ints,
    bias_values,
    check_operands,
    filter_values,
    filter_zero,
    output_scales,
)
from tflite_vk.ops.quantized.wide import check_wide, is_wide, lower_wide_product
from tflite_vk.ops.registry import register
from tflite_vk.ops.window import check_window
from tflite_vk.shape import LANES


@register
class QuantizedConv2D(Conv2D):
    """CONV_2D."""

    kind = "quantized"
    dtypes = INTEGERS
    ends_in_epilogue = False
    notes = (
        "constant filter of INT8 or INT4 (UINT8 for UINT8), one scale or one for each output channel; "
        "bias of INT16 is INT64, or INT32 by quantized_bias_type; exact"
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
        return (
            window
            or check_activation(a.fused_activation_function)
            or check_operands(graph, node, axis=0)
            or (check_wide(graph, node, 0) if is_wide(graph.input(node, 0)) else None)
        )

    def takes_table(self, node: Node, graph: Graph) -> bool:
        return graph.made(node).dtype in EIGHT_BIT

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        a = node.attributes
        assert isinstance(a, Conv2DAttributes)
        source, weights = ctx.graph.input(node, 0), ctx.graph.input(node, 1)
        zero = filter_zero(weights)
        product, values = integer_product(ctx.graph, node, filter_values(weights), zero)
        if is_wide(source):
            x = ctx.buffer(source.id)
            lower_wide_product(ctx, node, product, x, values, a.fused_activation_function)
            return
        lower_product(
            ctx,
            node,
            product,
            ctx.buffer(source.id),
            values,
            zero,
            bias_values(ctx.graph, node, product.output_channels),
            output_scales(ctx.graph, node),
            a.fused_activation_function,
        )


def integer_product(graph: Graph, node: Node, values: Ints, zero: int) -> tuple[Product, Ints]:
    """The product that a convolution of integers is, and its filter [output, taps, input].

    Args:
        graph: the graph.
        node: CONV_2D.
        values: its filter in its own shape.
        zero: the filter's zero point.
    """
    oc, kh, kw, ic = values.shape
    values = values.reshape(oc, kh * kw, ic)
    groups = graph.input(node, 0).shape[3] // ic
    if groups > 1 and (ic % LANES or (oc // groups) % LANES):
        values, groups = ungroup(values, groups, zero), 1
    return product_of(graph, node, (kh, kw), values.shape[2], groups), values


def ungroup(values: Ints, groups: int, zero: int) -> Ints:
    """The filter of an equal convolution without groups: real zeros where channels don't meet."""
    outputs, taps, inputs = values.shape
    per_group = outputs // groups
    dense = np.full((outputs, taps, inputs * groups), zero, np.int64)
    for g in range(groups):
        own = slice(g * per_group, (g + 1) * per_group)
        dense[own, :, g * inputs : (g + 1) * inputs] = values[own]
    return dense
