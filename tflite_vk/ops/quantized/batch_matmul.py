"""BATCH_MATMUL of int8.

Source: BatchMatMul of int8 in tflite/kernels/internal/reference/batch_matmul.h; PrepareImpl of
tflite/kernels/batch_matmul.cc, which multiplies the two scales in float32.
"""

from __future__ import annotations

import numpy as np

from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import BatchMatMulAttributes
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops.batch_matmul import BatchMatMul, launch_products, products_of
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.quantization import affine, check_affine, quantize_multiplier
from tflite_vk.ops.registry import register
from tflite_vk.program import int_word


@register
class QuantizedBatchMatMul(BatchMatMul):
    """BATCH_MATMUL."""

    kind = "quantized"
    dtypes = frozenset({DType.INT8})
    ends_in_epilogue = False
    notes = "adj_x, adj_y; batches broadcast; either side may be constant; exact"

    def check(self, node: Node, graph: Graph) -> str | None:
        tensors = [graph.input(node, 0), graph.input(node, 1), graph.output(node)]
        if tensors[0].is_const and tensors[1].is_const:
            return "both inputs are constants"
        for tensor, role in zip(tensors, ("input 0", "input 1", "output"), strict=True):
            if tensor.dtype is not DType.INT8:
                return f"{role} is {tensor.dtype.name} (supported: all INT8)"
            if (reason := check_affine(tensor, role)) is not None:
                return reason
        return None

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        a, b, y = ctx.graph.input(node, 0), ctx.graph.input(node, 1), ctx.graph.output(node)
        attributes = node.attributes
        assert isinstance(attributes, BatchMatMulAttributes)
        launch = launch_products(products_of(a.shape, b.shape, y.shape, attributes), ctx)
        scales = np.float32(affine(a).scale) * np.float32(affine(b).scale)
        factor = quantize_multiplier(float(scales) / affine(y).scale)
        ctx.dispatch(
            node,
            "batch_matmul_i8",
            [ctx.buffer(a.id), ctx.buffer(b.id), ctx.buffer(y.id)],
            groups=launch.groups,
            spec=(*launch.local, *launch.spec),
            push=(
                *launch.push,
                *(int_word(affine(t).zero_point) for t in (a, b, y)),
                factor.value,
                int_word(factor.shift),
            ),
            flops=launch.flops,
        )
