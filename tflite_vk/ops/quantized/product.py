"""The matrix product of int8 activations and a constant filter: CONV_2D and FULLY_CONNECTED."""

from __future__ import annotations

from collections.abc import Sequence

from tflite_vk.device_info import DeviceInfo
from tflite_vk.ir.attributes import Activation
from tflite_vk.ir.graph import Node
from tflite_vk.layout import words_for
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.conv_2d import Product
from tflite_vk.ops.conv_tile import SUBGROUP, Tile, choose_tile, shares_loads
from tflite_vk.ops.quantization import (
    activation_bounds,
    affine,
    byte_word,
    channel_words,
)
from tflite_vk.ops.quantized.lookup import fused_table
from tflite_vk.ops.quantized.weights import Ints, folded_bias, pack_dot4
from tflite_vk.program import int_word
from tflite_vk.shape import LANES, ceil_div


def choose_build(product: Product, device: DeviceInfo) -> tuple[str, Tile]:
    """Build of `conv_2d_i8` and its tile."""
    output_groups = ceil_div(product.output_channels, LANES)
    plain = choose_tile(product.num_pixels, output_groups, device, product.num_groups > 1)
    is_sharing = shares_loads(output_groups, device, product.num_groups > 1)
    if not is_sharing or output_groups <= SUBGROUP // 2:
        return "conv_2d_i8", plain
    pixels = 16 if product.num_pixels >= 96 else 8
    channel_groups = 2 if output_groups > SUBGROUP else 1
    tiles = ceil_div(ceil_div(product.num_pixels, pixels), 2)
    folds = ceil_div(tiles, device.limits.max_workgroup_count[1])
    groups = (ceil_div(output_groups, SUBGROUP * channel_groups), ceil_div(tiles, folds), folds)
    return "conv_2d_i8_subgroup", Tile(pixels, channel_groups, (SUBGROUP, 2, 1), groups)


def output_push(ctx: LoweringContext, node: Node, activation: Activation) -> tuple[int, ...]:
    """CHANNELS_PUSH: zero point, bounds and flip of what the node makes before fused functions."""
    made = ctx.graph.made(node)
    lowest, highest = activation_bounds(activation, made)
    q = affine(made)
    return (int_word(q.zero_point), int_word(lowest), int_word(highest), q.flip)


def channels_buffer(
    ctx: LoweringContext, node: Node, bias: Ints, scales: Sequence[float], *, as_double: bool
) -> int:
    """Constant buffer of `channel_words`."""
    words = channel_words(bias, scales, as_double=as_double)
    return ctx.constant(words, f"{ctx.graph.input(node, 1).name}/channels")


def lower_product(
    ctx: LoweringContext,
    node: Node,
    product: Product,
    source: int,
    values: Ints,
    zero: int,
    bias: Ints,
    scales: Sequence[float],
    activation: Activation,
    *,
    as_double: bool = False,
) -> None:
    """Add the dispatch of `conv_2d_i8`.

    Args:
        ctx: the program being made.
        node: the node.
        product: sizes.
        source: buffer of the input, int8 or uint8.
        values: filter [output, taps, input] as int8.
        zero: its zero point.
        bias: as written in the file.
        scales: factors on the sums, for each output or one for all.
        activation: fused one.
        as_double: multiply by the factors as doubles.
    """
    q = affine(ctx.graph.input(node, 0))
    sums = folded_bias(bias, values, zero, q, (1, 2))
    channels = channels_buffer(ctx, node, sums, scales, as_double=as_double)
    _dispatch(
        ctx,
        node,
        product,
        "",
        (source, channels, ctx.buffer(node.outputs[0])),
        values,
        spec=(int(zero != 0), product.input_channels % LANES if zero != 0 else 0, int(as_double)),
        push=(
            q.flip,
            byte_word(q.zero_point),
            int_word(zero),
            *output_push(ctx, node, activation),
        ),
    )


def lower_sums(
    ctx: LoweringContext, node: Node, product: Product, source: int, found: int, values: Ints
) -> int:
    """Add the dispatch of `conv_2d_i8` that writes sums of products as they are.

    Args:
        ctx: the program being made.
        node: the node.
        product: sizes.
        source: buffer of int8 values that were quantized while running.
        found: buffer of their zero points.
        values: filter [output, taps, input] as int8.

    Returns:
        Buffer of the int32 sums, in the output's shape.
    """
    output = ctx.graph.output(node)
    sums = ctx.temporary(words_for(output.shape, "i32"), f"{output.name}/sums")
    lower_raw(ctx, node, product, (source, found, sums), values)
    return sums


def with_table(
    ctx: LoweringContext, node: Node, suffix: str, buffers: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Bindings and the last specialization constant of a kernel that fused functions may follow.

    Args:
        ctx: the program being made.
        node: the node.
        suffix: of the shader's build; "_raw" has no table.
        buffers: the kernel's own.
    """
    if suffix == "_raw":
        return tuple(buffers), ()
    table, has_table = fused_table(ctx, node)
    return (*buffers, table), (has_table,)


def lower_raw(
    ctx: LoweringContext,
    node: Node,
    product: Product,
    buffers: tuple[int, int, int],
    values: Ints,
) -> None:
    """Add the dispatch of `lower_sums`.

    Args:
        ctx: the program being made.
        node: the node.
        product: sizes.
        buffers: input, zero points of the input, sums.
        values: filter [output, taps, input] as int8.
    """
    _dispatch(ctx, node, product, "_raw", buffers, values, spec=(0, 0, 0), push=(0,) * 7)


def _dispatch(
    ctx: LoweringContext,
    node: Node,
    product: Product,
    suffix: str,
    buffers: tuple[int, int, int],
    values: Ints,
    *,
    spec: tuple[int, ...],
    push: tuple[int, ...],
) -> None:
    shader, tile = choose_build(product, ctx.device)
    bindings, has_table = with_table(ctx, node, suffix, buffers)
    source, *others = bindings
    name = ctx.graph.input(node, 1).name if node.has_input(1) else "weights"
    weights = ctx.constant(pack_dot4(values), name)
    ctx.dispatch(
        node,
        f"{shader}{suffix}",
        [source, weights, *others],
        groups=tile.groups,
        spec=(
            *tile.local,
            tile.pixels,
            tile.channel_groups,
            int(product.is_pointwise),
            int(product.num_groups > 1),
            *spec,
            *has_table,
        ),
        push=(*product.words, *push),
        flops=product.flops,
    )
