"""LOCAL_RESPONSE_NORMALIZATION over the innermost dimension."""

from __future__ import annotations

from collections.abc import Sequence

from tflite_vk.ir.attributes import LocalResponseNormAttributes
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.registry import register
from tflite_vk.program import float_word
from tflite_vk.shape import Shape, inner, num_vectors, vectors_per_row


@register
class LocalResponseNorm(Operator):
    """LOCAL_RESPONSE_NORMALIZATION.

    Source: LocalResponseNormalization of tflite/kernels/internal/optimized/optimized_ops.h; the
    reference kernel leaves out the last channel in reach.
    """

    versions = {"LOCAL_RESPONSE_NORMALIZATION": 1}
    differs = dict.fromkeys(
        versions,
        "the sum takes in all channels in reach, as TFLite's default kernel does: its reference kernel leaves out"
        " the last one",
    )
    ends_in_epilogue = True

    def check(self, node: Node, graph: Graph) -> str | None:
        a = node.attributes
        assert isinstance(a, LocalResponseNormAttributes)
        if graph.input(node, 0).is_const:
            return "its input is a constant"
        if a.radius < 0:
            return f"radius is {a.radius} (supported: 0 and more)"
        return None

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape]:
        shape = graph.input(node, 0).shape
        if len(shape) != 4:
            raise ValueError(f"input has shape {list(shape)} (supported: rank 4)")
        return [shape]

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        x, y = ctx.graph.input(node, 0), ctx.graph.output(node)
        a = node.attributes
        assert isinstance(a, LocalResponseNormAttributes)
        channels = inner(x.shape)
        radius = min(a.radius, channels)
        ctx.compute_flat(
            node,
            "local_response_norm",
            [ctx.buffer(x.id)],
            ctx.buffer(y.id),
            invocations=num_vectors(x.shape),
            push=(
                num_vectors(x.shape),
                vectors_per_row(x.shape),
                channels,
                radius,
                float_word(a.bias),
                float_word(a.alpha),
                float_word(a.beta),
            ),
            flops=x.num_elements * (2 * radius + 3),
        )
