"""UNIDIRECTIONAL_SEQUENCE_LSTM and LSTM of floats with int8 weights.

Source: EvalHybrid of tflite/kernels/lstm_eval.cc: the inputs and the outputs of the step before are
quantized in every step, each sequence by itself, and so is what a projection takes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflite_vk.ir.attributes import LstmAttributes
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.hybrid.activations import integers_of, padded_rows, products_of_rows, scale_of
from tflite_vk.ops.launch import fold
from tflite_vk.ops.lstm import Lstm
from tflite_vk.ops.lstm_basic import is_basic
from tflite_vk.ops.lstm_lowering import States
from tflite_vk.ops.lstm_weights import Floats, LstmWeights
from tflite_vk.ops.quantized.weights import Ints, pack_dot4
from tflite_vk.ops.registry import register
from tflite_vk.ops.sequences import Sequences, activation_code, local_size
from tflite_vk.program import float_word
from tflite_vk.shape import LANES, Shape, ceil_div, round_up

_INPUT_WEIGHTS, _RECURRENT_WEIGHTS, _PROJECTION = range(1, 5), range(5, 9), 16
_PEEPHOLES = range(9, 12)
_OUTPUT_STATE, _CELL_STATE = 18, 19
_MATRICES = frozenset({*_INPUT_WEIGHTS, *_RECURRENT_WEIGHTS, _PROJECTION})


def _ints(matrix: Floats) -> Ints:
    return matrix.astype(np.int64)


def _stacked(matrices: Sequence[Floats]) -> Ints:
    """Matrices of the gates above one another, each padded to whole groups."""
    return np.concatenate([padded_rows(m) for m in matrices])


def _scales(node: Node, graph: Graph, positions: Sequence[int]) -> Floats:
    return np.array([scale_of(node, graph, i) for i in positions], np.float32)


@register
class HybridLstm(Lstm):
    """UNIDIRECTIONAL_SEQUENCE_LSTM, and LSTM as one step of it."""

    kind = "hybrid"
    notes = (
        "constant int8 weights of one scale; inputs and states are quantized while running, as TFLite "
        "does: a state that differs in its last bit may be quantized to the next step"
    )

    def _constant(self, node: Node, graph: Graph, position: int) -> Floats | None:
        """Integers of a matrix, reals of anything else."""
        tensor = graph.optional_input(node, position)
        if tensor is None or (position not in _MATRICES and position not in _PEEPHOLES):
            return super()._constant(node, graph, position)
        values = integers_of(node, graph, position)
        if values is None or position in _MATRICES:
            return values
        return values * scale_of(node, graph, position)

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape]:
        if is_basic(node):
            raise ValueError("kernel_type BASIC with INT8 weights (supported: FULL)")
        return super().output_shapes(node, graph)

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        weights, sequences = self._read(node, ctx.graph)
        a = node.attributes
        assert isinstance(a, LstmAttributes)
        gates, count = len(weights.input_weights), sequences.count
        cell_groups = ceil_div(weights.cells, LANES)
        output_groups = ceil_div(weights.outputs, LANES)
        projection = ctx.unused()
        if weights.projection is not None:
            packed = pack_dot4(_ints(weights.projection)[:, None, :])
            projection = ctx.constant(packed, "projection")
        recurrent = pack_dot4(_stacked(weights.recurrent_weights)[:, None, :])
        states = States.kept(ctx, node.inputs[_OUTPUT_STATE], node.inputs[_CELL_STATE])
        scratch = count * (6 * cell_groups + output_groups) * LANES
        ctx.dispatch(
            node,
            ctx.variant("lstm_hybrid"),
            [
                self._input_products(node, ctx, weights, sequences),
                ctx.constant(recurrent, "recurrent weights"),
                ctx.constant(self._vectors(node, ctx.graph, weights), "gate vectors"),
                projection,
                *states.buffers,
                ctx.temporary(scratch, "gates and cells"),
                ctx.buffer(node.outputs[0]),
                ctx.temporary(count * max(cell_groups, output_groups), "quantized states"),
            ],
            groups=fold(count, ctx.limits),
            spec=(
                *(local_size(gates * cell_groups, ctx.device), 1, 1),
                gates,
                int(weights.has_peephole),
                int(weights.has_layer_norm),
                int(weights.projection is not None),
                activation_code(a.fused_activation_function),
                int(a.asymmetric_quantize_inputs),
            ),
            push=(
                *(count, sequences.steps, weights.cells, cell_groups),
                *(weights.outputs, output_groups, *sequences.strides),
                *(output_groups, 0, 0),
                float_word(max(0.0, a.cell_clip)),
                float_word(max(0.0, a.proj_clip)),
            ),
            flops=2 * sequences.steps * count * gates * weights.cells * weights.outputs,
        )

    def _vectors(self, node: Node, graph: Graph, weights: LstmWeights) -> Floats:
        """What lstm.comp reads beside matrices, the scales and sums of the weights behind the rest."""
        first = 4 - len(weights.input_weights)
        scales = np.zeros((2, LANES), np.float32)
        of_gates = _scales(node, graph, _RECURRENT_WEIGHTS[first:])
        scales[0, : len(of_gates)] = of_gates
        recurrent_sums = _stacked(weights.recurrent_weights).sum(axis=1).astype(np.float32)
        projection_sums = np.zeros(round_up(weights.outputs, LANES), np.float32)
        if weights.projection is not None:
            scales[1] = _scales(node, graph, (_PROJECTION,))[0]
            projection_sums[: weights.outputs] = weights.projection.sum(axis=1)
        vectors = weights.packed_vectors()
        return np.concatenate([vectors, scales.reshape(-1), recurrent_sums, projection_sums])

    def _input_products(
        self, node: Node, ctx: LoweringContext, weights: LstmWeights, sequences: Sequences
    ) -> int:
        """Add the dispatches that multiply all inputs with the weights of all gates."""
        a = node.attributes
        assert isinstance(a, LstmAttributes)
        matrix = _stacked(weights.input_weights)
        gates = len(weights.input_weights)
        of_gates = _scales(node, ctx.graph, _INPUT_WEIGHTS[4 - gates :])
        return products_of_rows(
            ctx,
            node,
            ctx.buffer(node.inputs[0]),
            matrix,
            np.repeat(of_gates, matrix.shape[0] // gates),
            sequences.steps * sequences.count,
            is_asymmetric=a.asymmetric_quantize_inputs,
        )
