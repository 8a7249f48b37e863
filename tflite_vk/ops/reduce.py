"""Reductions over any axes: SUM, MEAN, REDUCE_PROD, REDUCE_MAX, REDUCE_MIN, REDUCE_ANY, REDUCE_ALL."""

from __future__ import annotations

from collections.abc import Sequence

from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import ReducerAttributes
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops.axes import read_axes, walk
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.reduction import (
    OP_CODES,
    Reduction,
    lower_integer_reduction,
    lower_reduction,
)
from tflite_vk.ops.registry import register
from tflite_vk.shape import Shape

_NUMBERS = {DType.FLOAT32, DType.INT32, DType.INT64}
_DTYPES = {
    "MEAN": _NUMBERS,
    "SUM": _NUMBERS,
    "REDUCE_PROD": _NUMBERS,
    "REDUCE_MAX": _NUMBERS,
    "REDUCE_MIN": _NUMBERS,
    "REDUCE_ANY": {DType.BOOL},
    "REDUCE_ALL": {DType.BOOL},
}


@register
class Reduce(Operator):
    """All reductions."""

    versions = {
        "MEAN": 3,
        "SUM": 2,
        "REDUCE_PROD": 2,
        "REDUCE_MAX": 3,
        "REDUCE_MIN": 3,
        "REDUCE_ANY": 1,
        "REDUCE_ALL": 1,
    }
    dtypes = frozenset({DType.FLOAT32, DType.INT32, DType.INT64, DType.BOOL})
    ends_in_epilogue = True
    notes = "constant axes: any number of them, negative and repeated ones included"
    differs = dict.fromkeys(
        ("MEAN", "SUM", "REDUCE_PROD"),
        "float elements are taken in another order, by many invocations: the last digits differ, and of long"
        " rows they are closer to the exact result",
    )

    def check(self, node: Node, graph: Graph) -> str | None:
        source, output = graph.input(node, 0), graph.output(node)
        if source.is_const:
            return "its input is a constant"
        if source.dtype is not output.dtype:
            return f"{source.dtype.name} to {output.dtype.name} (supported: the same type)"
        if source.dtype not in _DTYPES[node.op]:
            names = ", ".join(sorted(t.name for t in _DTYPES[node.op]))
            return f"its input is {source.dtype.name} (supported: {names})"
        if node.op == "MEAN" and source.dtype is not DType.FLOAT32 and not source.num_elements:
            return "the mean of no integers, which TFLite divides by zero"
        return None

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape] | None:
        assert isinstance(node.attributes, ReducerAttributes)
        shape = graph.input(node, 0).shape
        axes = read_axes(graph.input(node, 1), len(shape))
        if axes is None:
            return None
        if node.attributes.keep_dims:
            return [tuple(1 if i in axes else d for i, d in enumerate(shape))]
        return [tuple(d for i, d in enumerate(shape) if i not in axes)]

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        source, output = ctx.graph.input(node, 0), ctx.graph.output(node)
        axes = read_axes(ctx.graph.input(node, 1), source.rank)
        assert axes is not None
        elements = 1
        for axis in axes:
            elements *= source.shape[axis]
        reduction = Reduction(
            op=OP_CODES[node.op],
            plan=walk(source.shape, axes),
            result=output.shape,
            scale=1.0 / elements if node.op == "MEAN" and elements else 1.0,
            divisor=elements if node.op == "MEAN" else 1,
        )
        if source.dtype is DType.FLOAT32:
            is_wide = ctx.stored_as(source.id) == "f32"
            buffers = ctx.buffer(source.id, "f32" if is_wide else None), ctx.buffer(output.id)
            lower_reduction(ctx, node, reduction, *buffers, is_wide=is_wide)
            return
        buffers = ctx.buffer(source.id), ctx.buffer(output.id)
        is_narrow_mean = node.op == "MEAN" and source.dtype is DType.INT32
        shader = "reduce_i32_mean" if is_narrow_mean else f"reduce_{ctx.storage(source)}"
        lower_integer_reduction(ctx, node, shader, reduction, *buffers)
