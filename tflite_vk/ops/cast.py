"""CAST: the same values in another element type."""

from __future__ import annotations

from collections.abc import Sequence

from tflite_vk.dtypes import DType
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.registry import register
from tflite_vk.shape import Shape, num_vectors

_TYPES = frozenset({DType.FLOAT32, DType.INT32, DType.INT64, DType.UINT32, DType.BOOL})
_WORDS = frozenset({DType.INT32, DType.UINT32, DType.BOOL})
"""Types whose common values have the same bits."""


@register
class Cast(Operator):
    """The same values in another element type."""

    versions = {"CAST": 8}
    dtypes = _TYPES
    differs = {
        "CAST": "a float beyond int32, uint32 or int64 gives any value of the type: C++, and so TFLite, leaves it open"
    }

    def check(self, node: Node, graph: Graph) -> str | None:
        source = graph.input(node, 0).dtype
        if source not in self.dtypes:
            names = ", ".join(sorted(t.name for t in self.dtypes))
            return f"input 0 is {source.name} (supported: {names})"
        return None

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape]:
        return [graph.input(node, 0).shape]

    def is_alias(self, node: Node, graph: Graph) -> bool:
        source, target = graph.input(node, 0), graph.output(node)
        if source.is_variable:
            return False
        same_words = source.dtype in _WORDS and target.dtype in _WORDS - {DType.BOOL}
        return same_words or source.dtype is target.dtype

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        source, target = ctx.graph.input(node, 0), ctx.graph.output(node)
        to_bool = target.dtype is DType.BOOL
        kept_as = ctx.storage(source)
        if to_bool and kept_as == "u32":
            kept_as = "i32"  # whether a word is zero doesn't depend on its sign
        vectors = num_vectors(target.shape)
        ctx.dispatch_flat(
            node,
            f"cast_{kept_as}_{ctx.storage(target)}",
            [ctx.buffer(source.id), ctx.buffer(target.id)],
            invocations=vectors,
            spec=(int(to_bool),),
            push=(vectors,),
        )
