"""SPLIT, SPLIT_V, UNPACK: one tensor in pieces along an axis, one copy for each."""

from __future__ import annotations

from collections.abc import Sequence

from tflite_vk.ir.attributes import SplitAttributes, UnpackAttributes
from tflite_vk.ir.graph import Graph, Node, Tensor
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.moving import MOVED, check_data_types, input_ints
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.registry import register
from tflite_vk.ops.strided_copy import rows_view, strided_copy
from tflite_vk.shape import Shape, normalize_axis, strides

_DATA = {"SPLIT": 1, "SPLIT_V": 0, "UNPACK": 0}
"""Position of the tensor to split among the inputs."""


def _axis(node: Node, graph: Graph) -> int | None:
    rank = graph.input(node, _DATA[node.op]).rank
    if isinstance(node.attributes, UnpackAttributes):
        given: tuple[int, ...] | None = (node.attributes.axis,)
    else:
        given = input_ints(node, graph, 0 if node.op == "SPLIT" else 2)
    if given is None:
        return None
    axis = normalize_axis(given[0], rank) if len(given) == 1 else None
    if axis is None:
        raise ValueError(f"axis {list(given)} of a tensor of rank {rank}")
    return axis


def _even_sizes(node: Node, available: int) -> tuple[int, ...]:
    assert isinstance(node.attributes, SplitAttributes)
    count = node.attributes.num_splits
    if count < 1 or count != len(node.outputs) or available % count:
        raise ValueError(
            f"can't split {available} elements evenly in {count} for {len(node.outputs)} outputs"
        )
    return (available // count,) * count


def _given_sizes(node: Node, given: tuple[int, ...], available: int) -> tuple[int, ...]:
    if len(given) != len(node.outputs) or any(n < -1 for n in given) or given.count(-1) > 1:
        raise ValueError(f"sizes {list(given)} for {len(node.outputs)} outputs")
    rest = available - sum(n for n in given if n != -1)
    sizes = tuple(rest if n == -1 else n for n in given)
    if min(sizes) < 0 or sum(sizes) != available:
        raise ValueError(f"sizes {list(given)} of {available} elements")
    return sizes


def _sizes(node: Node, graph: Graph, axis: int) -> tuple[int, ...] | None:
    """Elements along the axis in each output."""
    available = graph.input(node, _DATA[node.op]).shape[axis]
    if node.op == "SPLIT":
        return _even_sizes(node, available)
    if node.op == "SPLIT_V":
        given = input_ints(node, graph, 1)
        return None if given is None else _given_sizes(node, given, available)
    if available != len(node.outputs):
        raise ValueError(f"{available} elements along axis {axis} for {len(node.outputs)} outputs")
    return (1,) * available


@register
class Split(Operator):
    """One tensor in pieces along an axis."""

    versions = {"SPLIT": 4, "SPLIT_V": 3, "UNPACK": 4}
    dtypes = MOVED
    notes = "the axis and the sizes must be constants"

    def check(self, node: Node, graph: Graph) -> str | None:
        return check_data_types(node, graph, [_DATA[node.op]])

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape] | None:
        axis = _axis(node, graph)
        sizes = None if axis is None else _sizes(node, graph, axis)
        if axis is None or sizes is None:
            return None
        source = graph.input(node, _DATA[node.op]).shape
        middle = [() if node.op == "UNPACK" else (size,) for size in sizes]
        return [(*source[:axis], *m, *source[axis + 1 :]) for m in middle]

    def is_alias(self, node: Node, graph: Graph) -> bool:
        # Input 0 of SPLIT is the axis.
        source = graph.input(node, 0)
        return (
            node.op == "SPLIT_V"
            and len(node.outputs) == 1
            and not source.is_variable
            and graph.output(node).shape == source.shape
        )

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        source = ctx.graph.input(node, _DATA[node.op])
        axis = _axis(node, ctx.graph)
        assert axis is not None
        sizes = _sizes(node, ctx.graph, axis)
        assert sizes is not None
        steps = list(strides(source.shape))
        first = 0
        for position, size in enumerate(sizes):
            self._copy(
                node, ctx, source, ctx.graph.output(node, position), axis, first * steps[axis]
            )
            first += size

    def _copy(
        self, node: Node, ctx: LoweringContext, source: Tensor, target: Tensor, axis: int, base: int
    ) -> None:
        if not target.num_elements:
            return
        steps = list(strides(source.shape))
        if node.op == "UNPACK":
            del steps[axis]
        strided_copy(
            ctx,
            node,
            ctx.buffer(source.id),
            ctx.buffer(target.id),
            target.shape,
            rows_view(target.shape, steps, base),
            ctx.storage(target),
        )
