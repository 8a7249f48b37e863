"""RESHAPE, SQUEEZE, EXPAND_DIMS: the same elements in another shape, mostly without a dispatch."""

from __future__ import annotations

from collections.abc import Sequence

from tflite_vk.ir.attributes import ReshapeAttributes, SqueezeAttributes
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.moving import MOVED, check_data_types, input_ints
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.registry import register
from tflite_vk.ops.repack import repack_into
from tflite_vk.shape import Shape, is_layout_preserving, normalize_axis, num_elements


def resolve_shape(wanted: Sequence[int], source: Shape) -> Shape:
    """The shape that RESHAPE makes, its one -1 worked out.

    Raises:
        ValueError: another number of elements, or more than one -1.

    Source: tflite/kernels/reshape.cc, ResizeOutput.
    """
    if any(d < -1 for d in wanted) or list(wanted).count(-1) > 1:
        raise ValueError(f"can't reshape to {list(wanted)}: one dimension may be -1, none below")
    shape = list(wanted)
    if -1 in wanted:
        known = [d for d in wanted if d != -1]
        if num_elements(source) == 0 and 0 not in known:
            stretched = 0
        else:
            fixed = num_elements([d for d in known if d])
            stretched = num_elements([d for d in source if d]) // fixed
        shape[shape.index(-1)] = stretched
    if num_elements(shape) != num_elements(source):
        raise ValueError(
            f"can't reshape {list(source)} to {list(wanted)}: another number of elements"
        )
    return tuple(shape)


def _reshaped(node: Node, graph: Graph, source: Shape) -> Shape | None:
    if len(node.inputs) == 2 and node.has_input(1) and graph.input(node, 1).rank == 1:
        wanted = input_ints(node, graph, 1)
        return None if wanted is None else resolve_shape(wanted, source)
    assert isinstance(node.attributes, ReshapeAttributes)
    new_shape = node.attributes.new_shape
    # Old converters wrote [0] for a scalar.
    return resolve_shape(() if new_shape in {None, (0,)} else new_shape or (), source)


def _squeezed(node: Node, source: Shape) -> Shape:
    assert isinstance(node.attributes, SqueezeAttributes)
    axes = set()
    for axis in node.attributes.squeeze_dims:
        normal = normalize_axis(axis, len(source))
        if normal is None or source[normal] != 1:
            raise ValueError(
                f"can't squeeze axis {axis} of shape {list(source)}: no dimension of 1"
            )
        axes.add(normal)
    if not axes:
        return tuple(d for d in source if d != 1)
    return tuple(d for i, d in enumerate(source) if i not in axes)


def _expanded(node: Node, graph: Graph, source: Shape) -> Shape | None:
    axes = input_ints(node, graph, 1)
    if axes is None:
        return None
    axis = normalize_axis(axes[0], len(source) + 1) if len(axes) == 1 else None
    if axis is None:
        raise ValueError(f"can't expand shape {list(source)} at axis {list(axes)}")
    return (*source[:axis], 1, *source[axis:])


@register
class Reshape(Operator):
    """Another shape for the same elements."""

    versions = {"RESHAPE": 1, "SQUEEZE": 2, "EXPAND_DIMS": 1}
    dtypes = MOVED
    notes = "no dispatch where no element moves; the shape or axis must be a constant"

    def check(self, node: Node, graph: Graph) -> str | None:
        return check_data_types(node, graph, [0])

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape] | None:
        source = graph.input(node, 0).shape
        if node.op == "SQUEEZE":
            return [_squeezed(node, source)]
        shape = (
            _reshaped(node, graph, source)
            if node.op == "RESHAPE"
            else _expanded(node, graph, source)
        )
        return None if shape is None else [shape]

    def is_alias(self, node: Node, graph: Graph) -> bool:
        source = graph.input(node, 0)
        # A variable changes under its alias.
        return not source.is_variable and is_layout_preserving(
            source.shape, graph.output(node).shape
        )

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        source, target = ctx.graph.input(node, 0), ctx.graph.output(node)
        repack_into(
            ctx,
            node,
            ctx.buffer(source.id),
            source.shape,
            ctx.buffer(target.id),
            target.shape,
            ctx.storage(target),
        )
