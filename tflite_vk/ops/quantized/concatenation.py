"""CONCATENATION and PACK of quantized tensors, whose scales may differ where they are uint8.

Source: ConcatenationWithScaling of tflite/kernels/internal/reference/concatenation.h, and Prepare of
tflite/kernels/concatenation.cc, which wants equal scales of int8 and int16.
"""

from __future__ import annotations

import numpy as np

from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import ActivationAttributes
from tflite_vk.ir.graph import Graph, Node, Tensor
from tflite_vk.layout import words_for
from tflite_vk.ops.concatenation import Concatenation
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.quantization import check_affine, round_half_away, same_quantization
from tflite_vk.ops.quantized.lookup import lower_lookup
from tflite_vk.ops.quantized.tables import Table, from_integers
from tflite_vk.ops.registry import register


def rescaled(source: Tensor, result: Tensor) -> Table:
    """What TFLite makes of an input's bytes, in float32."""
    q, r = source.quantization, result.quantization
    assert q is not None
    assert r is not None
    scale = np.float32(q.scale[0]) * (np.float32(1) / np.float32(r.scale[0]))
    bias = np.float32(-q.zero_point[0]) * scale
    zero = r.zero_point[0]

    def function(value: int) -> int:
        return round_half_away(float(np.float32(value) * scale + bias)) + zero

    return from_integers(source, result, function)


@register
class QuantizedConcatenation(Concatenation):
    """Tensors side by side, in the output's scale."""

    kind = "quantized"
    dtypes = frozenset({DType.INT8, DType.UINT8, DType.INT16})
    notes = "UINT8 inputs of CONCATENATION may differ in scale; exact"

    def check(self, node: Node, graph: Graph) -> str | None:
        if (reason := super().check(node, graph)) is not None or node.op == "PACK":
            return reason
        a = node.attributes
        assert isinstance(a, ActivationAttributes)
        if a.fused_activation_function != "NONE":
            return f"fused activation {a.fused_activation_function} of integers (supported: NONE)"
        output = graph.output(node)
        tensors = [graph.input(node, i) for i in range(len(node.inputs))]
        if all(t.quantization == output.quantization for t in tensors):
            return None
        if output.dtype is not DType.UINT8:
            return f"inputs of {output.dtype.name} differ in scale (supported: UINT8)"
        named = [(t, f"input {i}") for i, t in enumerate(tensors)] + [(output, "output")]
        return next((r for t, role in named if (r := check_affine(t, role))), None)

    def is_alias(self, node: Node, graph: Graph) -> bool:
        same = same_quantization(graph.input(node, 0), graph.output(node))
        return same and super().is_alias(node, graph)

    def source(self, node: Node, ctx: LoweringContext, tensor: Tensor) -> int:
        """The buffer that an input is copied from: of its rescaled bytes where the scales differ."""
        output = ctx.graph.output(node)
        buffer = ctx.buffer(tensor.id)
        if node.op == "PACK" or same_quantization(tensor, output):
            return buffer
        target = ctx.temporary(words_for(tensor.shape, "u8"), f"{tensor.name}/rescaled")
        lower_lookup(ctx, node, buffer, target, tensor.shape, rescaled(tensor, output))
        return target
