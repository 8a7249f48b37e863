"""LSTM of kernel_type BASIC: one step, all gates in one matrix, states as tensors of the graph.

Source: LstmCell of tflite/kernels/internal/reference/reference_ops.h: gates in the order input, cell,
forget, output; inputs before outputs in each row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tflite_vk.ir.attributes import LstmAttributes
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.lstm_lowering import States, lower_direction
from tflite_vk.ops.lstm_weights import LstmWeights, constant
from tflite_vk.ops.sequences import Sequences, Target
from tflite_vk.shape import LANES, Shape, ceil_div, num_vectors, vectors_per_row

_ORDER = (0, 2, 1, 3)
"""Where the gates input, forget, cell, output stand in the matrix."""


def is_basic(node: Node) -> bool:
    """True for an LSTM of kernel_type BASIC."""
    return isinstance(node.attributes, LstmAttributes) and node.attributes.kernel_type == "BASIC"


def _read(node: Node, graph: Graph) -> LstmWeights:
    a = node.attributes
    assert isinstance(a, LstmAttributes)
    if node.op != "LSTM" or len(node.outputs) != 4:
        raise ValueError(f"kernel_type BASIC with {len(node.outputs)} outputs (supported: LSTM, 4)")
    if a.fused_activation_function != "TANH" or a.cell_clip or a.proj_clip:
        raise ValueError("kernel_type BASIC with clips or another activation than TANH")
    shapes = [graph.input(node, i).shape for i in (0, 1, 4)]
    if any(len(s) != 2 or s[0] != shapes[0][0] for s in shapes) or shapes[1] != shapes[2]:
        raise ValueError(f"input, activation and state {[list(s) for s in shapes]} don't fit")
    weights, biases = constant(node, graph, 2), constant(node, graph, 3)
    inputs, cells = shapes[0][1], shapes[1][1]
    if weights is None or weights.shape != (4 * cells, inputs + cells):
        raise ValueError(f"weights don't fit {inputs} inputs and {cells} cells")
    if biases is None or biases.shape != (4 * cells,):
        raise ValueError(f"biases don't fit {cells} cells")
    gates = [weights[g * cells : (g + 1) * cells] for g in _ORDER]
    return LstmWeights(
        input_weights=tuple(g[:, :inputs] for g in gates),
        recurrent_weights=tuple(g[:, inputs:] for g in gates),
        vectors=(*(biases[g * cells : (g + 1) * cells] for g in _ORDER), *[None] * 7),
    )


def basic_shapes(node: Node, graph: Graph) -> Sequence[Shape]:
    """Shapes of activation, state, and two scratch outputs.

    Raises:
        ValueError: a part that isn't supported or doesn't fit.
    """
    weights = _read(node, graph)
    # The kernel has no use for the scratch outputs, so nothing may read them.
    scratch = node.outputs[2:]
    read = {t for other in graph.nodes for t in other.reads}
    if any(t in read or t in graph.outputs for t in scratch):
        raise ValueError("a scratch output of kernel_type BASIC is read (supported: unread)")
    count, cells = graph.input(node, 0).shape[0], weights.cells
    inputs = weights.input_weights[0].shape[1]
    return [(count, cells), (count, cells), (count, inputs + cells), (count, 4 * cells)]


def lower_basic(node: Node, ctx: LoweringContext) -> None:
    """Add the dispatches of an LSTM of kernel_type BASIC."""
    weights = _read(node, ctx.graph)
    shape = ctx.graph.input(node, 0).shape
    activation, cells = (ctx.graph.input(node, i) for i in (1, 4))
    # The activation is the new output state: the kernel writes it twice, once unread if no variable
    # takes it.
    if activation.is_variable:
        outputs_before, outputs_after = ctx.kept(activation.id)
    else:
        outputs_before = ctx.buffer(activation.id)
        size = shape[0] * ceil_div(weights.cells, LANES) * LANES
        outputs_after = ctx.temporary(size, "unread")
    cells_after = ctx.buffer(node.outputs[1])
    states = States(outputs_before, ctx.buffer(cells.id), outputs_after, cells_after)
    lower_direction(
        node,
        ctx,
        weights,
        Sequences.of(shape, time_major=False),
        states,
        source=ctx.buffer(node.inputs[0]),
        target=Target(ctx.buffer(node.outputs[0]), ceil_div(weights.cells, LANES)),
    )
    if cells.is_variable:
        _, kept = ctx.kept(cells.id)
        groups = num_vectors(cells.shape)
        push = (groups, vectors_per_row(cells.shape))
        plain = replace(node, steps=())
        ctx.compute_flat(plain, "elementwise", [cells_after], kept, invocations=groups, push=push)
