"""Filters and biases on the device, for CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tflite_vk.dtypes import DType
from tflite_vk.ir.graph import Graph, Node, Tensor
from tflite_vk.layout import Storage, pack
from tflite_vk.ops.context import LoweringContext
from tflite_vk.shape import LANES, ceil_div, round_up

Array = npt.NDArray[np.generic]


def check_weights(graph: Graph, node: Node, filter_at: int = 1, bias_at: int = 2) -> str | None:
    """Reason where filter or bias has a type or shape the float kernels don't take."""
    weights = graph.input(node, filter_at)
    if weights.dtype is not DType.FLOAT32:
        return f"filter is {weights.dtype.name} (supported: FLOAT32)"
    bias = graph.optional_input(node, bias_at)
    if bias is not None and bias.dtype is not DType.FLOAT32:
        return f"bias is {bias.dtype.name} (supported: FLOAT32)"
    return None


def check_bias_size(graph: Graph, node: Node, channels: int, bias_at: int = 2) -> None:
    """Raise ValueError where the bias hasn't one element per output channel."""
    bias = graph.optional_input(node, bias_at)
    if bias is not None and bias.num_elements != channels:
        raise ValueError(f"bias has {bias.num_elements} elements for {channels} output channels")


def bias_buffer(ctx: LoweringContext, node: Node, channels: int, bias_at: int = 2) -> int:
    """The bias padded to whole groups, float32; zeros where there is none."""
    bias = ctx.graph.optional_input(node, bias_at)
    if bias is not None and bias.data is None:
        return ctx.buffer(bias.id, "f32")
    value = np.zeros(channels, np.float32) if bias is None else np.asarray(bias.data)
    name = "zero bias" if bias is None else bias.name
    return ctx.constant(pack(value.reshape(-1), "f32"), name)


def filter_storage(ctx: LoweringContext, weights: Tensor) -> Storage:
    """How a filter lies on the device: float16 where the model stores it so, or in fp16 mode."""
    is_half = weights.data is not None and weights.data.dtype == np.float16
    return "f16" if ctx.half or is_half else "f32"


def filter_build(ctx: LoweringContext, shader: str, weights: Tensor) -> str:
    """Name of a convolution shader's build for this filter; fp16 mode adds its own suffix."""
    return f"{shader}_w16" if not ctx.half and filter_storage(ctx, weights) == "f16" else shader


def pack_filter(value: Array) -> Array:
    """A filter [output, taps, input] as [tap][input, padded][output, padded], float32.

    The layout of conv_2d and fully_connected: a group of four outputs for each input lane.
    """
    outputs, taps, inputs = value.shape
    packed = np.zeros((taps, round_up(inputs, LANES), round_up(outputs, LANES)), np.float32)
    packed[:, :inputs, :outputs] = value.transpose(1, 2, 0)
    return packed


def filter_buffer(ctx: LoweringContext, node: Node, weights: Tensor, taps: int) -> int:
    """Buffer of a filter [output, ..., input] in `pack_filter`'s layout.

    A constant is packed on the host; a run-time filter by a dispatch of its own.
    """
    outputs, inputs = weights.shape[0], weights.shape[-1]
    if weights.data is not None:
        packed = pack_filter(np.asarray(weights.data, np.float32).reshape(outputs, taps, inputs))
        return ctx.constant(pack(packed, filter_storage(ctx, weights)), weights.name)
    output_groups, input_groups = ceil_div(outputs, LANES), ceil_div(inputs, LANES)
    groups = taps * input_groups * LANES * output_groups
    words = groups * LANES // (2 if ctx.half else 1)
    target = ctx.temporary(words, f"{weights.name}/packed")
    ctx.dispatch_flat(
        node,
        ctx.variant("pack_conv_weights"),
        [ctx.buffer(weights.id), target],
        invocations=groups,
        push=(groups, outputs, output_groups, taps, inputs, input_groups),
    )
    return target
