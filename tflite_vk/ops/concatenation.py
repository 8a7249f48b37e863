"""CONCATENATION and PACK: tensors side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tflite_vk.ir.attributes import ConcatenationAttributes, PackAttributes
from tflite_vk.ir.graph import Graph, Node, Tensor
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.division import division_words
from tflite_vk.ops.moving import MOVED, check_data_types, lanes_variant
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.registry import register
from tflite_vk.shape import (
    LANES,
    Shape,
    ceil_div,
    inner,
    normalize_axis,
    num_elements,
    padded_elements,
    rows,
    vectors_per_row,
)

INPUTS_PER_DISPATCH = 4


@dataclass(frozen=True)
class Piece:
    """What one input adds to every row of the result, in groups or in lanes.

    Attributes:
        buffer: the input's.
        size: of its piece of a row.
        stride: from its piece of one row to that of the next.
    """

    buffer: int
    size: int
    stride: int


def _axis(node: Node, graph: Graph) -> int:
    rank = graph.input(node, 0).rank + (node.op == "PACK")
    assert isinstance(node.attributes, ConcatenationAttributes | PackAttributes)
    axis = normalize_axis(node.attributes.axis, rank)
    if axis is None:
        raise ValueError(f"axis {node.attributes.axis} of a result of rank {rank}")
    return axis


@register
class Concatenation(Operator):
    """Tensors side by side."""

    versions = {"CONCATENATION": 5, "PACK": 4}
    dtypes = MOVED
    notes = "any number of inputs, constants among them"

    def check(self, node: Node, graph: Graph) -> str | None:
        return check_data_types(node, graph, range(len(node.inputs)))

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape]:
        axis = _axis(node, graph)
        shapes = [graph.input(node, i).shape for i in range(len(node.inputs))]
        if node.op == "PACK":
            if len(set(shapes)) != 1:
                raise ValueError(f"shapes {[list(s) for s in shapes]} differ")
            return [(*shapes[0][:axis], len(shapes), *shapes[0][axis:])]
        if len({(len(s), s[:axis], s[axis + 1 :]) for s in shapes}) != 1:
            raise ValueError(f"shapes {[list(s) for s in shapes]} differ in more than axis {axis}")
        return [(*shapes[0][:axis], sum(s[axis] for s in shapes), *shapes[0][axis + 1 :])]

    def is_alias(self, node: Node, graph: Graph) -> bool:
        source = graph.input(node, 0)
        return (
            len(node.inputs) == 1
            and not source.is_variable
            and inner(source.shape) == inner(graph.output(node).shape)
        )

    def source(self, node: Node, ctx: LoweringContext, tensor: Tensor) -> int:
        """The buffer that an input is copied from."""
        del node
        return ctx.buffer(tensor.id)

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        axis = _axis(node, ctx.graph)
        shape = ctx.graph.output(node).shape
        is_last = axis == len(shape) - 1
        sources = [ctx.graph.tensors[t] for t in node.inputs]
        sources = [t for t in sources if t.num_elements]
        buffers = [self.source(node, ctx, t) for t in sources]
        if not is_last:
            outer = num_elements(shape[:axis])
            sizes = [padded_elements(t.shape) // LANES // outer for t in sources]
            pieces = [Piece(b, n, n) for b, n in zip(buffers, sizes, strict=True)]
            self._dispatch(node, ctx, pieces, outer, 1, in_lanes=False)
        elif node.op == "PACK":
            # Each input is a column; its own rows are as long as the dimension before.
            stride = vectors_per_row(sources[0].shape) * LANES
            pieces = [Piece(b, 1, stride) for b in buffers]
            self._dispatch(node, ctx, pieces, rows(shape), inner(sources[0].shape), in_lanes=True)
        else:
            widths = [inner(t.shape) for t in sources]
            in_lanes = any(w % LANES for w in widths[:-1])
            units = [
                (w, vectors_per_row(t.shape) * LANES)
                if in_lanes
                else (vectors_per_row(t.shape),) * 2
                for w, t in zip(widths, sources, strict=True)
            ]
            pieces = [Piece(b, *unit) for b, unit in zip(buffers, units, strict=True)]
            self._dispatch(node, ctx, pieces, rows(shape), 1, in_lanes=in_lanes)

    def _dispatch(
        self,
        node: Node,
        ctx: LoweringContext,
        pieces: Sequence[Piece],
        num_rows: int,
        row_inner: int,
        *,
        in_lanes: bool,
    ) -> None:
        unit = LANES if in_lanes else 1
        y_groups = ceil_div(sum(p.size for p in pieces), unit)
        output = ctx.graph.output(node)
        first = 0
        for at in range(0, len(pieces), INPUTS_PER_DISPATCH):
            some = pieces[at : at + INPUTS_PER_DISPATCH]
            spare = INPUTS_PER_DISPATCH - len(some)
            starts = [first]
            for piece in some:
                starts.append(starts[-1] + piece.size)
            is_last = at + INPUTS_PER_DISPATCH >= len(pieces)
            end = y_groups * unit if is_last else starts[-1]
            first_group = first // unit
            groups_per_row = ceil_div(end, unit) - first_group
            ctx.dispatch_flat(
                node,
                lanes_variant("concatenation", ctx.storage(output)),
                [*(p.buffer for p in some), *[ctx.unused()] * spare, ctx.buffer(output.id)],
                invocations=num_rows * groups_per_row,
                spec=(int(in_lanes), len(some)),
                push=(
                    num_rows * groups_per_row,
                    groups_per_row,
                    first_group,
                    y_groups,
                    *starts,
                    *[starts[-1]] * spare,
                    end,
                    *(p.stride for p in some),
                    *[0] * spare,
                    row_inner,
                    *division_words((groups_per_row, row_inner), 2),
                ),
            )
            first = starts[-1]
