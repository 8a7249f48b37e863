"""UNIDIRECTIONAL_SEQUENCE_LSTM, LSTM and BIDIRECTIONAL_SEQUENCE_LSTM, float, with every optional part."""

from __future__ import annotations

from collections.abc import Sequence

from tflite_vk.ir.attributes import BidirectionalLstmAttributes, LstmAttributes
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.lstm_basic import basic_shapes, is_basic, lower_basic
from tflite_vk.ops.lstm_lowering import States, lower_direction
from tflite_vk.ops.lstm_weights import Floats, LstmWeights, Positions, constant, read_weights
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.registry import register
from tflite_vk.ops.sequences import (
    Sequences,
    Target,
    check_directions,
    check_states,
    direction_targets,
)
from tflite_vk.shape import LANES, Shape, ceil_div

_OUTPUT_STATE, _CELL_STATE = 18, 19


@register
class Lstm(Operator):
    """UNIDIRECTIONAL_SEQUENCE_LSTM, and LSTM as one step of it.

    Source: EvalFloat of tflite/kernels/lstm_eval.cc.
    """

    versions = {"UNIDIRECTIONAL_SEQUENCE_LSTM": 4, "LSTM": 4}
    notes = "float; constant weights; peephole, projection, layer norm, coupled gates"
    differs = {
        "LSTM": "of kernel_type BASIC, whose states are no variables, leaves its inputs as they are: TFLite"
        " writes the new states over them",
    }

    def check(self, node: Node, graph: Graph) -> str | None:
        return "its input is a constant" if graph.input(node, 0).is_const else None

    def _constant(self, node: Node, graph: Graph, position: int) -> Floats | None:
        return constant(node, graph, position)

    def _read(self, node: Node, graph: Graph) -> tuple[LstmWeights, Sequences]:
        """Everything about a node.

        Raises:
            ValueError: a part that isn't supported or doesn't fit.
        """
        a = node.attributes
        assert isinstance(a, LstmAttributes)
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
        weights = read_weights(node, graph, at, shape[-1], self._constant)
        count = sequences.count
        check_states(
            node,
            graph,
            {_OUTPUT_STATE: (count, weights.outputs), _CELL_STATE: (count, weights.cells)},
        )
        return weights, sequences

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape]:
        if is_basic(node):
            return basic_shapes(node, graph)
        weights, _ = self._read(node, graph)
        return [(*graph.input(node, 0).shape[:-1], weights.outputs)]

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        if is_basic(node):
            lower_basic(node, ctx)
            return
        weights, sequences = self._read(node, ctx.graph)
        lower_direction(
            node,
            ctx,
            weights,
            sequences,
            States.kept(ctx, node.inputs[_OUTPUT_STATE], node.inputs[_CELL_STATE]),
            source=ctx.buffer(node.inputs[0]),
            target=Target(ctx.buffer(node.outputs[0]), ceil_div(weights.outputs, LANES)),
        )


_FORWARD = Positions(norms=None)
_BACKWARD = Positions(18, 22, 26, 29, 33, 34, None)
_BIDIRECTIONAL_INPUTS = 48
_AUXILIARY = range(39, _BIDIRECTIONAL_INPUTS)


@register
class BidirectionalLstm(Operator):
    """BIDIRECTIONAL_SEQUENCE_LSTM.

    Source: tflite/kernels/bidirectional_sequence_lstm.cc.
    """

    versions = {"BIDIRECTIONAL_SEQUENCE_LSTM": 3}
    notes = "float; constant weights; peephole, projection, coupled gates; no auxiliary input"

    def check(self, node: Node, graph: Graph) -> str | None:
        return "its input is a constant" if graph.input(node, 0).is_const else None

    def _read(self, node: Node, graph: Graph) -> tuple[LstmWeights, LstmWeights, Sequences]:
        """Everything about a node.

        Raises:
            ValueError: a part that isn't supported or doesn't fit.
        """
        a = node.attributes
        assert isinstance(a, BidirectionalLstmAttributes)
        if len(node.inputs) != _BIDIRECTIONAL_INPUTS or not node.has_input(0):
            raise ValueError(f"has {len(node.inputs)} inputs (supported: {_BIDIRECTIONAL_INPUTS})")
        if any(node.has_input(i) for i in _AUXILIARY):
            raise ValueError("has an auxiliary input (supported: none)")
        shape = graph.input(node, 0).shape
        if len(shape) != 3:
            raise ValueError(f"input has shape {list(shape)} (supported: rank 3)")
        sequences = Sequences.of(shape, time_major=a.time_major)
        forward = read_weights(node, graph, _FORWARD, shape[-1])
        backward = read_weights(node, graph, _BACKWARD, shape[-1])
        check_directions(node, forward.outputs, merge=a.merge_outputs)
        count = sequences.count
        states = (forward.outputs, forward.cells, backward.outputs, backward.cells)
        check_states(node, graph, {35 + i: (count, size) for i, size in enumerate(states)})
        return forward, backward, sequences

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape]:
        forward, backward, _ = self._read(node, graph)
        steps = graph.input(node, 0).shape[:-1]
        if len(node.outputs) == 1:
            return [(*steps, forward.outputs + backward.outputs)]
        return [(*steps, forward.outputs), (*steps, backward.outputs)]

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        forward, backward, sequences = self._read(node, ctx.graph)
        targets = direction_targets(node, ctx, forward.outputs, backward.outputs)
        for i, (weights, target) in enumerate(zip((forward, backward), targets, strict=True)):
            lower_direction(
                node,
                ctx,
                weights,
                sequences,
                States.kept(ctx, *node.inputs[35 + 2 * i : 37 + 2 * i]),
                source=ctx.buffer(node.inputs[0]),
                target=target,
            )
