"""TRANSPOSE_CONV and MediaPipe's Convolution2DTransposeBias."""

from __future__ import annotations

from collections.abc import Sequence

from tflite_vk.ir.attributes import TransposeConvAttributes
from tflite_vk.ir.graph import Graph, Node, Tensor
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.conv_weights import (
    bias_buffer,
    check_bias_size,
    check_weights,
    filter_buffer,
    filter_build,
)
from tflite_vk.ops.moving import input_ints
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.registry import register
from tflite_vk.ops.window import Window, check_window
from tflite_vk.shape import LANES, Shape, ceil_div, vectors_per_row

_MANY_OUTPUTS = 1 << 16
"""From so many groups of outputs on, a GPU is busy with four pixels an invocation."""


class _TransposeConv(Operator):
    """What both share: a filter OHWI at input 1, and the kernel.

    Attributes:
        data_at: position of the data among the inputs.
        bias_at: position of the optional bias.
    """

    ends_in_epilogue = True
    notes = "filter OHWI, constant or run-time; bias optional"
    data_at: int
    bias_at: int

    def check(self, node: Node, graph: Graph) -> str | None:
        if graph.input(node, self.data_at).is_const:
            return "its input is a constant"
        return check_weights(graph, node, 1, self.bias_at)

    def _operands(self, node: Node, graph: Graph) -> tuple[TransposeConvAttributes, Shape, Shape]:
        """Attributes, and shapes of data and filter, checked to fit each other.

        Raises:
            ValueError: they don't.
        """
        a = node.attributes
        assert isinstance(a, TransposeConvAttributes)
        data, weights = graph.input(node, self.data_at).shape, graph.input(node, 1).shape
        if (reason := check_window(stride_h=a.stride_h, stride_w=a.stride_w)) is not None:
            raise ValueError(reason)
        if len(data) != 4 or len(weights) != 4 or 0 in weights:
            raise ValueError(f"input {list(data)} and filter {list(weights)} must have rank 4")
        if data[3] != weights[3]:
            raise ValueError(f"filter {list(weights)} doesn't fit an input of {data[3]} channels")
        check_bias_size(graph, node, weights[0], self.bias_at)
        return a, data, weights

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        x, weights = ctx.graph.input(node, self.data_at), ctx.graph.input(node, 1)
        y = ctx.graph.output(node)
        a, _, (_, kh, kw, _) = self._operands(node, ctx.graph)
        _dispatch(
            node,
            ctx,
            a,
            (x, weights, y),
            pads=(
                Window(kh, a.stride_h).pad_before(y.shape[1], x.shape[1]),
                Window(kw, a.stride_w).pad_before(y.shape[2], x.shape[2]),
            ),
            bias=bias_buffer(ctx, node, y.shape[3], self.bias_at),
        )


def _dispatch(
    node: Node,
    ctx: LoweringContext,
    a: TransposeConvAttributes,
    tensors: tuple[Tensor, Tensor, Tensor],
    *,
    pads: tuple[int, int],
    bias: int,
) -> None:
    x, weights, y = tensors
    n, oh, ow, oc = y.shape
    _, kh, kw, ic = weights.shape
    groups = vectors_per_row(y.shape)
    is_small = not ctx.device.is_software and n * oh * ow * groups < _MANY_OUTPUTS
    tile = 1 if is_small else 4
    tiles = ceil_div(ceil_div(ow, a.stride_w), tile)
    invocations = n * oh * a.stride_w * tiles * groups
    ctx.compute_flat(
        node,
        filter_build(ctx, "transpose_conv", weights),
        [ctx.buffer(x.id), filter_buffer(ctx, node, weights, kh * kw), bias],
        ctx.buffer(y.id),
        invocations=invocations,
        spec=(tile, ic % LANES),
        push=(
            invocations,
            groups,
            vectors_per_row(x.shape),
            tiles,
            *(ow, oh),
            *(x.shape[2], x.shape[1]),
            *(kw, kh),
            *(a.stride_w, a.stride_h),
            *(pads[1], pads[0]),
        ),
        flops=2 * x.num_elements * oc * kh * kw,
    )


@register
class TransposeConv(_TransposeConv):
    """TRANSPOSE_CONV: input 0 holds the output's size, out of those that lead to the input's.

    Source: tflite/kernels/transpose_conv.cc; padding is that of the convolution the other way.
    """

    versions = {"TRANSPOSE_CONV": 5}
    data_at = 2
    bias_at = 3

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape] | None:
        a, data, weights = self._operands(node, graph)
        if graph.input(node, 0).data is None:
            return None
        size = input_ints(node, graph, 0)
        if size is None or len(size) != 4 or min(size) < 0:
            raise ValueError(f"output shape {size} (supported: 4 sizes)")
        if size[0] != data[0] or size[3] != weights[0]:
            raise ValueError(
                f"output shape {list(size)} doesn't fit input {list(data)} and filter {list(weights)}"
            )
        for axis, stride in ((1, a.stride_h), (2, a.stride_w)):
            forward = Window(weights[axis], stride).output_size(size[axis], a.padding)
            if forward != data[axis]:
                raise ValueError(
                    f"output size {size[axis]} is that of {forward} inputs, the input has {data[axis]}"
                )
        return [size]


@register
class TransposeConvBias(_TransposeConv):
    """Custom Convolution2DTransposeBias.

    Source: MediaPipe, util/tflite/operations/transpose_conv_bias.cc. Its models declare sizes of
    input * stride under SAME padding, which its CPU kernel meets only where that is what it
    computes; both are taken.
    """

    versions = {"Convolution2DTransposeBias": 1}
    custom = True
    data_at = 0
    bias_at = 2

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape]:
        a, data, weights = self._operands(node, graph)
        declared = graph.output(node).shape
        sizes = [
            _sizes(data[axis], weights[axis], stride, a)
            for axis, stride in ((1, a.stride_h), (2, a.stride_w))
        ]
        shape = [data[0], sizes[0][0], sizes[1][0], weights[0]]
        if len(declared) == 4 and all(declared[i + 1] in sizes[i] for i in range(2)):
            shape[1:3] = declared[1:3]
        return [tuple(shape)]


def _sizes(size: int, window: int, stride: int, a: TransposeConvAttributes) -> tuple[int, ...]:
    """Output sizes that are legal; the first is what MediaPipe's kernel makes."""
    whole = stride * (size - 1) + window if size else 0
    if a.padding == "VALID" or not size:
        return (whole,)
    return (whole - max(0, window - (size - 1) % stride - 1), size * stride)
