"""Functions of one 8-bit value: a table of 256 results each, one kernel for all."""

from __future__ import annotations

from collections.abc import Sequence

from tflite_vk.dtypes import DType
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.quantization import EIGHT_BIT, affine, check_affine
from tflite_vk.ops.quantized.tables import ONLY_INT8, Table, hard_swish_factors, table_of
from tflite_vk.ops.registry import register
from tflite_vk.shape import Shape, num_vectors


def lower_lookup(
    ctx: LoweringContext, node: Node, source: int, target: int, shape: Shape, table: Table
) -> None:
    """Add the dispatch that maps each byte of a tensor through a table."""
    groups = num_vectors(shape)
    ctx.dispatch_flat(
        node,
        "lookup",
        [source, ctx.constant(table, f"{node.op}/table"), target],
        invocations=groups,
        push=(groups,),
    )


@register
class Lookup(Operator):
    """Functions of one 8-bit value."""

    versions = {
        "ABS": 5,
        "ELU": 1,
        "EXP": 2,
        "GELU": 2,
        "HARD_SWISH": 1,
        "LEAKY_RELU": 2,
        "LOG": 2,
        "LOGISTIC": 3,
        "NEG": 2,
        "RELU": 3,
        "RELU6": 3,
        "RELU_0_TO_1": 1,
        "RELU_N1_TO_1": 1,
        "RSQRT": 3,
        "SQRT": 1,
        "TANH": 3,
    }
    kind = "quantized"
    dtypes = EIGHT_BIT
    notes = "a table of 256 results made on the host; exact"

    def check(self, node: Node, graph: Graph) -> str | None:
        x, y = graph.input(node, 0), graph.output(node)
        if x.is_const:
            return "its input is a constant"
        if x.dtype is not y.dtype:
            return f"{x.dtype.name} to {y.dtype.name} (supported: the same type)"
        if (reason := check_affine(x, "input") or check_affine(y, "output")) is not None:
            return reason
        if x.dtype is not DType.INT8 and node.op in ONLY_INT8:
            return f"{node.op} of {x.dtype.name} has no kernel in TFLite (supported: INT8)"
        if node.op == "LOGISTIC" and affine(y).scale != 1 / 256:
            return f"output has scale {affine(y).scale} (supported: 1/256)"
        if node.op == "HARD_SWISH" and hard_swish_factors(x, y)[0].shift > 0:
            return "its output scale is too small for TFLite's own arithmetic"
        return None

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape]:
        return [graph.input(node, 0).shape]

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        x, y = ctx.graph.input(node, 0), ctx.graph.output(node)
        table = table_of(node, x, y)
        lower_lookup(ctx, node, ctx.buffer(x.id), ctx.buffer(y.id), y.shape, table)
