"""TRANSPOSE_CONV of int8, uint8 and int16.

Source: TransposeConv of tflite/kernels/internal/reference/integer_ops/transpose_conv.h, and of uint8 in
reference/transpose_conv.h.
"""

from __future__ import annotations

import numpy as np

from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import TransposeConvAttributes
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.layout import pack
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.quantization import EIGHT_BIT, INTEGERS, affine, check_activation
from tflite_vk.ops.quantized.lookup import fused_table
from tflite_vk.ops.quantized.product import channels_buffer, output_push
from tflite_vk.ops.quantized.weights import (
    Ints,
    bias_values,
    check_operands,
    filter_values,
    filter_zero,
    output_scales,
    pack_dot4,
)
from tflite_vk.ops.quantized.wide import check_wide, is_wide, wide_of
from tflite_vk.ops.registry import register
from tflite_vk.ops.transpose_conv import TransposeConv
from tflite_vk.ops.window import Window
from tflite_vk.program import int_word
from tflite_vk.shape import LANES, ceil_div, vectors_per_row

_TILE = 4


def lower_transpose(
    node: Node,
    ctx: LoweringContext,
    shader: str,
    bindings: list[int],
    *,
    data_at: int,
    spec: tuple[int, ...],
    push: tuple[int, ...],
) -> None:
    """Add the dispatch of a transposed convolution.

    Args:
        node: TRANSPOSE_CONV.
        ctx: the program being made.
        shader: transpose_conv_i8, transpose_conv_i16 or a build of them.
        bindings: all of its buffers.
        data_at: position of the data.
        spec: its own last specialization constants.
        push: its last push words.
    """
    a = node.attributes
    assert isinstance(a, TransposeConvAttributes)
    x, y = ctx.graph.input(node, data_at), ctx.graph.output(node)
    n, oh, ow, oc = y.shape
    _, kh, kw, _ = ctx.graph.input(node, 1).shape
    groups = vectors_per_row(y.shape)
    tiles = ceil_div(ceil_div(ow, a.stride_w), _TILE)
    invocations = n * oh * a.stride_w * tiles * groups
    ctx.dispatch_flat(
        node,
        shader,
        bindings,
        invocations=invocations,
        spec=(_TILE, *spec),
        push=(
            *(invocations, groups, vectors_per_row(x.shape), tiles),
            *(ow, oh, x.shape[2], x.shape[1]),
            *(kw, kh, a.stride_w, a.stride_h),
            Window(kw, a.stride_w).pad_before(ow, x.shape[2]),
            Window(kh, a.stride_h).pad_before(oh, x.shape[1]),
            *push,
        ),
        flops=2 * x.num_elements * oc * kh * kw,
    )


@register
class QuantizedTransposeConv(TransposeConv):
    """TRANSPOSE_CONV."""

    kind = "quantized"
    dtypes = INTEGERS
    ends_in_epilogue = False
    notes = (
        "constant filter of INT8 (UINT8 for UINT8), one scale or one for each output channel; bias of INT16 "
        "is INT64, or INT32 by quantized_bias_type; exact"
    )

    def check(self, node: Node, graph: Graph) -> str | None:
        a = node.attributes
        assert isinstance(a, TransposeConvAttributes)
        reason = check_activation(a.fused_activation_function) or check_operands(
            graph, node, axis=0, bias_at=self.bias_at, data_at=self.data_at
        )
        if reason is None and graph.input(node, 1).dtype is DType.INT4:
            return "filter is INT4 (supported: INT8)"
        if reason is None and is_wide(graph.input(node, self.data_at)):
            return check_wide(graph, node, 0, self.bias_at, self.data_at)
        return reason

    def takes_table(self, node: Node, graph: Graph) -> bool:
        return graph.made(node).dtype in EIGHT_BIT

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        a = node.attributes
        assert isinstance(a, TransposeConvAttributes)
        x, weights = ctx.graph.input(node, self.data_at), ctx.graph.input(node, 1)
        y, q = ctx.graph.output(node), affine(x)
        oc, kh, kw, ic = weights.shape
        values, zero = filter_values(weights).reshape(oc, kh * kw, ic), filter_zero(weights)
        if is_wide(x):
            self._lower_wide(node, ctx, values)
            return
        tap_sums = (values - zero).sum(axis=2).T.astype(np.int32)  # [tap, output]
        bias = bias_values(ctx.graph, node, oc, self.bias_at)
        scales = output_scales(ctx.graph, node, self.data_at)
        table, has_table = fused_table(ctx, node)
        lower_transpose(
            node,
            ctx,
            "transpose_conv_i8",
            [
                ctx.buffer(x.id),
                ctx.constant(pack_dot4(values), weights.name),
                channels_buffer(ctx, node, bias, scales, as_double=False),
                ctx.constant(pack(tap_sums, "i32"), f"{weights.name}/sums"),
                ctx.buffer(y.id),
                table,
            ],
            data_at=self.data_at,
            spec=(int(zero != 0), ic % LANES if zero != 0 else 0, has_table),
            push=(
                *(q.flip, int_word(q.zero_point), int_word(zero)),
                *output_push(ctx, node, a.fused_activation_function),
            ),
        )

    def _lower_wide(self, node: Node, ctx: LoweringContext, values: Ints) -> None:
        a = node.attributes
        assert isinstance(a, TransposeConvAttributes)
        activation = a.fused_activation_function
        wide = wide_of(ctx, node, values, activation, self.bias_at, self.data_at)
        bindings = [
            ctx.buffer(node.inputs[self.data_at]),
            ctx.constant(pack_dot4(values), ctx.graph.input(node, 1).name),
            wide.channels,
            ctx.buffer(node.outputs[0]),
        ]
        lower_transpose(
            node,
            ctx,
            "transpose_conv_i16",
            bindings,
            data_at=self.data_at,
            spec=wide.spec,
            push=wide.push,
        )
