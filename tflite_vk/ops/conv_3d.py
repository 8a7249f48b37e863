"""CONV_3D and CONV_3D_TRANSPOSE: any stride, dilation, padding, constant or run-time filter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tflite_vk.ir.attributes import Conv3DAttributes
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.conv_weights import bias_buffer, check_bias_size, check_weights
from tflite_vk.ops.moving import input_ints
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.registry import register
from tflite_vk.ops.window import Window, check_window
from tflite_vk.shape import LANES, Shape, ceil_div, num_vectors, vectors_per_row

_TILE = 4


class _Operands(NamedTuple):
    """Attributes and shapes of a node, checked to fit each other."""

    attributes: Conv3DAttributes
    data: Shape
    weights: Shape
    windows: tuple[Window, Window, Window]


def _operands(node: Node, graph: Graph, data_at: int, channels_at: int) -> _Operands:
    """Read a node; `channels_at` is where the filter holds the input channels.

    Raises:
        ValueError: shapes or attributes that don't fit.
    """
    a = node.attributes
    assert isinstance(a, Conv3DAttributes)
    reason = check_window(
        stride_d=a.stride_d,
        stride_h=a.stride_h,
        stride_w=a.stride_w,
        dilation_d_factor=a.dilation_d_factor,
        dilation_h_factor=a.dilation_h_factor,
        dilation_w_factor=a.dilation_w_factor,
    )
    if reason is not None:
        raise ValueError(reason)
    data, weights = graph.input(node, data_at).shape, graph.input(node, 1).shape
    if len(data) != 5 or len(weights) != 5 or 0 in weights:
        raise ValueError(f"input {list(data)} and filter {list(weights)} must have rank 5")
    if data[4] != weights[channels_at]:
        raise ValueError(f"filter {list(weights)} doesn't fit an input of {data[4]} channels")
    windows = (
        Window(weights[0], a.stride_d, a.dilation_d_factor),
        Window(weights[1], a.stride_h, a.dilation_h_factor),
        Window(weights[2], a.stride_w, a.dilation_w_factor),
    )
    return _Operands(a, data, weights, windows)


def _geometry(operands: _Operands, y: Shape, pads: Sequence[int]) -> list[int]:
    """Push constants that both kernels end in."""
    windows = operands.windows
    return [
        *y[1:4],
        *operands.data[1:4],
        *operands.weights[:3],
        *(w.stride for w in windows),
        *(w.dilation for w in windows),
        *pads,
    ]


@register
class Conv3D(Operator):
    """CONV_3D.

    Source: Conv3D of tflite/kernels/internal/reference/conv3d.h.
    """

    versions = {"CONV_3D": 1}
    ends_in_epilogue = True
    notes = "filter DHWIO, constant or run-time; bias optional"

    def check(self, node: Node, graph: Graph) -> str | None:
        if graph.input(node, 0).is_const:
            return "its input is a constant"
        return check_weights(graph, node)

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape]:
        operands = _operands(node, graph, 0, 3)
        data, padding = operands.data, operands.attributes.padding
        check_bias_size(graph, node, operands.weights[4])
        sizes = (w.output_size(data[i + 1], padding) for i, w in enumerate(operands.windows))
        return [(data[0], *sizes, operands.weights[4])]

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        x, y = ctx.graph.input(node, 0), ctx.graph.output(node)
        operands = _operands(node, ctx.graph, 0, 3)
        pads = [
            w.pad_before(x.shape[i + 1], y.shape[i + 1]) for i, w in enumerate(operands.windows)
        ]
        n, depth, height, width, channels = y.shape
        groups = vectors_per_row(y.shape)
        tiles = n * depth * height * ceil_div(width, _TILE) * groups
        kd, kh, kw, ic, _ = operands.weights
        ctx.compute_flat(
            node,
            "conv_3d",
            [ctx.buffer(x.id), ctx.buffer(node.inputs[1]), bias_buffer(ctx, node, channels)],
            ctx.buffer(y.id),
            invocations=tiles,
            spec=(_TILE, ic % LANES),
            push=(tiles, groups, vectors_per_row(x.shape), ic, *_geometry(operands, y.shape, pads)),
            flops=2 * y.num_elements * kd * kh * kw * ic,
        )


@register
class Conv3DTranspose(Operator):
    """CONV_3D_TRANSPOSE: input 0 holds the output's size, out of those that lead to the input's.

    Source: tflite/kernels/internal/reference/conv3d_transpose.h.
    """

    versions = {"CONV_3D_TRANSPOSE": 1}
    ends_in_epilogue = True
    notes = "constant output size; filter DHWOI, constant or run-time; bias optional"

    def check(self, node: Node, graph: Graph) -> str | None:
        if graph.input(node, 2).is_const:
            return "its input is a constant"
        return check_weights(graph, node, 1, 3)

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape] | None:
        operands = _operands(node, graph, 2, 4)
        data, weights, padding = operands.data, operands.weights, operands.attributes.padding
        check_bias_size(graph, node, weights[3], 3)
        if graph.input(node, 0).data is None:
            return None
        size = input_ints(node, graph, 0)
        if size is None or len(size) != 5 or min(size) < 0:
            raise ValueError(f"output shape {size} (supported: 5 sizes)")
        sizes = (w.output_size(size[i + 1], padding) for i, w in enumerate(operands.windows))
        forward = (size[0], *sizes, weights[4])
        if forward != data or size[4] != weights[3]:
            raise ValueError(f"output shape {list(size)} is not one that input {list(data)} makes")
        return [size]

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        x, y = ctx.graph.input(node, 2), ctx.graph.output(node)
        operands = _operands(node, ctx.graph, 2, 4)
        pads = [
            w.pad_before(y.shape[i + 1], x.shape[i + 1]) for i, w in enumerate(operands.windows)
        ]
        groups = num_vectors(y.shape)
        kd, kh, kw, oc, ic = operands.weights
        ctx.compute_flat(
            node,
            "conv_3d_transpose",
            [ctx.buffer(x.id), ctx.buffer(node.inputs[1]), bias_buffer(ctx, node, oc, 3)],
            ctx.buffer(y.id),
            invocations=groups,
            spec=(ic % LANES,),
            push=(
                groups,
                vectors_per_row(y.shape),
                vectors_per_row(x.shape),
                oc,
                *_geometry(operands, y.shape, pads),
            ),
            flops=2 * x.num_elements * kd * kh * kw * oc,
        )
