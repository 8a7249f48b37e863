"""UNIDIRECTIONAL_SEQUENCE_LSTM and LSTM, float, with every optional part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tflite_vk.epilogue import ACTIVATION_STEPS, UNARY_CODES
from tflite_vk.ir.attributes import LstmAttributes
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.layout import pack
from tflite_vk.ops.batch_matmul import Products, lower_products
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.launch import fold
from tflite_vk.ops.lstm_weights import LstmWeights, Positions, read_weights
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.registry import register
from tflite_vk.program import float_word
from tflite_vk.shape import LANES, Shape, ceil_div, num_elements, round_up

_OUTPUT_STATE, _CELL_STATE = 18, 19
_MAX_LOCAL_SIZE = 256
_SOFTWARE_LOCAL_SIZE = 16


@dataclass(frozen=True)
class Sequences:
    """A batch of sequences.

    Attributes:
        steps: length of each.
        count: how many.
        time_major: steps before sequences.
    """

    steps: int
    count: int
    time_major: bool

    @classmethod
    def of(cls, shape: Shape, *, time_major: bool) -> Sequences:
        """Of an input [batch, time, inputs], or [time, batch, inputs], or [batch, inputs]."""
        if len(shape) == 2:
            return cls(1, shape[0], time_major=False)
        steps, count = shape[:2] if time_major else (shape[1], shape[0])
        return cls(steps, count, time_major)

    @property
    def strides(self) -> tuple[int, int]:
        """Rows from step to step, and from sequence to sequence."""
        return (self.count, 1) if self.time_major else (1, self.steps)


@dataclass(frozen=True)
class States:
    """Buffers of outputs and cells, before and after; the same ones where they are kept."""

    outputs_before: int
    cells_before: int
    outputs_after: int
    cells_after: int


def lower_direction(
    node: Node,
    ctx: LoweringContext,
    weights: LstmWeights,
    sequences: Sequences,
    states: States,
    *,
    source: int,
    output: int,
    is_reverse: bool = False,
) -> None:
    """Add the two dispatches of one direction: all input products at once, then the steps."""
    a = node.attributes
    assert isinstance(a, LstmAttributes)
    gates, cells, outputs = len(weights.input_weights), weights.cells, weights.outputs
    cell_groups, output_groups = ceil_div(cells, LANES), ceil_div(outputs, LANES)
    rows, columns = sequences.steps * sequences.count, gates * round_up(cells, LANES)
    matrix = ctx.constant(
        pack(weights.packed_inputs(), "f16" if ctx.half else "f32"), "input weights"
    )
    products = ctx.temporary(rows * columns, "gates of the inputs")
    product = Products(rows, columns, weights.input_weights[0].shape[1], is_b_turned=True)
    shader = "batch_matmul_wide" if ctx.half else "batch_matmul"
    lower_products(replace(node, steps=()), ctx, product, (source, matrix, products), shader)

    projection = weights.packed_projection()
    most = min(_MAX_LOCAL_SIZE, ctx.limits.max_workgroup_invocations)
    if ctx.device.is_software:
        most = _SOFTWARE_LOCAL_SIZE
    local = 1 << min(most.bit_length() - 1, max(1, gates * cell_groups - 1).bit_length())
    activation = a.fused_activation_function
    ctx.dispatch(
        node,
        ctx.variant("lstm"),
        [
            products,
            ctx.constant(weights.packed_recurrent(), "recurrent weights"),
            ctx.constant(weights.packed_vectors(), "gate vectors"),
            ctx.unused() if projection is None else ctx.constant(projection, "projection"),
            states.outputs_before,
            states.cells_before,
            states.outputs_after,
            states.cells_after,
            ctx.temporary(
                sequences.count * (6 * cell_groups + output_groups) * LANES, "gates and cells"
            ),
            output,
        ],
        groups=fold(sequences.count, ctx.limits),
        spec=(
            *(local, 1, 1),
            gates,
            int(weights.has_peephole),
            int(weights.has_layer_norm),
            int(projection is not None),
            0 if activation == "NONE" else UNARY_CODES[ACTIVATION_STEPS[activation]],
        ),
        push=(
            sequences.count,
            sequences.steps,
            cells,
            cell_groups,
            outputs,
            output_groups,
            *sequences.strides,
            int(is_reverse),
            float_word(max(0.0, a.cell_clip)),
            float_word(max(0.0, a.proj_clip)),
        ),
        flops=2 * rows * gates * cells * outputs,
    )


def check_states(node: Node, graph: Graph, shapes: dict[int, Shape]) -> None:
    """Raise ValueError where a state, by position, is no variable of its shape."""
    for position, shape in shapes.items():
        state = graph.optional_input(node, position)
        if state is None or not state.is_variable:
            raise ValueError(f"input {position} is no variable (supported: the state kept there)")
        if num_elements(state.shape) != num_elements(shape) or state.shape[-1:] != shape[-1:]:
            raise ValueError(f"state {list(state.shape)} at input {position}, {list(shape)} fits")


@register
class Lstm(Operator):
    """UNIDIRECTIONAL_SEQUENCE_LSTM, and LSTM as one step of it.

    Source: EvalFloat of tflite/kernels/lstm_eval.cc.
    """

    versions = {"UNIDIRECTIONAL_SEQUENCE_LSTM": 4, "LSTM": 4}
    notes = "float; constant weights; peephole, projection, layer norm, coupled gates"

    def check(self, node: Node, graph: Graph) -> str | None:
        return "its input is a constant" if graph.input(node, 0).is_const else None

    def _read(self, node: Node, graph: Graph) -> tuple[LstmAttributes, LstmWeights, Sequences]:
        """Everything about a node.

        Raises:
            ValueError: a part that isn't supported or doesn't fit.
        """
        a = node.attributes
        assert isinstance(a, LstmAttributes)
        if a.kernel_type != "FULL":
            raise ValueError(f"kernel_type is {a.kernel_type} (supported: FULL)")
        if a.diagonal_recurrent_tensors:
            raise ValueError("diagonal_recurrent_tensors is set (supported: full matrices)")
        if len(node.inputs) not in (20, 24) or not node.has_input(0):
            raise ValueError(f"has {len(node.inputs)} inputs (supported: 20 or 24)")
        if len(node.outputs) != 1:
            raise ValueError(f"has {len(node.outputs)} outputs (supported: 1)")
        shape = graph.input(node, 0).shape
        rank = 2 if node.op == "LSTM" else 3
        if len(shape) != rank:
            raise ValueError(f"input has shape {list(shape)} (supported: rank {rank})")
        sequences = Sequences.of(shape, time_major=a.time_major and rank == 3)
        at = Positions() if len(node.inputs) == 24 else Positions(norms=None)
        weights = read_weights(node, graph, at, shape[-1])
        count = sequences.count
        check_states(
            node,
            graph,
            {_OUTPUT_STATE: (count, weights.outputs), _CELL_STATE: (count, weights.cells)},
        )
        return a, weights, sequences

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape]:
        _, weights, _ = self._read(node, graph)
        return [(*graph.input(node, 0).shape[:-1], weights.outputs)]

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        _, weights, sequences = self._read(node, ctx.graph)
        outputs, cells = (ctx.buffer(node.inputs[i]) for i in (_OUTPUT_STATE, _CELL_STATE))
        lower_direction(
            node,
            ctx,
            weights,
            sequences,
            States(outputs, cells, outputs, cells),
            source=ctx.buffer(node.inputs[0]),
            output=ctx.buffer(node.outputs[0]),
        )
