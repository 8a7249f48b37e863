"""TRANSPOSE: dimensions in another order."""

from __future__ import annotations

from collections.abc import Sequence

from tflite_vk.dtypes import DType
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.launch import fold
from tflite_vk.ops.moving import (
    MOVED,
    check_data_types,
    input_ints,
    lanes_variant,
)
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.registry import register
from tflite_vk.ops.strided_copy import rows_view, strided_copy
from tflite_vk.ops.transpose_tiles import LOCAL_SIZE, MAX_DIMS, Plane, gains_from_tiles, tiled_plane
from tflite_vk.shape import Shape, is_layout_preserving, normalize_axis, strides


def _permutation(node: Node, graph: Graph) -> tuple[int, ...] | None:
    """For each dimension of the output, the one of the input it is; None where not known.

    Raises:
        ValueError: it is no permutation of the input's dimensions.
    """
    given = input_ints(node, graph, 1)
    if given is None:
        return None
    rank = graph.input(node, 0).rank
    order = [normalize_axis(axis, rank) for axis in given]
    if sorted(-1 if axis is None else axis for axis in order) != list(range(rank)):
        raise ValueError(f"{list(given)} is no permutation of the input's {rank} dimensions")
    return tuple(axis for axis in order if axis is not None)


@register
class Transpose(Operator):
    """Dimensions in another order."""

    versions = {"TRANSPOSE": 7}
    dtypes = MOVED
    notes = "the permutation must be a constant; no dispatch where only dimensions of 1 move"

    def check(self, node: Node, graph: Graph) -> str | None:
        return check_data_types(node, graph, [0])

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape] | None:
        order = _permutation(node, graph)
        source = graph.input(node, 0).shape
        return None if order is None else [tuple(source[axis] for axis in order)]

    def is_alias(self, node: Node, graph: Graph) -> bool:
        source = graph.input(node, 0)
        order = _permutation(node, graph)
        assert order is not None
        moved = [axis for axis in order if source.shape[axis] != 1]
        return (
            moved == sorted(moved)
            and not source.is_variable
            and is_layout_preserving(source.shape, graph.output(node).shape)
        )

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        source, target = ctx.graph.input(node, 0), ctx.graph.output(node)
        order = _permutation(node, ctx.graph)
        assert order is not None
        buffers = ctx.buffer(source.id), ctx.buffer(target.id)
        uses_tiles = gains_from_tiles(ctx.device) and target.dtype is not DType.INT64
        plane = tiled_plane(source.shape, order) if uses_tiles else None
        if plane is not None:
            _lower_tiles(node, ctx, buffers, plane)
            return
        steps = strides(source.shape)
        view = rows_view(target.shape, [steps[axis] for axis in order])
        strided_copy(ctx, node, *buffers, target.shape, view, ctx.storage(target))


def _lower_tiles(node: Node, ctx: LoweringContext, buffers: tuple[int, int], plane: Plane) -> None:
    spare = MAX_DIMS - len(plane.dims)
    local = (min(LOCAL_SIZE, ctx.limits.max_workgroup_invocations), 1, 1)
    ctx.dispatch(
        node,
        lanes_variant("transpose", ctx.storage(ctx.graph.output(node))),
        buffers,
        groups=fold(plane.num_tiles, ctx.limits),
        spec=(*local, *plane.tile),
        push=(
            plane.num_tiles,
            plane.row_tiles,
            plane.column_tiles,
            plane.rows,
            plane.columns,
            plane.source_row,
            plane.target_column,
            len(plane.dims),
            *(size for size, _, _ in plane.dims),
            *[1] * spare,
            *(step for _, step, _ in plane.dims),
            *[0] * spare,
            *(step for _, _, step in plane.dims),
            *[0] * spare,
        ),
    )
