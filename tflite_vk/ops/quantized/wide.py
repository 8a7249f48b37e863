"""Products of int16 activations and a constant int8 filter ("16x8"), with sums of up to 48 bits.

Source: the kernels named in quantized/conv_2d.py, depthwise_conv_2d.py, transpose_conv.py and
fully_connected.py. All sum in 64 bits unless the operator's quantized_bias_type is INT32. FULLY_CONNECTED
scales by doubles; the convolutions by 15 bits of the multiplier, or by all 31 where sums are INT32.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import (
    Activation,
    Conv2DAttributes,
    FullyConnectedAttributes,
    TransposeConvAttributes,
)
from tflite_vk.ir.graph import Graph, Node, Tensor
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.conv_2d import Product
from tflite_vk.ops.conv_tile import choose_tile
from tflite_vk.ops.quantization import (
    Multiplier,
    activation_bounds,
    affine,
    quantize_multiplier,
    split_double,
)
from tflite_vk.ops.quantized.weights import (
    Ints,
    bias_values,
    output_scales,
    pack_dot4,
)
from tflite_vk.program import int_word
from tflite_vk.shape import LANES, ceil_div, round_up

_LARGEST_INPUT = 1 << 15
MOST_SUM = 1 << 47
"""Sums that TFLite's own arithmetic is made for."""
MOST_SHIFT = 7
"""Of a multiplier, in TFLite's 64-bit arithmetic."""


class Scaling(enum.IntEnum):
    """How sums become outputs; the numbers are those of shaders/include/wide.glsl."""

    REDUCED = 0
    AS_DOUBLE = 1
    NARROW = 2
    NARROW_AS_DOUBLE = 3


def sums_are_int32(node: Node) -> bool:
    """True where a node of int16 activations adds in 32 bits."""
    a = node.attributes
    kinds = (Conv2DAttributes, TransposeConvAttributes, FullyConnectedAttributes)
    return isinstance(a, kinds) and a.quantized_bias_type is DType.INT32


def scaling_of(node: Node) -> Scaling:
    """How a node's sums become outputs."""
    is_narrow = sums_are_int32(node)
    if isinstance(node.attributes, FullyConnectedAttributes):
        return Scaling.NARROW_AS_DOUBLE if is_narrow else Scaling.AS_DOUBLE
    return Scaling.NARROW if is_narrow else Scaling.REDUCED


def reduced(factor: Multiplier) -> Multiplier:
    """A factor as 15 bits, and the whole shift to the right behind the product."""
    value = (factor.value + (1 << 15)) >> 16 if factor.value < 0x7FFF0000 else 0x7FFF
    return Multiplier(value, 15 - factor.shift)


def _largest_products(weights: npt.NDArray[np.generic]) -> Ints:
    """For each output channel, which come first, the most that its products can add up to."""
    magnitudes = np.abs(weights.astype(np.int16)).reshape(len(weights), -1)
    sums: Ints = magnitudes.sum(axis=1, dtype=np.int64) * _LARGEST_INPUT
    return sums


def check_wide(
    graph: Graph, node: Node, axis: int, bias_at: int = 2, data_at: int = 0
) -> str | None:
    """Reason where `check_operands` has nothing against 16x8 operands, and this module has.

    Args:
        graph: the graph.
        node: its data is multiplied with the constant input 1.
        axis: the filter's dimension of output channels.
        bias_at: position of the bias.
        data_at: position of the data.
    """
    tensors = (graph.input(node, data_at), graph.output(node))
    if any(affine(t).zero_point for t in tensors):
        return "INT16 with a zero point (supported: 0)"
    weights = graph.input(node, 1)
    assert weights.quantization is not None
    if any(weights.quantization.zero_point):
        return "filter has a zero point (supported: 0 where the input is INT16)"
    bias = graph.optional_input(node, bias_at)
    wanted = DType.INT32 if sums_are_int32(node) else DType.INT64
    if bias is not None and (bias.dtype is not wanted or not bias.is_const):
        return (
            f"bias is {bias.dtype.name} (supported where the input is INT16: a constant INT64, or INT32 "
            f"where quantized_bias_type says so)"
        )
    assert weights.data is not None
    products = _largest_products(np.moveaxis(weights.data, axis, 0))
    sums = products + np.abs(bias_values(graph, node, len(products), bias_at))
    if not sums_are_int32(node) and sums.size and int(sums.max()) >= MOST_SUM:
        return "its sums may exceed the 48 bits of TFLite's own arithmetic"
    if scaling_of(node) is Scaling.REDUCED:
        scales = output_scales(graph, node, data_at)
        if any(quantize_multiplier(s).shift > MOST_SHIFT for s in scales):
            return "its output scale is too small for TFLite's own arithmetic"
    return None


