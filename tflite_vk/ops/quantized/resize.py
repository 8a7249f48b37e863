"""RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR of int8, uint8 and int16.

Source: tflite/kernels/internal/reference/resize_bilinear.h and resize_nearest_neighbor.h: int8 and int16
interpolate in fixed point, uint8 in float32.
"""

from __future__ import annotations

from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import ResizeAttributes
from tflite_vk.ir.graph import Node
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.quantization import affine
from tflite_vk.ops.registry import register
from tflite_vk.ops.resize import Resize, pixel_scale
from tflite_vk.program import float_word
from tflite_vk.shape import num_vectors, vectors_per_row

_NEAREST, _FIXED, _FLOAT = 0, 1, 2


def fixed_scale(source: int, target: int, *, align_corners: bool) -> int:
    """Input pixels per output pixel times 1024."""
    if align_corners and target > 1:
        source, target = source - 1, target - 1
    return (1024 * source + target // 2) // target


@register
class QuantizedResize(Resize):
    """RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR."""

    kind = "quantized"
    dtypes = frozenset({DType.INT8, DType.UINT8, DType.INT16})
    ends_in_epilogue = False
    notes = "the size must be constant; exact"

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        x, y = ctx.graph.input(node, 0), ctx.graph.output(node)
        a = node.attributes
        assert isinstance(a, ResizeAttributes)
        method = _FLOAT if x.dtype is DType.UINT8 else _FIXED
        if node.op == "RESIZE_NEAREST_NEIGHBOR":
            method = _NEAREST
        sizes = [(x.shape[i], y.shape[i]) for i in (2, 1)]
        ctx.dispatch_flat(
            node,
            "resize_i16" if x.dtype is DType.INT16 else "resize_i8",
            [ctx.buffer(x.id), ctx.buffer(y.id)],
            invocations=num_vectors(y.shape),
            spec=(method, int(a.align_corners), int(a.half_pixel_centers)),
            push=(
                *(num_vectors(y.shape), vectors_per_row(y.shape)),
                *(y.shape[2], y.shape[1], x.shape[2], x.shape[1]),
                *(float_word(pixel_scale(*s, align_corners=a.align_corners)) for s in sizes),
                *(fixed_scale(*s, align_corners=a.align_corners) for s in sizes),
                *(affine(x).flip, 128 if x.dtype is DType.UINT8 else 0),
            ),
            flops=0 if method == _NEAREST else 8 * y.num_elements,
        )
