"""RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR: legacy, align_corners and half_pixel_centers grids."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflite_vk.ir.attributes import ResizeAttributes
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.registry import register
from tflite_vk.program import float_word
from tflite_vk.shape import Shape, num_vectors, vectors_per_row


def pixel_scale(source: int, target: int, *, align_corners: bool) -> float:
    """Input pixels per output pixel, rounded as float32 as TFLite does.

    Source: ResizeBilinear and GetNearestNeighbor of tflite/kernels/internal/reference.
    """
    if align_corners and target > 1:
        return float(np.float32(source - 1) / np.float32(target - 1))
    return float(np.float32(source) / np.float32(target))


@register
class Resize(Operator):
    """RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR."""

    versions = {"RESIZE_BILINEAR": 4, "RESIZE_NEAREST_NEIGHBOR": 4}
    ends_in_epilogue = True
    notes = "the size must be constant; not align_corners together with half_pixel_centers"

    def check(self, node: Node, graph: Graph) -> str | None:
        a = node.attributes
        assert isinstance(a, ResizeAttributes)
        if graph.input(node, 0).is_const:
            return "its input is a constant"
        if a.align_corners and a.half_pixel_centers:
            return "align_corners with half_pixel_centers has no meaning (supported: one of them)"
        if 0 in graph.input(node, 0).shape and graph.output(node).num_elements:
            return f"its input {list(graph.input(node, 0).shape)} is empty"
        return None

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape] | None:
        shape, size = graph.input(node, 0).shape, graph.input(node, 1)
        if len(shape) != 4:
            raise ValueError(f"input has shape {list(shape)} (supported: rank 4)")
        if size.num_elements != 2:
            raise ValueError(f"size has {size.num_elements} elements (supported: 2)")
        if size.data is None:
            return None
        height, width = (int(v) for v in size.data.reshape(-1))
        if height < 1 or width < 1:
            raise ValueError(f"size is {height} by {width} (supported: 1 and more)")
        return [(shape[0], height, width, shape[3])]

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        x, y = ctx.graph.input(node, 0), ctx.graph.output(node)
        a = node.attributes
        assert isinstance(a, ResizeAttributes)
        scales = [
            pixel_scale(x.shape[i], y.shape[i], align_corners=a.align_corners) for i in (2, 1)
        ]
        is_nearest = node.op == "RESIZE_NEAREST_NEIGHBOR"
        ctx.compute_flat(
            node,
            "resize",
            [ctx.buffer(x.id)],
            ctx.buffer(y.id),
            invocations=num_vectors(y.shape),
            spec=(int(is_nearest), int(a.align_corners), int(a.half_pixel_centers)),
            push=(
                num_vectors(y.shape),
                vectors_per_row(y.shape),
                *(y.shape[2], y.shape[1]),
                *(x.shape[2], x.shape[1]),
                *(float_word(s) for s in scales),
            ),
            flops=0 if is_nearest else 8 * y.num_elements,
        )