@dataclass(frozen=True)
class Wide:
    """What the kernels of a 16x8 product need to know beyond its sizes.

    Attributes:
        channels: buffer of bias and factor of each output channel.
        spec: whether sums may need more than 32 bits, how they are scaled.
        push: bounds of the output.
    """

    channels: int
    spec: tuple[int, int]
    push: tuple[int, int]


def wide_words(bias: Ints, scales: Sequence[float], scaling: Scaling) -> npt.NDArray[np.uint32]:
    """What the device adds and multiplies for each output channel (wide.glsl).

    Args:
        bias: int64 values.
        scales: real factor of each channel, or one for all.
        scaling: form of the factors.

    Returns:
        For each group of four channels: low and high words of the biases, multipliers, shifts, upper
        mantissa bits.
    """
    channels = len(bias)
    words = np.zeros((5, round_up(channels, LANES)), np.int64)
    words[0, :channels] = bias & 0xFFFFFFFF
    words[1, :channels] = bias >> 32
    for i, scale in enumerate(scales):
        which = slice(i, channels if len(scales) == 1 else i + 1)
        if scaling in {Scaling.AS_DOUBLE, Scaling.NARROW_AS_DOUBLE}:
            double = split_double(scale)
            words[2, which] = double.mantissa & 0xFFFFFFFF
            words[3, which] = double.shift
            words[4, which] = double.mantissa >> 32
            continue
        factor = quantize_multiplier(scale)
        if scaling is Scaling.REDUCED:
            factor = reduced(factor)
        words[2, which], words[3, which] = factor.value, factor.shift
    groups = words.reshape(5, -1, LANES).transpose(1, 0, 2)
    return (groups & 0xFFFFFFFF).astype(np.uint32)


def wide_of(
    ctx: LoweringContext,
    node: Node,
    values: Ints,
    activation: Activation,
    bias_at: int = 2,
    data_at: int = 0,
) -> Wide:
    """Constants of a node's kernel.

    Args:
        ctx: the program being made.
        node: the node.
        values: filter, the output channels first.
        activation: fused one.
        bias_at: position of the bias.
        data_at: position of the data.
    """
    bias = bias_values(ctx.graph, node, len(values), bias_at)
    scaling = scaling_of(node)
    scales = output_scales(ctx.graph, node, data_at)
    words = wide_words(bias, scales, scaling)
    products = _largest_products(values)
    # What wraps in 32 bits gives the low word all the same.
    spills = not sums_are_int32(node) and int(products.max()) >= 1 << 31
    lowest, highest = activation_bounds(activation, ctx.graph.output(node))
    return Wide(
        ctx.constant(words, f"{ctx.graph.input(node, 1).name}/channels"),
        (int(spills), int(scaling)),
        (int_word(lowest), int_word(highest)),
    )


def lower_wide_product(
    ctx: LoweringContext,
    node: Node,
    product: Product,
    source: int,
    values: Ints,
    activation: Activation,
) -> None:
    """Add the dispatch of `conv_2d_i16`.

    Args:
        ctx: the program being made.
        node: the node.
        product: sizes.
        source: buffer of the input.
        values: filter [output, taps, input].
        activation: fused one.
    """
    output_groups = ceil_div(product.output_channels, LANES)
    # One group of channels an invocation: a grouped convolution's tile.
    tile = choose_tile(product.num_pixels, output_groups, ctx.device, is_grouped=True)
    wide = wide_of(ctx, node, values, activation)
    ctx.dispatch(
        node,
        "conv_2d_i16",
        [
            source,
            ctx.constant(pack_dot4(values), ctx.graph.input(node, 1).name),
            wide.channels,
            ctx.buffer(node.outputs[0]),
        ],
        groups=tile.groups,
        spec=(
            *tile.local,
            tile.pixels,
            int(product.is_pointwise),
            int(product.num_groups > 1),
            *wide.spec,
        ),
        push=(*product.words, *wide.push),
        flops=product.flops,
    )


def is_wide(tensor: Tensor) -> bool:
    """True for the data of a 16x8 product."""
    return tensor.dtype is DType.INT16
