"""MEAN, SUM, REDUCE_MAX, REDUCE_MIN of int8, uint8 and int16.

Source: QuantizedMeanOrSum and ReduceGeneric of tflite/kernels/internal/reference/reduce.h.
"""

from __future__ import annotations

from tflite_vk.dtypes import DType
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.layout import words_for
from tflite_vk.ops.axes import read_axes, walk
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.quantization import (
    Multiplier,
    check_affine,
    quantize_multiplier,
    same_quantization,
    to_int32,
)
from tflite_vk.ops.quantized.quantize import lower_requantize
from tflite_vk.ops.reduce import Reduce
from tflite_vk.ops.reduction import OP_CODES, Reduction, lower_integer_reduction
from tflite_vk.ops.registry import register
from tflite_vk.shape import num_elements


def mean_factor(scale: float, count: int) -> Multiplier:
    """Fixed-point form of scale / count as TFLite makes it: a whole division of the multiplier."""
    factor = quantize_multiplier(scale)
    shift = min(count.bit_length() - 1, 32, 31 + factor.shift)
    return Multiplier((factor.value << shift) // count, factor.shift - shift)


@register
class QuantizedReduce(Reduce):
    """Reductions of integers."""

    versions = {"MEAN": 3, "SUM": 2, "REDUCE_MAX": 3, "REDUCE_MIN": 3}
    kind = "quantized"
    dtypes = frozenset({DType.INT8, DType.UINT8, DType.INT16})
    ends_in_epilogue = False
    notes = "constant axes; exact"
    differs = {
        "SUM": "8 and 16-bit results saturate, as those of TFLite's default kernel: the reference kernel of LiteRT"
        " 2.3.0 is wrong for int8 and int16",
    }

    def check(self, node: Node, graph: Graph) -> str | None:
        x, y = graph.input(node, 0), graph.output(node)
        if x.is_const:
            return "its input is a constant"
        if x.dtype is not y.dtype:
            return f"{x.dtype.name} to {y.dtype.name} (supported: the same type)"
        if node.op in {"REDUCE_MAX", "REDUCE_MIN"}:
            if x.dtype is DType.INT16 or same_quantization(x, y):
                return None
            return "input and output differ in scale or zero point (supported: equal ones)"
        if num_elements(x.shape) == 0:
            return "its input is empty"
        return check_affine(x, "input") or check_affine(y, "output")

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        x, y = ctx.graph.input(node, 0), ctx.graph.output(node)
        axes = read_axes(ctx.graph.input(node, 1), x.rank)
        assert axes is not None
        reduction = Reduction(op=OP_CODES[node.op], plan=walk(x.shape, axes), result=y.shape)
        shader = f"reduce_{ctx.storage(x)}"
        source, target = ctx.buffer(x.id), ctx.buffer(y.id)
        if node.op in {"REDUCE_MAX", "REDUCE_MIN"}:
            lower_integer_reduction(ctx, node, shader, reduction, source, target)
            return
        sums = ctx.temporary(words_for(y.shape, "i32"), f"{y.name}/sums")
        lower_integer_reduction(ctx, node, f"{shader}_i32", reduction, source, sums)
        self._scale(node, ctx, sums, num_elements([x.shape[a] for a in axes]))

    def _scale(self, node: Node, ctx: LoweringContext, sums: int, count: int) -> None:
        x, y = ctx.graph.input(node, 0), ctx.graph.output(node)
        assert x.quantization is not None
        assert y.quantization is not None
        real = x.quantization.scale[0] / y.quantization.scale[0]
        factor = mean_factor(real, count) if node.op == "MEAN" else quantize_multiplier(real)
        zero = to_int32(x.quantization.zero_point[0] * count)
        lower_requantize(ctx, node, sums, "i32", y, zero, factor)
