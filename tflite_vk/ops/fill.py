"""FILL, ZEROS_LIKE, SHAPE, RANK, BROADCAST_ARGS: results that mostly need no device at all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tflite_vk.dtypes import DType
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.layout import pack
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.moving import MOVED, check_data_types, input_ints
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.registry import register
from tflite_vk.ops.strided_copy import rows_view, strided_copy
from tflite_vk.shape import Shape, broadcast


def _place_constant(node: Node, ctx: LoweringContext, value: npt.NDArray[np.generic]) -> None:
    """Let output 0 be a constant."""
    output = ctx.graph.output(node)
    data = np.broadcast_to(value, output.shape)
    ctx.place(output.id, ctx.constant(pack(data, ctx.storage(output)), output.name))


@register
class Fill(Operator):
    """One value everywhere."""

    versions = {"FILL": 4}
    dtypes = MOVED
    notes = "the shape must be a constant, the value may be a run-time tensor"

    def check(self, node: Node, graph: Graph) -> str | None:
        if graph.input(node, 1).num_elements != 1:
            return f"the value has {graph.input(node, 1).num_elements} elements (supported: 1)"
        return check_data_types(node, graph, [1])

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape] | None:
        shape = input_ints(node, graph, 0)
        if shape is not None and (graph.input(node, 0).rank != 1 or min(shape, default=0) < 0):
            raise ValueError(f"can't fill shape {list(shape)}")
        return None if shape is None else [shape]

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        value, output = ctx.graph.input(node, 1), ctx.graph.output(node)
        if value.data is not None:
            _place_constant(node, ctx, value.data.reshape(()))
            return
        strided_copy(
            ctx,
            node,
            ctx.buffer(value.id),
            ctx.buffer(output.id),
            output.shape,
            rows_view(output.shape, [0] * output.rank),
            ctx.storage(output),
        )


@register
class ZerosLike(Operator):
    """Zeros in a tensor's shape."""

    versions = {"ZEROS_LIKE": 1}
    dtypes = MOVED

    def check(self, node: Node, graph: Graph) -> str | None:
        return check_data_types(node, graph, [0])

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape]:
        return [graph.input(node, 0).shape]

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        dtype = ctx.graph.output(node).dtype.numpy
        _place_constant(node, ctx, np.zeros((), dtype))


@register
class ShapeOf(Operator):
    """A tensor's shape or rank, known before running."""

    versions = {"SHAPE": 1, "RANK": 1}
    dtypes = MOVED

    def check(self, node: Node, graph: Graph) -> str | None:
        if graph.output(node).dtype not in {DType.INT32, DType.INT64}:
            return f"output 0 is {graph.output(node).dtype.name} (supported: INT32, INT64)"
        return None

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape]:
        return [(graph.input(node, 0).rank,) if node.op == "SHAPE" else ()]

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        source = ctx.graph.input(node, 0)
        value = source.shape if node.op == "SHAPE" else source.rank
        _place_constant(node, ctx, np.array(value, ctx.graph.output(node).dtype.numpy))


@register
class BroadcastArgs(Operator):
    """The shape that two shapes broadcast to."""

    versions = {"BROADCAST_ARGS": 1}
    dtypes = MOVED
    notes = "both shapes must be constants"

    def check(self, node: Node, graph: Graph) -> str | None:
        if self._result(node, graph) is None:
            return "the shapes are no constants"
        return check_data_types(node, graph, (0, 1))

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape]:
        return [(max(graph.input(node, i).num_elements for i in range(2)),)]

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        dtype = ctx.graph.output(node).dtype.numpy
        _place_constant(node, ctx, np.array(self._result(node, ctx.graph), dtype))

    def _result(self, node: Node, graph: Graph) -> Shape | None:
        a, b = (input_ints(node, graph, i) for i in range(2))
        return None if a is None or b is None else broadcast([a, b])
