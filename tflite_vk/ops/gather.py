"""GATHER and EMBEDDING_LOOKUP: slices along an axis, chosen by indices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tflite_vk.ir.attributes import GatherAttributes
from tflite_vk.ir.graph import Graph, Node, Tensor
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.division import division_words
from tflite_vk.ops.moving import (
    MOVED,
    check_data_types,
    check_indices,
    index_buffer,
    lanes_variant,
)
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.registry import register
from tflite_vk.shape import (
    LANES,
    Shape,
    inner,
    normalize_axis,
    num_elements,
    num_vectors,
    vectors_per_row,
)

_MODES = {"rows": 0, "columns": 1, "elements": 2}


@dataclass(frozen=True)
class Parts:
    """What takes part in a gather: GATHER and EMBEDDING_LOOKUP order their inputs differently."""

    values: Tensor
    indices: Tensor
    axis: int
    batch_dims: int


def _parts(node: Node, graph: Graph) -> Parts:
    if node.op == "EMBEDDING_LOOKUP":
        return Parts(graph.input(node, 1), graph.input(node, 0), 0, 0)
    values, indices = graph.input(node, 0), graph.input(node, 1)
    assert isinstance(node.attributes, GatherAttributes)
    axis = normalize_axis(node.attributes.axis, values.rank)
    batch_dims = node.attributes.batch_dims
    if batch_dims < 0:
        batch_dims += indices.rank
    if axis is None:
        raise ValueError(f"axis {node.attributes.axis} of a tensor of rank {values.rank}")
    if not 0 <= batch_dims <= min(axis, indices.rank):
        raise ValueError(f"batch_dims {node.attributes.batch_dims} with axis {axis}")
    if values.shape[:batch_dims] != indices.shape[:batch_dims]:
        raise ValueError(
            f"the first {batch_dims} of {list(values.shape)} and {list(indices.shape)} differ"
        )
    return Parts(values, indices, axis, batch_dims)


@register
class Gather(Operator):
    """Slices along an axis, chosen by indices."""

    versions = {"GATHER": 7, "EMBEDDING_LOOKUP": 5}
    dtypes = MOVED
    differs = dict.fromkeys(
        versions,
        "a run-time index that lies outside gives zeros: TFLite stops with an error, which a device can't",
    )

    def check(self, node: Node, graph: Graph) -> str | None:
        parts = _parts(node, graph)
        values, indices = (1, 0) if node.op == "EMBEDDING_LOOKUP" else (0, 1)
        reason = check_data_types(node, graph, [values])
        return reason or check_indices(node, graph, indices, [parts.values.shape[parts.axis]])

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape]:
        if node.op == "EMBEDDING_LOOKUP" and graph.input(node, 0).rank != 1:
            raise ValueError(f"indices of rank {graph.input(node, 0).rank} (supported: 1)")
        p = _parts(node, graph)
        values, chosen = p.values.shape, p.indices.shape[p.batch_dims :]
        if not values:
            raise ValueError("gathers from a scalar")
        return [(*values[: p.axis], *chosen, *values[p.axis + 1 :])]

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        p = _parts(node, ctx.graph)
        output = ctx.graph.output(node)
        source, indices = p.values.shape, p.indices.shape
        chosen = num_elements(indices[p.batch_dims :])
        inner_size = 1
        if p.axis < len(source) - 1:
            mode, inner_size = "rows", num_vectors(source[p.axis + 1 :])
        elif p.batch_dims < len(indices):
            mode, chosen = "columns", chosen // inner(indices)
        else:
            mode = "elements"
        outer = num_elements(source[p.batch_dims : p.axis])
        y_groups = vectors_per_row(output.shape)
        vectors = num_vectors(output.shape)
        ctx.dispatch_flat(
            node,
            lanes_variant("gather", ctx.storage(output)),
            [ctx.buffer(p.values.id), index_buffer(ctx, p.indices), ctx.buffer(output.id)],
            invocations=vectors,
            spec=(_MODES[mode],),
            push=(
                vectors,
                inner_size,
                chosen,
                outer,
                source[p.axis],
                inner(indices),
                vectors_per_row(indices) * LANES,
                inner(source),
                vectors_per_row(source) * LANES,
                inner(output.shape),
                y_groups,
                *division_words(
                    (inner_size, chosen, outer, inner(indices), max(1, inner(source)), y_groups), 6
                ),
            ),
        )
