"""FULLY_CONNECTED of int8, uint8 and int16.

Source: FullyConnected and FullyConnectedPerChannel of tflite/kernels/internal/reference/integer_ops/
fully_connected.h, FullyConnected of uint8 in reference/fully_connected.h. Unlike the convolutions,
they scale their sums in double.
"""

from __future__ import annotations

from tflite_vk.ir.attributes import FullyConnectedAttributes
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.conv_2d import Product
from tflite_vk.ops.fully_connected import FEW_ROWS, FullyConnected
from tflite_vk.ops.quantization import EIGHT_BIT, INTEGERS, affine, check_activation
from tflite_vk.ops.quantized.product import (
    channels_buffer,
    lower_product,
    output_push,
    with_table,
)
from tflite_vk.ops.quantized.weights import (
    Ints,
    bias_values,
    check_operands,
    filter_values,
    filter_zero,
    folded_bias,
    pack_dot4,
)
from tflite_vk.ops.quantized.wide import check_wide, is_wide, lower_wide_product
from tflite_vk.ops.registry import register
from tflite_vk.ops.repack import repack
from tflite_vk.program import int_word
from tflite_vk.shape import LANES, ceil_div


@register
class QuantizedFullyConnected(FullyConnected):
    """FULLY_CONNECTED."""

    kind = "quantized"
    dtypes = INTEGERS
    ends_in_epilogue = False
    notes = (
        "constant filter of INT8 or INT4 (UINT8 for UINT8), one scale or one for each output; bias of INT16 "
        "is INT64, or INT32 by quantized_bias_type; scales in double as TFLite; exact"
    )

    def check(self, node: Node, graph: Graph) -> str | None:
        a = node.attributes
        assert isinstance(a, FullyConnectedAttributes)
        if a.weights_format != "DEFAULT":
            return f"weights_format is {a.weights_format} (supported: DEFAULT)"
        return (
            check_activation(a.fused_activation_function)
            or check_operands(graph, node, axis=0)
            or (check_wide(graph, node, 0) if is_wide(graph.input(node, 0)) else None)
        )

    def takes_table(self, node: Node, graph: Graph) -> bool:
        return graph.made(node).dtype in EIGHT_BIT

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        a = node.attributes
        assert isinstance(a, FullyConnectedAttributes)
        graph = ctx.graph
        source, weights, output = graph.input(node, 0), graph.input(node, 1), graph.output(node)
        assert weights.quantization is not None
        outputs, inputs = weights.shape
        rows = source.num_elements // inputs
        x = repack(ctx, node, source, (rows, inputs))
        q = affine(source)
        values = filter_values(weights).reshape(outputs, 1, inputs)
        if is_wide(source):
            product = rows_product(rows, inputs, outputs)
            lower_wide_product(ctx, node, product, x, values, a.fused_activation_function)
            return
        zero = filter_zero(weights, keeps_int8_zero=True)
        bias = bias_values(graph, node, outputs)
        made = affine(graph.made(node))
        scales = [q.scale * s / made.scale for s in weights.quantization.scale]
        activation = a.fused_activation_function
        if rows >= FEW_ROWS:
            product = rows_product(rows, inputs, outputs)
            lower_product(
                ctx, node, product, x, values, zero, bias, scales, activation, as_double=True
            )
            return
        sums = folded_bias(bias, values, zero, q, (1, 2))
        lower_rows(
            ctx,
            node,
            "",
            (x, channels_buffer(ctx, node, sums, scales, as_double=True), ctx.buffer(output.id)),
            rows,
            values,
            spec=(int(zero != 0), inputs % LANES if zero != 0 else 0, 1),
            push=(q.flip, int_word(zero), *output_push(ctx, node, activation)),
        )


def rows_product(rows: int, inputs: int, outputs: int) -> Product:
    """A product with many rows, as a convolution of pixels in one row."""
    return Product(
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


def lower_rows(
    ctx: LoweringContext,
    node: Node,
    suffix: str,
    buffers: tuple[int, int, int],
    rows: int,
    values: Ints,
    *,
    spec: tuple[int, ...],
    push: tuple[int, ...],
) -> None:
    """Add the dispatch of a product with few rows.

    Args:
        ctx: the program being made.
        node: the node.
        suffix: of the build of fully_connected_i8.
        buffers: input, what its binding 2 reads, output.
        rows: of input and output.
        values: filter [output, 1, input] as int8.
        spec: its own specialization constants.
        push: its last push words.
    """
    outputs, _, inputs = values.shape
    output_groups, input_groups = ceil_div(outputs, LANES), ceil_div(inputs, LANES)
    local_x = 8 if ctx.device.is_software else 16
    # A GPU has far more lanes than outputs: share each sum. A software driver gains nothing.
    local_y = 1 if ctx.device.is_software or input_groups < 32 else 8
    bindings, has_table = with_table(ctx, node, suffix, buffers)
    source, *others = bindings
    name = ctx.graph.input(node, 1).name if node.has_input(1) else "weights"
    weights = ctx.constant(pack_dot4(values), name)
    ctx.dispatch(
        node,
        f"fully_connected_i8{suffix}",
        [source, weights, *others],
        groups=(ceil_div(output_groups, local_x), rows, 1),
        spec=(local_x, local_y, 1, *spec, *has_table),
        push=(output_groups, input_groups, *push),
        flops=2 * rows * inputs * outputs,
    )
