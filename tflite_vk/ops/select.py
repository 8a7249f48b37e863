"""SELECT and SELECT_V2: elements of one tensor or the other."""

from __future__ import annotations

from collections.abc import Sequence

from tflite_vk.dtypes import DType
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops.broadcasting import Steps, broadcast_steps, broadcast_walk
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.division import division_words
from tflite_vk.ops.moving import MOVED, check_data_types, lanes_variant
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.registry import register
from tflite_vk.shape import Shape, broadcast, num_vectors


def _select_shape(condition: Shape, a: Shape, b: Shape) -> Shape:
    """SELECT: a condition of the same shape, a scalar, or one element for each of the first dimension."""
    if a != b:
        raise ValueError(f"shapes {list(a)} and {list(b)} to choose from differ")
    if condition not in {a, ()} and condition != a[:1]:
        raise ValueError(f"condition of shape {list(condition)} for {list(a)}")
    return a


def _condition_steps(node: Node, condition: Shape, result: Shape) -> Steps:
    if node.op == "SELECT" and condition != result and len(condition) == 1:
        return (1, *[0] * (len(result) - 1))
    return broadcast_steps(condition, result)


@register
class Select(Operator):
    """Elements of one tensor or the other."""

    versions = {"SELECT": 4, "SELECT_V2": 2}
    dtypes = MOVED

    def check(self, node: Node, graph: Graph) -> str | None:
        if graph.input(node, 0).dtype is not DType.BOOL:
            return f"the condition is {graph.input(node, 0).dtype.name} (supported: BOOL)"
        return check_data_types(node, graph, (1, 2))

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape]:
        condition, a, b = (graph.input(node, i).shape for i in range(3))
        if node.op == "SELECT":
            return [_select_shape(condition, a, b)]
        shape = broadcast([condition, a, b])
        if shape is None:
            raise ValueError(f"shapes {list(condition)}, {list(a)} and {list(b)} don't broadcast")
        return [shape]

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        condition, a, b = (ctx.graph.input(node, i) for i in range(3))
        output = ctx.graph.output(node)
        steps = [_condition_steps(node, condition.shape, output.shape)]
        steps += [broadcast_steps(t.shape, output.shape) for t in (a, b)]
        walk = broadcast_walk(output.shape, steps)
        vectors = num_vectors(output.shape)
        ctx.dispatch_flat(
            node,
            lanes_variant("select", ctx.storage(output)),
            [ctx.buffer(t.id) for t in (condition, a, b, output)],
            invocations=vectors,
            push=(
                vectors,
                walk.groups_per_row,
                walk.num_dims,
                *walk.dims,
                *(step for strides in walk.strides for step in strides),
                walk.splat,
                *division_words((*walk.dims, walk.groups_per_row), 6),
            ),
        )
