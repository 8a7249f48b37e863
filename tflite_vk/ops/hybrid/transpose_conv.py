"""TRANSPOSE_CONV of float activations and an int8 filter.

Source: EvalHybrid of tflite/kernels/transpose_conv.cc. TFLite adds the scaled products in float32, this adds
integers, which loses nothing.
"""

from __future__ import annotations

import numpy as np

from tflite_vk.ir.graph import Graph, Node
from tflite_vk.layout import pack, words_for
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.hybrid.activations import check_hybrid, quantize_rows, scale_sums
from tflite_vk.ops.quantized.transpose_conv import lower_transpose
from tflite_vk.ops.quantized.weights import filter_values, pack_dot4
from tflite_vk.ops.registry import register
from tflite_vk.ops.transpose_conv import TransposeConv


@register
class HybridTransposeConv(TransposeConv):
    """TRANSPOSE_CONV."""

    kind = "hybrid"
    notes = "constant int8 filter; activations are quantized while running, as TFLite does"

    def check(self, node: Node, graph: Graph) -> str | None:
        return check_hybrid(graph, node, 0, data_at=self.data_at, bias_at=self.bias_at)

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        x, weights = ctx.graph.input(node, self.data_at), ctx.graph.input(node, 1)
        output = ctx.graph.output(node)
        oc, kh, kw, ic = weights.shape
        values = filter_values(weights).reshape(oc, kh * kw, ic)
        tap_sums = values.sum(axis=2).T.astype(np.int32)  # [tap, output]
        rows = quantize_rows(ctx, node, ctx.buffer(x.id), x.shape, x.shape[0], is_asymmetric=True)
        sums = ctx.temporary(words_for(output.shape, "i32"), f"{output.name}/sums")
        lower_transpose(
            node,
            ctx,
            "transpose_conv_i8_raw",
            [
                rows.values,
                ctx.constant(pack_dot4(values), weights.name),
                rows.found,
                ctx.constant(pack(tap_sums, "i32"), f"{weights.name}/sums"),
                sums,
            ],
            data_at=self.data_at,
            spec=(0, 0),
            push=(0,) * 7,
        )
        # The kernel has taken off what the zero points add.
        nothing = np.zeros(oc, np.int64)
        scale_sums(ctx, node, rows, sums, nothing, scales_first=True, bias_at=self.bias_at)
