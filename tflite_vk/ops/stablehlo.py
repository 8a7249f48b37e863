"""STABLEHLO operators that are TFLite's own under another name, for inputs of one shape."""

from __future__ import annotations

from collections.abc import Sequence

from tflite_vk.errors import ShaderError
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.elementwise import Binary
from tflite_vk.ops.operator import NO_DIFFERENCES
from tflite_vk.ops.registry import register
from tflite_vk.passes.rename_stablehlo import SAME_AS, renamed
from tflite_vk.shape import Shape


@register
class StablehloBinary(Binary):
    """Two values of one shape; reaches lowering as ADD and so on."""

    versions = dict.fromkeys(SAME_AS, 1)
    notes = "inputs of one shape; INT32 and INT64 too"
    differs = NO_DIFFERENCES

    def check(self, node: Node, graph: Graph) -> str | None:
        return super().check(renamed(node), graph)

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape]:
        a, b = (graph.input(node, i).shape for i in range(2))
        if a != b:
            raise ValueError(f"shapes {list(a)} and {list(b)} differ")
        return [a]

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        raise ShaderError(f"{node.op} #{node.index} was to be renamed")
