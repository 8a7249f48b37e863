"""CUMSUM along any axis, inclusive or exclusive, from either end."""

from __future__ import annotations

from collections.abc import Sequence

from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import CumsumAttributes
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops.axes import read_axes
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.launch import fold
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.reduction import power_of_two
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

_LOCAL_SIZE = 64
_MIN_STRETCH = 8
"""Groups that one invocation adds up before a line is worth sharing."""


@register
class Cumsum(Operator):
    """CUMSUM."""

    versions = {"CUMSUM": 1}
    dtypes = frozenset({DType.FLOAT32, DType.INT32, DType.INT64})
    ends_in_epilogue = True
    notes = "constant axis"

    def check(self, node: Node, graph: Graph) -> str | None:
        x, y = graph.input(node, 0), graph.output(node)
        if x.is_const:
            return "its input is a constant"
        if x.dtype is not y.dtype:
            return f"{x.dtype.name} to {y.dtype.name} (supported: the same type)"
        if graph.input(node, 1).data is None:
            return "its axis is known only while running (supported: constant)"
        return None

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape]:
        shape = graph.input(node, 0).shape
        if not shape:
            raise ValueError("input is a scalar (supported: rank 1 and more)")
        axis = graph.input(node, 1)
        if axis.num_elements != 1:
            raise ValueError(f"axis has {axis.num_elements} elements (supported: 1)")
        read_axes(axis, len(shape))
        return [shape]

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        x, y = ctx.graph.input(node, 0), ctx.graph.output(node)
        axes = read_axes(ctx.graph.input(node, 1), x.rank)
        a = node.attributes
        assert axes is not None
        assert isinstance(a, CumsumAttributes)
        is_inner = axes[0] == x.rank - 1
        row_groups = vectors_per_row(x.shape)
        size = row_groups if is_inner else x.shape[axes[0]]
        step = 1 if is_inner else num_elements(x.shape[axes[0] + 1 : -1]) * row_groups
        lines = num_vectors(x.shape) // size
        sharers = power_of_two(min(_LOCAL_SIZE, max(1, size // _MIN_STRETCH)))
        width = _LOCAL_SIZE // sharers
        local = (sharers, width, 1) if is_inner else (width, sharers, 1)
        groups = fold(ceil_div(lines, width), ctx.limits)
        spec = (int(is_inner), int(a.exclusive), int(a.reverse))
        push = (lines, size, step, inner(x.shape) - (row_groups - 1) * LANES)
        buffers = ctx.buffer(x.id), ctx.buffer(y.id)
        if x.dtype is not DType.FLOAT32:
            ctx.dispatch(
                node,
                f"cumsum_{ctx.storage(x)}",
                buffers,
                groups=groups,
                spec=(*local, *spec),
                push=(*push, row_groups),
            )
            return
        ctx.compute(
            node,
            "cumsum",
            buffers[:1],
            buffers[1],
            local=local,
            groups=groups,
            spec=spec,
            push=(*push, row_groups),
            flops=x.num_elements,
        )
