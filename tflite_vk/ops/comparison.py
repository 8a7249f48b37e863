"""Comparisons and logic: results are truth values, kept as words of 0 or 1."""

from __future__ import annotations

from collections.abc import Sequence

from tflite_vk.dtypes import DType
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.integer import COMPARISONS, LOGICAL_BINARY, LOGICAL_NOT, lower_integer
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.registry import register
from tflite_vk.shape import Shape, broadcast


class _Predicate(Operator):
    """What comparisons and logic share."""

    operands: frozenset[DType]

    def check(self, node: Node, graph: Graph) -> str | None:
        inputs = [graph.input(node, i) for i in range(len(node.inputs))]
        if graph.output(node).dtype is not DType.BOOL:
            return f"output 0 is {graph.output(node).dtype.name} (supported: BOOL)"
        for i, tensor in enumerate(inputs):
            if tensor.dtype not in self.operands or tensor.dtype is not inputs[0].dtype:
                names = ", ".join(sorted(t.name for t in self.operands))
                return f"input {i} is {tensor.dtype.name} (supported: {names}, all inputs alike)"
        return None

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape]:
        shapes = [graph.input(node, i).shape for i in range(len(node.inputs))]
        shape = broadcast(shapes)
        if shape is None:
            raise ValueError(f"shapes {list(shapes[0])} and {list(shapes[1])} don't broadcast")
        return [shape]

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        codes = COMPARISONS | LOGICAL_BINARY | {"LOGICAL_NOT": LOGICAL_NOT}
        inputs = [ctx.graph.input(node, i) for i in range(len(node.inputs))]
        lower_integer(ctx, node, codes[node.op], inputs)


@register
class Comparison(_Predicate):
    """Which elements are equal, less or greater."""

    versions = {
        "EQUAL": 5,
        "GREATER": 2,
        "GREATER_EQUAL": 3,
        "LESS": 3,
        "LESS_EQUAL": 2,
        "NOT_EQUAL": 4,
    }
    dtypes = frozenset({DType.FLOAT32, DType.INT32, DType.INT64, DType.BOOL})
    operands = dtypes

    def check(self, node: Node, graph: Graph) -> str | None:
        if graph.input(node, 0).dtype is DType.BOOL and node.op not in {"EQUAL", "NOT_EQUAL"}:
            return "compares BOOL (supported: FLOAT32, INT32, INT64)"
        return super().check(node, graph)


@register
class Logical(_Predicate):
    """Logic on truth values."""

    versions = {"LOGICAL_AND": 1, "LOGICAL_NOT": 1, "LOGICAL_OR": 1}
    dtypes = frozenset({DType.BOOL})
    operands = dtypes
