"""REVERSE_V2 and REVERSE_SEQUENCE."""

from __future__ import annotations

from collections.abc import Sequence

from tflite_vk.ir.attributes import ReverseSequenceAttributes
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.moving import (
    MOVED,
    check_data_types,
    check_index_type,
    index_buffer,
    input_ints,
    lanes_variant,
)
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.registry import register
from tflite_vk.ops.strided_copy import rows_view, strided_copy
from tflite_vk.shape import (
    LANES,
    Shape,
    inner,
    normalize_axis,
    num_vectors,
    strides,
    vectors_per_row,
)


@register
class ReverseV2(Operator):
    """Dimensions backwards."""

    versions = {"REVERSE_V2": 3}
    dtypes = MOVED
    notes = "the axes must be constants"

    def check(self, node: Node, graph: Graph) -> str | None:
        axes = input_ints(node, graph, 1)
        rank = graph.input(node, 0).rank
        if axes is None:
            return "the axes are no constant"
        if any(normalize_axis(axis, rank) is None for axis in axes):
            return f"axes {list(axes)} of a tensor of rank {rank}"
        return check_data_types(node, graph, [0])

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape]:
        return [graph.input(node, 0).shape]

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        source, target = ctx.graph.input(node, 0), ctx.graph.output(node)
        steps = list(strides(source.shape))
        base = 0
        for axis in {normalize_axis(a, source.rank) for a in input_ints(node, ctx.graph, 1) or ()}:
            assert axis is not None
            base += (source.shape[axis] - 1) * steps[axis]
            steps[axis] = -steps[axis]
        strided_copy(
            ctx,
            node,
            ctx.buffer(source.id),
            ctx.buffer(target.id),
            target.shape,
            rows_view(target.shape, steps, base),
            ctx.storage(target),
        )


@register
class ReverseSequence(Operator):
    """The first elements of each sequence backwards."""

    versions = {"REVERSE_SEQUENCE": 1}
    dtypes = MOVED

    def check(self, node: Node, graph: Graph) -> str | None:
        reason = check_index_type(node, graph, 1)
        return reason or check_data_types(node, graph, [0])

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape]:
        source, lengths = graph.input(node, 0).shape, graph.input(node, 1).shape
        a = node.attributes
        assert isinstance(a, ReverseSequenceAttributes)
        if not (0 <= a.seq_dim < len(source) and 0 <= a.batch_dim < len(source)) or (
            a.seq_dim == a.batch_dim
        ):
            raise ValueError(
                f"seq_dim {a.seq_dim} and batch_dim {a.batch_dim} for rank {len(source)}"
            )
        if lengths != (source[a.batch_dim],):
            raise ValueError(
                f"lengths of shape {list(lengths)} for a batch of {source[a.batch_dim]}"
            )
        return [source]

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        source, target = ctx.graph.input(node, 0), ctx.graph.output(node)
        a = node.attributes
        assert isinstance(a, ReverseSequenceAttributes)
        in_lanes = source.rank - 1 in {a.seq_dim, a.batch_dim}
        steps = [s // (1 if in_lanes else LANES) for s in strides(source.shape)]
        # Along the innermost dimension an element's place is taken modulo the padded row.
        sizes = [*source.shape[:-1], vectors_per_row(source.shape) * LANES]
        vectors = num_vectors(target.shape)
        ctx.dispatch_flat(
            node,
            lanes_variant("reverse_sequence", ctx.storage(target)),
            [
                ctx.buffer(source.id),
                index_buffer(ctx, ctx.graph.input(node, 1)),
                ctx.buffer(target.id),
            ],
            invocations=vectors,
            spec=(int(in_lanes),),
            push=(
                vectors,
                source.shape[a.seq_dim],
                sizes[a.seq_dim],
                steps[a.seq_dim],
                sizes[a.batch_dim],
                steps[a.batch_dim],
                inner(target.shape),
                vectors_per_row(target.shape),
            ),
        )
