"""UNIDIRECTIONAL_SEQUENCE_RNN and RNN of floats with int8 weights.

Source: the hybrid RnnBatchStep of tflite/kernels/internal/kernel_utils.cc: inputs and states are quantized
in every step, each sequence by itself.
"""

from __future__ import annotations

import numpy as np

from tflite_vk.ir.attributes import RnnAttributes
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.hybrid.activations import integers_of, padded_rows, products_of_rows, scale_of
from tflite_vk.ops.launch import fold
from tflite_vk.ops.quantized.weights import pack_dot4
from tflite_vk.ops.registry import register
from tflite_vk.ops.rnn import Floats, Rnn
from tflite_vk.ops.sequences import activation_code, local_size
from tflite_vk.program import float_word
from tflite_vk.shape import LANES, ceil_div

_WEIGHTS, _RECURRENT = 1, 2


@register
class HybridRnn(Rnn):
    """UNIDIRECTIONAL_SEQUENCE_RNN, and RNN as one step of it."""

    kind = "hybrid"
    notes = (
        "constant int8 weights of one scale; inputs and states are quantized while running, as TFLite "
        "does: a state that differs in its last bit may be quantized to the next step"
    )

    def _matrix(self, node: Node, graph: Graph, position: int) -> Floats | None:
        return integers_of(node, graph, position)

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        layer, sequences = self._read(node, ctx.graph)
        a = node.attributes
        assert isinstance(a, RnnAttributes)
        groups = ceil_div(layer.units, LANES)
        units = groups * LANES
        products = products_of_rows(
            ctx,
            node,
            ctx.buffer(node.inputs[0]),
            padded_rows(layer.weights),
            np.full(units, scale_of(node, ctx.graph, _WEIGHTS), np.float32),
            sequences.steps * sequences.count,
            is_asymmetric=a.asymmetric_quantize_inputs,
        )
        recurrent = padded_rows(layer.recurrent)
        vectors = np.zeros((2, units), np.float32)
        vectors[0, : layer.units] = layer.bias
        vectors[1] = recurrent.sum(axis=1)
        ctx.dispatch(
            node,
            ctx.variant("rnn_hybrid"),
            [
                products,
                ctx.constant(pack_dot4(recurrent[:, None, :]), "recurrent weights"),
                ctx.constant(vectors, "bias and sums of weights"),
                *ctx.kept(node.inputs[layer.state_at]),
                ctx.temporary(sequences.count * 2 * units, "states"),
                ctx.buffer(node.outputs[0]),
                ctx.temporary(sequences.count * groups, "quantized states"),
            ],
            groups=fold(sequences.count, ctx.limits),
            spec=(
                *(local_size(groups, ctx.device), 1, 1),
                activation_code(a.fused_activation_function),
                int(a.asymmetric_quantize_inputs),
            ),
            push=(
                *(sequences.count, sequences.steps, layer.units, groups),
                *sequences.strides,
                *(groups, 0, 0),
                float_word(float(scale_of(node, ctx.graph, _RECURRENT))),
            ),
            flops=2 * sequences.steps * sequences.count * layer.units * layer.units,
        )
