"""AVERAGE_POOL_2D and MAX_POOL_2D of int8, uint8 and int16.

Source: tflite/kernels/internal/reference/integer_ops/pooling.h, and uint8 in reference/pooling.h. Input
and output are taken to have the same scale, as TFLite does.
"""

from __future__ import annotations

from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import Pool2DAttributes
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.operator import NO_DIFFERENCES
from tflite_vk.ops.pool_2d import Pool2D
from tflite_vk.ops.quantization import activation_bounds, affine, check_activation, check_affine
from tflite_vk.ops.registry import register
from tflite_vk.ops.window import Window
from tflite_vk.program import int_word
from tflite_vk.shape import num_vectors, vectors_per_row


@register
class QuantizedPool2D(Pool2D):
    """Pools of integers."""

    differs = NO_DIFFERENCES
    versions = {"AVERAGE_POOL_2D": 3, "MAX_POOL_2D": 3}
    kind = "quantized"
    dtypes = frozenset({DType.INT8, DType.UINT8, DType.INT16})
    ends_in_epilogue = False
    notes = "padding is never counted; exact"

    def check(self, node: Node, graph: Graph) -> str | None:
        a = node.attributes
        assert isinstance(a, Pool2DAttributes)
        x, y = graph.input(node, 0), graph.output(node)
        if x.is_const:
            return "its input is a constant"
        if x.dtype is not y.dtype:
            return f"{x.dtype.name} to {y.dtype.name} (supported: the same type)"
        if a.filter_height * a.filter_width >= 1 << 15:
            return f"window of {a.filter_height * a.filter_width} elements (supported: below 32768)"
        return check_affine(y, "output") or check_activation(a.fused_activation_function)

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        a = node.attributes
        assert isinstance(a, Pool2DAttributes)
        x, y = ctx.graph.input(node, 0), ctx.graph.output(node)
        offset = 128 if y.dtype is DType.UINT8 else 0
        lowest, highest = activation_bounds(a.fused_activation_function, y)
        pads = (
            Window(a.filter_height, a.stride_h).pad_before(x.shape[1], y.shape[1]),
            Window(a.filter_width, a.stride_w).pad_before(x.shape[2], y.shape[2]),
        )
        ctx.dispatch_flat(
            node,
            "pool_2d_i16" if y.dtype is DType.INT16 else "pool_2d_i8",
            [ctx.buffer(x.id), ctx.buffer(y.id)],
            invocations=num_vectors(y.shape),
            spec=(int(node.op == "AVERAGE_POOL_2D"),),
            push=(
                num_vectors(y.shape),
                vectors_per_row(y.shape),
                *(*y.shape[1:3], *x.shape[1:3]),
                *(a.filter_height, a.filter_width, a.stride_h, a.stride_w),
                *(int_word(p) for p in pads),
                affine(x).flip,
                offset,
                *(int_word(lowest + offset), int_word(highest + offset)),
            ),
            flops=y.num_elements * a.filter_height * a.filter_width,
        )
