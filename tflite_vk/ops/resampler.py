"""Custom Resampler: an image read at points that another tensor names."""

from __future__ import annotations

from collections.abc import Sequence

from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.registry import register
from tflite_vk.shape import Shape, num_vectors, vectors_per_row


@register
class Resampler(Operator):
    """Custom Resampler.

    Source: MediaPipe, util/tflite/operations/resampler.cc, which follows TensorFlow Addons. There
    the result has the image's size; here, as in TFLite's GPU delegate, that of the points.
    """

    versions = {"Resampler": 1}
    custom = True
    ends_in_epilogue = True
    notes = "zero beyond the image; of more than two warp channels the first two count"

    def check(self, node: Node, graph: Graph) -> str | None:
        if graph.input(node, 0).is_const and graph.input(node, 1).is_const:
            return "both inputs are constants"
        for i in range(2):
            if graph.input(node, i).dtype not in self.dtypes:
                return f"input {i} is {graph.input(node, i).dtype.name} (supported: FLOAT32)"
        return None

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape]:
        source, warp = (graph.input(node, i).shape for i in range(2))
        if len(source) != 4 or len(warp) != 4 or source[0] != warp[0] or warp[3] < 2:
            raise ValueError(
                f"image {list(source)} and warp {list(warp)} don't fit (supported: rank 4, the same "
                "batch, two warp channels or more)"
            )
        return [(*warp[:3], source[3])]

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        x, warp, y = (*(ctx.graph.input(node, i) for i in range(2)), ctx.graph.output(node))
        ctx.compute_flat(
            node,
            "resampler",
            [ctx.buffer(x.id), ctx.buffer(warp.id)],
            ctx.buffer(y.id),
            invocations=num_vectors(y.shape),
            push=(
                num_vectors(y.shape),
                vectors_per_row(y.shape),
                y.shape[1] * y.shape[2],
                vectors_per_row(warp.shape),
                *(x.shape[2], x.shape[1]),
            ),
            flops=11 * y.num_elements,
        )
