"""ARG_MAX and ARG_MIN: the first position of the largest or smallest element along an axis."""

from __future__ import annotations

from collections.abc import Sequence

from tflite_vk.dtypes import DType
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.layout import words_for
from tflite_vk.ops.axes import read_axes
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.launch import fold
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.reduction import split_once
from tflite_vk.ops.registry import register
from tflite_vk.shape import (
    LANES,
    Shape,
    ceil_div,
    inner,
    num_elements,
    num_vectors,
    vectors_per_row,
)


@register
class ArgReduce(Operator):
    """ARG_MAX and ARG_MIN.

    Source: ArgMinMax of tflite/kernels/internal/reference/arg_min_max.h: ties go to the first, a
    NaN ranks below everything.
    """

    versions = {"ARG_MAX": 3, "ARG_MIN": 3}
    dtypes = frozenset({DType.FLOAT32, DType.INT32, DType.INT64, DType.INT8, DType.UINT8})
    notes = "constant axis; INT64 only for positions"

    def check(self, node: Node, graph: Graph) -> str | None:
        if graph.input(node, 0).is_const:
            return "its input is a constant"
        if graph.input(node, 0).dtype is DType.INT64:
            return "input 0 is INT64 (supported: FLOAT32, INT32, INT8, UINT8)"
        if graph.output(node).dtype not in {DType.INT32, DType.INT64}:
            return f"its output is {graph.output(node).dtype.name} (supported: INT32, INT64)"
        shape = graph.input(node, 0).shape
        axes = read_axes(graph.input(node, 1), len(shape))
        if axes and shape[axes[0]] == 0:
            return f"axis {axes[0]} of {list(shape)} has no elements"
        return None

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape] | None:
        shape = graph.input(node, 0).shape
        if not shape:
            raise ValueError("input is a scalar (supported: rank 1 and more)")
        axis = graph.input(node, 1)
        if axis.num_elements != 1:
            raise ValueError(f"axis has {axis.num_elements} elements (supported: 1)")
        axes = read_axes(axis, len(shape))
        return None if axes is None else [tuple(d for i, d in enumerate(shape) if i not in axes)]

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        x, y = ctx.graph.input(node, 0), ctx.graph.output(node)
        axes = read_axes(ctx.graph.input(node, 1), x.rank)
        assert axes is not None
        is_inner = axes[0] == x.rank - 1
        row_groups = vectors_per_row(x.shape)
        size = row_groups if is_inner else x.shape[axes[0]]
        step = 1 if is_inner else num_elements(x.shape[axes[0] + 1 : -1]) * row_groups
        groups = num_vectors(y.shape)
        how = split_once(groups, size, ctx.device)
        local = (how.sharers, how.outputs) if is_inner else (how.outputs, how.sharers)
        kept_as = ctx.storage(x)
        is_wide = y.dtype is DType.INT64
        positions = (
            ctx.temporary(words_for(y.shape, "u32"), "positions") if is_wide else ctx.buffer(y.id)
        )
        ctx.dispatch(
            node,
            "arg_reduce" if kept_as == "f32" else f"arg_reduce_{kept_as}",
            [ctx.buffer(x.id), positions],
            groups=fold(ceil_div(groups, how.outputs), ctx.limits),
            spec=(
                *local,
                1,
                int(node.op == "ARG_MIN"),
                int(is_inner),
            ),
            push=(
                groups,
                vectors_per_row(y.shape),
                inner(y.shape),
                size,
                step,
                inner(x.shape) - (row_groups - 1) * LANES,
            ),
            flops=x.num_elements,
        )
        if is_wide:
            ctx.dispatch_flat(
                node,
                "cast_u32_i64",
                [positions, ctx.buffer(y.id)],
                invocations=groups,
                spec=(0,),
                push=(groups,),
            )
