"""Lowering of one direction of an LSTM."""

from __future__ import annotations

from dataclasses import dataclass

from tflite_vk.ir.attributes import LstmAttributes
from tflite_vk.ir.graph import Node
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.launch import fold
from tflite_vk.ops.lstm_weights import LstmWeights
from tflite_vk.ops.sequences import (
    Sequences,
    Target,
    activation_code,
    input_products,
    local_size,
)
from tflite_vk.program import float_word
from tflite_vk.shape import LANES, ceil_div


@dataclass(frozen=True)
class States:
    """Buffers of outputs and cells, before and after; the same ones where the device keeps them."""

    outputs_before: int
    cells_before: int
    outputs_after: int
    cells_after: int

    @classmethod
    def kept(cls, ctx: LoweringContext, outputs: int, cells: int) -> States:
        """Of the variables that hold them."""
        (outputs_before, outputs_after), (cells_before, cells_after) = map(
            ctx.kept, (outputs, cells)
        )
        return cls(outputs_before, cells_before, outputs_after, cells_after)

    @property
    def buffers(self) -> tuple[int, int, int, int]:
        """In the order of a kernel's bindings."""
        return self.outputs_before, self.cells_before, self.outputs_after, self.cells_after


def lower_direction(
    node: Node,
    ctx: LoweringContext,
    weights: LstmWeights,
    sequences: Sequences,
    states: States,
    *,
    source: int,
    target: Target,
) -> None:
    """Add the two dispatches of one direction: all input products at once, then the steps."""
    a = node.attributes
    assert isinstance(a, LstmAttributes)
    gates, cells, outputs = len(weights.input_weights), weights.cells, weights.outputs
    cell_groups, output_groups = ceil_div(cells, LANES), ceil_div(outputs, LANES)
    rows = sequences.steps * sequences.count
    products = input_products(node, ctx, source, weights.packed_inputs(), rows)
    projection = weights.packed_projection()
    local = local_size(gates * cell_groups, ctx.device)
    ctx.dispatch(
        node,
        ctx.variant("lstm"),
        [
            products,
            ctx.constant(weights.packed_recurrent(), "recurrent weights"),
            ctx.constant(weights.packed_vectors(), "gate vectors"),
            ctx.unused() if projection is None else ctx.constant(projection, "projection"),
            *states.buffers,
            ctx.temporary(
                sequences.count * (6 * cell_groups + output_groups) * LANES, "gates and cells"
            ),
            target.buffer,
        ],
        groups=fold(sequences.count, ctx.limits),
        spec=(
            *(local, 1, 1),
            gates,
            int(weights.has_peephole),
            int(weights.has_layer_norm),
            int(projection is not None),
            activation_code(a.fused_activation_function),
        ),
        push=(
            sequences.count,
            sequences.steps,
            cells,
            cell_groups,
            outputs,
            output_groups,
            *sequences.strides,
            target.row_groups,
            target.first,
            int(target.is_reverse),
            float_word(max(0.0, a.cell_clip)),
            float_word(max(0.0, a.proj_clip)),
        ),
        flops=2 * rows * gates * cells * outputs,
    )
