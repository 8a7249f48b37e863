"""SVDF of floats with int8 weights.

Source: EvalHybridSVDF of tflite/kernels/internal/reference/svdf.h: inputs are quantized while running, the
weights over time become floats.
"""

from __future__ import annotations

import numpy as np

from tflite_vk.ir.attributes import SvdfAttributes
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.hybrid.activations import integers_of, padded_rows, products_of_rows, scale_of
from tflite_vk.ops.lstm_weights import Floats
from tflite_vk.ops.registry import register
from tflite_vk.ops.svdf import Svdf

_FEATURES = 1


@register
class HybridSvdf(Svdf):
    """SVDF."""

    kind = "hybrid"
    notes = "constant int8 weights of one scale; inputs are quantized while running, as TFLite does"

    def _matrix(self, node: Node, graph: Graph, position: int) -> Floats | None:
        values = integers_of(node, graph, position)
        if values is None or position == _FEATURES:
            return values
        return values * scale_of(node, graph, position)

    def _products(self, node: Node, ctx: LoweringContext, features: Floats, rows: int) -> int:
        a = node.attributes
        assert isinstance(a, SvdfAttributes)
        matrix = padded_rows(features)
        return products_of_rows(
            ctx,
            node,
            ctx.buffer(node.inputs[0]),
            matrix,
            np.full(len(matrix), scale_of(node, ctx.graph, _FEATURES), np.float32),
            rows,
            is_asymmetric=a.asymmetric_quantize_inputs,
        )
