"""Pools: AVERAGE_POOL_2D, MAX_POOL_2D, L2_POOL_2D, and MediaPipe's pool with indices and unpool."""

from __future__ import annotations

from collections.abc import Sequence

from tflite_vk.ir.attributes import Pool2DAttributes
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops.axes import Walk
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.operator import NO_DIFFERENCES, Operator
from tflite_vk.ops.reduction import OP_CODES, Reduction, lower_reduction
from tflite_vk.ops.registry import register
from tflite_vk.ops.window import Window, check_window
from tflite_vk.program import int_word
from tflite_vk.shape import Shape, num_vectors, vectors_per_row

_OP_CODES = {"AVERAGE_POOL_2D": 0, "MAX_POOL_2D": 1, "L2_POOL_2D": 2, "MaxPoolingWithArgmax2D": 1}
_MIN_SHARED_TAPS = 32
"""From so many taps on, a window that makes the only pixel of its image is shared by invocations."""


def pool_attributes(node: Node) -> Pool2DAttributes:
    """The options of a pool."""
    assert isinstance(node.attributes, Pool2DAttributes)
    return node.attributes


def pool_windows(a: Pool2DAttributes) -> tuple[Window, Window]:
    """Windows along height and width.

    Raises:
        ValueError: a size or stride that isn't positive.
    """
    reason = check_window(
        filter_height=a.filter_height,
        filter_width=a.filter_width,
        stride_h=a.stride_h,
        stride_w=a.stride_w,
    )
    if reason is not None:
        raise ValueError(reason)
    return Window(a.filter_height, a.stride_h), Window(a.filter_width, a.stride_w)


def _pooled(node: Node, graph: Graph) -> Shape:
    """Shape of a pool's result.

    Raises:
        ValueError: the input is no image, or the window doesn't fit it.
    """
    shape = graph.input(node, 0).shape
    if len(shape) != 4:
        raise ValueError(f"input has shape {list(shape)} (supported: rank 4)")
    a = pool_attributes(node)
    rows, columns = pool_windows(a)
    n, h, w, c = shape
    return (n, rows.output_size(h, a.padding), columns.output_size(w, a.padding), c)


def pool_push(
    a: Pool2DAttributes, result: Shape, x: Shape, y: Shape, pads: Sequence[int]
) -> list[int]:
    """Push constants of a kernel whose windows slide over one of x and y and make the other."""
    return [
        num_vectors(result),
        vectors_per_row(result),
        *(y[2], y[1]),
        *(x[2], x[1]),
        *(a.stride_w, a.stride_h),
        *(a.filter_width, a.filter_height),
        *(int_word(pads[1]), int_word(pads[0])),
    ]


def _lower_whole_image(node: Node, ctx: LoweringContext, pads: Sequence[int]) -> bool:
    """Lower a pool to one pixel as a reduction; False where the kernel for pools does as well."""
    x, y = ctx.graph.input(node, 0), ctx.graph.output(node)
    n, h, w, _ = x.shape
    a = pool_attributes(node)
    top, left = (max(0, -pad) for pad in pads)
    height = min(a.filter_height - pads[0], h)
    width = min(a.filter_width - pads[1], w)
    taps = height * width
    if y.shape[1:3] != (1, 1) or node.op == "L2_POOL_2D" or taps < _MIN_SHARED_TAPS:
        return False
    groups = vectors_per_row(x.shape)
    plan = Walk(
        kept=((n, h * w * groups),),
        reduced=((height, w * groups), (width, groups)),
        is_inner_reduced=False,
        row_groups=1,
        tail=0,
    )
    is_mean = node.op == "AVERAGE_POOL_2D"
    reduction = Reduction(
        op=OP_CODES["MEAN" if is_mean else "REDUCE_MAX"],
        plan=plan,
        result=y.shape,
        first=(top * w + left) * groups,
        scale=1.0 / taps if is_mean else 1.0,
    )
    lower_reduction(ctx, node, reduction, ctx.buffer(x.id), ctx.buffer(y.id))
    return True


@register
class Pool2D(Operator):
    """TFLite's pools."""

    versions = {"AVERAGE_POOL_2D": 3, "MAX_POOL_2D": 3, "L2_POOL_2D": 1}
    ends_in_epilogue = True
    notes = "padding is never counted"
    differs = dict.fromkeys(
        ("AVERAGE_POOL_2D", "L2_POOL_2D", "MAX_POOL_2D"),
        "infinities stay what they are: TFLite clamps them to the largest float, although no activation asks for it",
    )

    def check(self, node: Node, graph: Graph) -> str | None:
        return "its input is a constant" if graph.input(node, 0).is_const else None

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape]:
        return [_pooled(node, graph)]

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        x, y = ctx.graph.input(node, 0), ctx.graph.output(node)
        a = pool_attributes(node)
        rows, columns = pool_windows(a)
        pads = rows.pad_before(x.shape[1], y.shape[1]), columns.pad_before(x.shape[2], y.shape[2])
        has_indices = node.op == "MaxPoolingWithArgmax2D"
        if not has_indices and _lower_whole_image(node, ctx, pads):
            return
        ctx.compute_flat(
            node,
            "max_pool_argmax" if has_indices else "pool_2d",
            [ctx.buffer(x.id), *([ctx.buffer(node.outputs[1])] if has_indices else [])],
            ctx.buffer(y.id),
            invocations=num_vectors(y.shape),
            spec=(_OP_CODES[node.op],),
            push=pool_push(a, y.shape, x.shape, y.shape, pads),
            flops=y.num_elements * a.filter_height * a.filter_width,
        )


@register
class MaxPoolingWithArgmax2D(Pool2D):
    """Custom MaxPoolingWithArgmax2D: output 1 is the tap of each maximum in its window, plus 0.1.

    Source: MediaPipe, util/tflite/operations/max_pool_argmax.cc.
    """

    differs = NO_DIFFERENCES
    versions = {"MaxPoolingWithArgmax2D": 2}
    custom = True

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape]:
        return [_pooled(node, graph)] * 2
