"""Functions of one 8 or 16-bit value: a table of all results each, one kernel for all."""

from __future__ import annotations

from collections.abc import Sequence

from tflite_vk.dtypes import DType
from tflite_vk.ir.graph import Graph, Node, Tensor
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.quantization import EIGHT_BIT, INTEGERS, affine, check_affine
from tflite_vk.ops.quantized.tables import ONLY_INT8, Table, hard_swish_factors, table_of
from tflite_vk.ops.quantized.tables16 import OPERATORS as OF_INT16
from tflite_vk.ops.quantized.tables16 import table16_of
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


def table_behind(node: Node, graph: Graph) -> Table | None:
    """The functions that a node's kernel has taken in, as one table; None where there are none."""
    table: Table | None = None
    before = graph.made(node)
    for step in node.steps:
        assert step.result is not None
        after = graph.tensors[step.result]
        next_one = table_of(Node(node.index, step.op, (), (), step.attributes), before, after)
        table = next_one if table is None else next_one[table]
        before = after
    return table


def whole_table(node: Node, graph: Graph) -> Table:
    """The table of a node that is a function itself, with those behind it."""
    table, behind = (
        table_of(node, graph.input(node, 0), graph.made(node)),
        table_behind(node, graph),
    )
    return table if behind is None else behind[table]


def fused_table(ctx: LoweringContext, node: Node) -> tuple[int, int]:
    """Buffer of `table_behind`, and whether there is one: what shaders/include/table.glsl takes."""
    table = table_behind(node, ctx.graph)
    if table is None:
        return ctx.unused(), 0
    return ctx.constant(table, f"{node.op}/table"), 1


def _check_int16(node: Node, x: Tensor, y: Tensor) -> str | None:
    if node.op not in OF_INT16:
        return f"{node.op} of INT16 has no kernel in TFLite (supported: INT8)"
    if affine(x).zero_point or affine(y).zero_point:
        return "INT16 with a zero point (supported: 0)"
    if node.op in {"LOGISTIC", "TANH"} and affine(y).scale != 1 / 32768:
        return f"output has scale {affine(y).scale} (supported: 1/32768)"
    return None


@register
class Lookup(Operator):
    """Functions of one 8 or 16-bit value."""

    versions = {
        "ABS": 5,
        "ELU": 1,
        "EXP": 2,
        "GELU": 3,
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
        "SQRT": 2,
        "TANH": 3,
    }
    kind = "quantized"
    dtypes = INTEGERS
    notes = "a table of all results made on the host; exact"

    def check(self, node: Node, graph: Graph) -> str | None:
        x, y = graph.input(node, 0), graph.output(node)
        if x.is_const:
            return "its input is a constant"
        if x.dtype is not y.dtype:
            return f"{x.dtype.name} to {y.dtype.name} (supported: the same type)"
        if (reason := check_affine(x, "input") or check_affine(y, "output")) is not None:
            return reason
        if x.dtype is DType.INT16:
            return _check_int16(node, x, y)
        if x.dtype is not DType.INT8 and node.op in ONLY_INT8:
            return f"{node.op} of {x.dtype.name} has no kernel in TFLite (supported: INT8)"
        if node.op == "LOGISTIC" and affine(y).scale != 1 / 256:
            return f"output has scale {affine(y).scale} (supported: 1/256)"
        if node.op == "HARD_SWISH" and hard_swish_factors(x, y)[0].shift > 0:
            return "its output scale is too small for TFLite's own arithmetic"
        return None

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape]:
        return [graph.input(node, 0).shape]

    def is_table(self, node: Node, graph: Graph) -> bool:
        return graph.input(node, 0).dtype in EIGHT_BIT

    def takes_table(self, node: Node, graph: Graph) -> bool:
        return self.is_table(node, graph)

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        x, y = ctx.graph.input(node, 0), ctx.graph.output(node)
        if x.dtype is DType.INT16:
            groups = num_vectors(y.shape)
            table16 = ctx.constant(table16_of(node, x, y), f"{node.op}/table")
            buffers = [ctx.buffer(x.id), table16, ctx.buffer(y.id)]
            ctx.dispatch_flat(node, "lookup_i16", buffers, invocations=groups, push=(groups,))
            return
        table = whole_table(node, ctx.graph)
        lower_lookup(ctx, node, ctx.buffer(x.id), ctx.buffer(y.id), y.shape, table)
