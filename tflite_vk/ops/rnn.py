"""RNN, UNIDIRECTIONAL_SEQUENCE_RNN and BIDIRECTIONAL_SEQUENCE_RNN, float."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tflite_vk.ir.attributes import BidirectionalRnnAttributes, RnnAttributes
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.layout import pack
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.conv_weights import pack_filter
from tflite_vk.ops.launch import fold
from tflite_vk.ops.lstm_weights import Read, constant
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.registry import register
from tflite_vk.ops.sequences import (
    Sequences,
    Target,
    activation_code,
    check_directions,
    check_states,
    direction_targets,
    input_products,
    local_size,
)
from tflite_vk.shape import LANES, Shape, ceil_div

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Layer:
    """One direction: weights [units, inputs] and [units, units], bias, position of the state."""

    weights: Floats
    recurrent: Floats
    bias: Floats
    state_at: int

    @property
    def units(self) -> int:
        """Number of units."""
        return int(self.weights.shape[0])


def read_layer(
    node: Node, graph: Graph, first: int, sequences: Sequences, read_matrix: Read = constant
) -> Layer:
    """The four inputs of a direction, from a position on.

    Args:
        node: the node.
        graph: its graph.
        first: the position.
        sequences: of its input.
        read_matrix: reads weights.

    Raises:
        ValueError: some are missing, not constant, no float, or don't fit.
    """
    weights, recurrent = (read_matrix(node, graph, first + i) for i in range(2))
    bias = constant(node, graph, first + 2)
    inputs = graph.input(node, 0).shape[-1]
    if weights is None or recurrent is None or bias is None:
        raise ValueError("weights or bias are missing")
    units = weights.shape[0]
    if (weights.shape, recurrent.shape, bias.shape) != ((units, inputs), (units, units), (units,)):
        raise ValueError(
            f"weights {list(weights.shape)}, {list(recurrent.shape)} and bias {list(bias.shape)} "
            f"don't fit {inputs} inputs"
        )
    check_states(node, graph, {first + 3: (sequences.count, units)})
    return Layer(weights, recurrent, bias, first + 3)


def _lower_layer(
    node: Node, ctx: LoweringContext, layer: Layer, sequences: Sequences, target: Target
) -> None:
    """Add the two dispatches of one direction: all input products at once, then the steps."""
    a = node.attributes
    assert isinstance(a, RnnAttributes)
    groups = ceil_div(layer.units, LANES)
    rows = sequences.steps * sequences.count
    ctx.dispatch(
        node,
        ctx.variant("rnn"),
        [
            input_products(node, ctx, ctx.buffer(node.inputs[0]), layer.weights, rows),
            ctx.constant(pack_filter(layer.recurrent[:, None, :]), "recurrent weights"),
            ctx.constant(pack(layer.bias, "f32"), "bias"),
            *ctx.kept(node.inputs[layer.state_at]),
            ctx.temporary(sequences.count * 2 * groups * LANES, "states"),
            target.buffer,
        ],
        groups=fold(sequences.count, ctx.limits),
        spec=(
            *(local_size(groups, ctx.device), 1, 1),
            activation_code(a.fused_activation_function),
        ),
        push=(
            sequences.count,
            sequences.steps,
            layer.units,
            groups,
            *sequences.strides,
            target.row_groups,
            target.first,
            int(target.is_reverse),
        ),
        flops=2 * rows * layer.units * layer.units,
    )


def _sequences(node: Node, graph: Graph, rank: int) -> Sequences:
    a = node.attributes
    assert isinstance(a, RnnAttributes)
    shape = graph.input(node, 0).shape
    if len(shape) != rank:
        raise ValueError(f"input has shape {list(shape)} (supported: rank {rank})")
    return Sequences.of(shape, time_major=a.time_major and rank == 3)


@register
class Rnn(Operator):
    """UNIDIRECTIONAL_SEQUENCE_RNN, and RNN as one step of it.

    Source: RnnBatchStep of tflite/kernels/internal/kernel_utils.cc.
    """

    versions = {"RNN": 3, "UNIDIRECTIONAL_SEQUENCE_RNN": 3}
    notes = "float; constant weights"

    def check(self, node: Node, graph: Graph) -> str | None:
        return "its input is a constant" if graph.input(node, 0).is_const else None

    def _matrix(self, node: Node, graph: Graph, position: int) -> Floats | None:
        return constant(node, graph, position)

    def _read(self, node: Node, graph: Graph) -> tuple[Layer, Sequences]:
        sequences = _sequences(node, graph, 2 if node.op == "RNN" else 3)
        return read_layer(node, graph, 1, sequences, self._matrix), sequences

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape]:
        layer, _ = self._read(node, graph)
        return [(*graph.input(node, 0).shape[:-1], layer.units)]

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        layer, sequences = self._read(node, ctx.graph)
        target = Target(ctx.buffer(node.outputs[0]), ceil_div(layer.units, LANES))
        _lower_layer(node, ctx, layer, sequences, target)


@register
class BidirectionalRnn(Operator):
    """BIDIRECTIONAL_SEQUENCE_RNN.

    Source: tflite/kernels/bidirectional_sequence_rnn.cc.
    """

    versions = {"BIDIRECTIONAL_SEQUENCE_RNN": 3}
    notes = "float; constant weights; no auxiliary input"

    def check(self, node: Node, graph: Graph) -> str | None:
        return "its input is a constant" if graph.input(node, 0).is_const else None

    def _read(self, node: Node, graph: Graph) -> tuple[Layer, Layer, Sequences]:
        a = node.attributes
        assert isinstance(a, BidirectionalRnnAttributes)
        if any(node.has_input(i) for i in (9, 10, 11)):
            raise ValueError("has an auxiliary input (supported: none)")
        sequences = _sequences(node, graph, 3)
        forward, backward = (read_layer(node, graph, i, sequences) for i in (1, 5))
        check_directions(node, forward.units, merge=a.merge_outputs)
        return forward, backward, sequences

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape]:
        forward, backward, _ = self._read(node, graph)
        steps = graph.input(node, 0).shape[:-1]
        if len(node.outputs) == 1:
            return [(*steps, forward.units + backward.units)]
        return [(*steps, forward.units), (*steps, backward.units)]

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        forward, backward, sequences = self._read(node, ctx.graph)
        targets = direction_targets(node, ctx, forward.units, backward.units)
        for layer, target in zip((forward, backward), targets, strict=True):
            _lower_layer(node, ctx, layer, sequences, target)
