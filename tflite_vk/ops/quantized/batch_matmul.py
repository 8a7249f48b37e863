"""BATCH_MATMUL of int8 and int16.

Source: BatchMatMul of integers in tflite/kernels/internal/reference/batch_matmul.h; PrepareImpl of
tflite/kernels/batch_matmul.cc, which multiplies the two scales in float32.
"""

from __future__ import annotations

import numpy as np

from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import BatchMatMulAttributes
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops.batch_matmul import BatchMatMul, launch_products, products_of
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.quantization import (
    EIGHT_BIT,
    Multiplier,
    affine,
    check_affine,
    quantize_multiplier,
)
from tflite_vk.ops.quantized.lookup import fused_table
from tflite_vk.ops.quantized.wide import MOST_SHIFT, MOST_SUM, reduced
from tflite_vk.ops.registry import register
from tflite_vk.program import int_word

_KERNELS = {
    (DType.INT8, DType.INT8, DType.INT8): "batch_matmul_i8",
    (DType.INT16, DType.INT16, DType.INT16): "batch_matmul_i16",
    (DType.INT16, DType.INT8, DType.INT16): "batch_matmul_i16_i8",
}
"""By the types of inputs and output."""


def _attributes(node: Node) -> BatchMatMulAttributes:
    assert isinstance(node.attributes, BatchMatMulAttributes)
    return node.attributes


def _factor(node: Node, graph: Graph) -> Multiplier:
    a, b = (np.float32(affine(graph.input(node, i)).scale) for i in range(2))
    return quantize_multiplier(float(a * b) / affine(graph.made(node)).scale)


@register
class QuantizedBatchMatMul(BatchMatMul):
    """BATCH_MATMUL."""

    kind = "quantized"
    dtypes = frozenset({DType.INT8, DType.INT16})
    ends_in_epilogue = False
    notes = "adj_x, adj_y; batches broadcast; either side may be constant; INT16 with INT16 or INT8; exact"

    def check(self, node: Node, graph: Graph) -> str | None:
        tensors = [graph.input(node, 0), graph.input(node, 1), graph.output(node)]
        if tensors[0].is_const and tensors[1].is_const:
            return "both inputs are constants"
        dtypes = tuple(t.dtype for t in tensors)
        if dtypes not in _KERNELS:
            names = ", ".join(t.name for t in dtypes)
            return f"inputs and output are {names} (supported: INT8, INT16, or INT8 on the right of INT16)"
        for tensor, role in zip(tensors, ("input 0", "input 1", "output"), strict=True):
            if (reason := check_affine(tensor, role)) is not None:
                return reason
            if tensors[0].dtype is DType.INT16 and affine(tensor).zero_point:
                return f"{role} has a zero point (supported with INT16: 0)"
        if tensors[0].dtype is DType.INT16:
            depth = tensors[0].shape[-2 if _attributes(node).adj_x else -1]
            if depth >= MOST_SUM >> 30:
                return f"rows of {depth} elements (supported for INT16: below {MOST_SUM >> 30})"
            if _factor(node, graph).shift > MOST_SHIFT:
                return "its output scale is too small for TFLite's own arithmetic"
        return None

    def takes_table(self, node: Node, graph: Graph) -> bool:
        return graph.made(node).dtype in EIGHT_BIT

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        a, b, y = ctx.graph.input(node, 0), ctx.graph.input(node, 1), ctx.graph.output(node)
        launch = launch_products(products_of(a.shape, b.shape, y.shape, _attributes(node)), ctx)
        factor = _factor(node, ctx.graph)
        made = ctx.graph.made(node)
        is_wide = made.dtype is DType.INT16
        if is_wide:
            factor = reduced(factor)
        zeros = () if is_wide else tuple(int_word(affine(t).zero_point) for t in (a, b, made))
        buffers = [ctx.buffer(a.id), ctx.buffer(b.id), ctx.buffer(y.id)]
        spec: tuple[int, ...] = ()
        if not is_wide:
            table, has_table = fused_table(ctx, node)
            buffers.append(table)
            spec = (has_table,)
        ctx.dispatch(
            node,
            _KERNELS[a.dtype, b.dtype, made.dtype],
            buffers,
            groups=launch.groups,
            spec=(*launch.local, *launch.spec, *spec),
            push=(*launch.push, *zeros, factor.value, int_word(factor.shift)),
            flops=launch.flops,
        )
