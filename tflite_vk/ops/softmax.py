"""Operators on whole rows: SOFTMAX, LOG_SOFTMAX, L2_NORMALIZATION over the innermost dimension."""

from __future__ import annotations

from collections.abc import Sequence

from tflite_vk.ir.attributes import SoftmaxAttributes
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.launch import fold
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.reduction import SOFTWARE_SHARERS, power_of_two
from tflite_vk.ops.registry import register
from tflite_vk.program import float_word
from tflite_vk.shape import LANES, Shape, ceil_div, inner, rows, vectors_per_row

_OP_CODES = {"SOFTMAX": 0, "LOG_SOFTMAX": 1, "L2_NORMALIZATION": 2}
_LOCAL_SIZE = 128
_GROUPS_ALONE = 8
"""A row of so few groups is left to one invocation."""


@register
class Softmax(Operator):
    """SOFTMAX, LOG_SOFTMAX, L2_NORMALIZATION.

    Source: tflite/kernels/internal/reference/{softmax,log_softmax,l2normalization}.h; rows that
    are all -inf or hold +inf give NaN there and here.
    """

    versions = {"SOFTMAX": 3, "LOG_SOFTMAX": 2, "L2_NORMALIZATION": 2}
    ends_in_epilogue = True
    notes = "over the innermost dimension, any rank from 1"

    def check(self, node: Node, graph: Graph) -> str | None:
        return "its input is a constant" if graph.input(node, 0).is_const else None

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape]:
        shape = graph.input(node, 0).shape
        if not shape:
            raise ValueError("input is a scalar (supported: rank 1 and more)")
        return [shape]

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        x, y = ctx.graph.input(node, 0), ctx.graph.output(node)
        num_rows, groups = rows(x.shape), vectors_per_row(x.shape)
        most = SOFTWARE_SHARERS if ctx.device.is_software else _LOCAL_SIZE
        sharers = 1 if groups <= _GROUPS_ALONE else min(most, power_of_two(groups))
        local = (sharers, max(1, min(_LOCAL_SIZE // 2 // sharers, num_rows)), 1)
        a = node.attributes
        ctx.compute(
            node,
            "softmax",
            [ctx.buffer(x.id)],
            ctx.buffer(y.id),
            local=local,
            groups=fold(ceil_div(num_rows, local[1]), ctx.limits),
            spec=(_OP_CODES[node.op],),
            push=(
                num_rows,
                groups,
                inner(x.shape) - (groups - 1) * LANES,
                float_word(a.beta if isinstance(a, SoftmaxAttributes) else 1.0),
            ),
            flops=5 * x.num_elements,
        )
