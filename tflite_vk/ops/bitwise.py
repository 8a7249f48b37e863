"""Operators on the bits of integers, and BITCAST, which takes them for another type."""

from __future__ import annotations

from collections.abc import Sequence

from tflite_vk.dtypes import DType
from tflite_vk.errors import ShaderError
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.layout import element_bytes, storage_of
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.integer import BITWISE, UNSIGNED_RIGHT_SHIFT, lower_integer
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.registry import register
from tflite_vk.shape import Shape, broadcast

_NARROW = frozenset({DType.INT8, DType.UINT8, DType.INT16})


@register
class Bitwise(Operator):
    """Operators on the bits of two integers."""

    versions = {
        "BITWISE_XOR": 1,
        "RIGHT_SHIFT": 1,
        "STABLEHLO_AND": 1,
        "STABLEHLO_SHIFT_LEFT": 1,
    }
    dtypes = frozenset({DType.INT32, DType.UINT32, DType.BOOL, *_NARROW})
    notes = "BOOL in STABLEHLO_AND, UINT32 not in STABLEHLO_SHIFT_LEFT, 8 and 16-bit integers in neither"

    def check(self, node: Node, graph: Graph) -> str | None:
        dtype = graph.output(node).dtype
        if (
            (dtype is DType.BOOL and node.op != "STABLEHLO_AND")
            or (dtype is DType.UINT32 and node.op == "STABLEHLO_SHIFT_LEFT")
            or (dtype in _NARROW and node.op.startswith("STABLEHLO"))
        ):
            return f"output 0 is {dtype.name} (supported: INT32)"
        for i in range(2):
            if graph.input(node, i).dtype is not dtype:
                return (
                    f"input {i} is {graph.input(node, i).dtype.name}, the output {dtype.name} "
                    "(must be equal)"
                )
        return None

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape]:
        a, b = (graph.input(node, i).shape for i in range(2))
        shape = broadcast([a, b])
        if shape is None or (a != b and node.op.startswith("STABLEHLO")):
            raise ValueError(f"shapes {list(a)} and {list(b)} don't fit together")
        return [shape]

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        code = BITWISE[node.op]
        if node.op == "RIGHT_SHIFT" and ctx.graph.output(node).dtype is DType.UINT32:
            code = UNSIGNED_RIGHT_SHIFT
        lower_integer(ctx, node, code, [ctx.graph.input(node, i) for i in range(2)])


@register
class BitCast(Operator):
    """The same bits in another type of the same width: no dispatch."""

    versions = {"BITCAST": 1}
    dtypes = frozenset({DType.FLOAT32, DType.INT32, DType.UINT32, DType.INT8, DType.UINT8})
    notes = "between types of one width"

    def check(self, node: Node, graph: Graph) -> str | None:
        source, target = graph.input(node, 0), graph.output(node)
        if source.is_const or source.is_variable:
            return f"its input is a {'constant' if source.is_const else 'variable'}"
        widths = [element_bytes(s) for t in (source, target) if (s := storage_of(t.dtype))]
        if len(set(widths)) != 1:
            return f"from {source.dtype.name} to {target.dtype.name} (supported: of one width)"
        return None

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape] | None:
        source, target = graph.input(node, 0), graph.output(node)
        widths = [t.dtype.numpy.itemsize for t in (source, target) if t.dtype in self.dtypes]
        # Of another width, it has another innermost dimension, and `check` declines it.
        return [source.shape if len(set(widths)) == 1 else target.shape]

    def is_alias(self, node: Node, graph: Graph) -> bool:
        del node, graph
        return True

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        raise ShaderError(f"BITCAST #{node.index} has no dispatch")
