"""Register tile and workgroup of the matrix product kernels, by device class."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from tflite_vk.device_info import DeviceInfo
from tflite_vk.ops.launch import Groups, shrink_local
from tflite_vk.ops.sizes import (
    Offer,
    Size,
    fits_workgroup,
    power_of_two_above,
    power_of_two_below,
    powers_of_two,
)
from tflite_vk.shape import ceil_div


@dataclass(frozen=True)
class Tile:
    """How a product is split.

    Attributes:
        pixels: output pixels of one invocation.
        channel_groups: groups of four output channels of one invocation.
        local: local size; x along output channels, y along pixels, z along the sum.
        groups: workgroup counts.
        depth: steps of the sum whose loads are under way together.
    """

    pixels: int
    channel_groups: int
    local: Groups
    groups: Groups
    depth: int = 1


_MOST_ACCUMULATORS = 56
"""Sums of one invocation, four lanes each: 14 pixels of four groups. More spill everywhere."""

_DEPTHS = (1, 2, 4)

_BUSY = 48 * 1024
"""Invocations that keep a large GPU busy; with fewer, a smaller tile hides more latency."""


def choose_tile(
    num_pixels: int,
    output_groups: int,
    device: DeviceInfo,
    is_grouped: bool,
    input_groups: int = 0,
) -> Tile:
    """A tile by rule.

    A software driver is bound by loads, done lane by lane: large register tiles, eight lanes along
    the channels, the sum never split. A GPU has more invocations than outputs: the sum is split
    between up to 16 of them, each with four pixels where that leaves enough of them. On an H200
    this comes within a fifth of the best of 166 tiles over the layers of MobileNet v1 and
    ResNet-50.

    Args:
        num_pixels: output pixels of all images.
        output_groups: groups of four output channels.
        device: the device.
        is_grouped: a grouped convolution; its groups can't share loads, so one each.
        input_groups: groups of four input channels that one output sums; 0 for a kernel that
            can't split the sum.
    """
    if device.is_software:
        # The large tile takes a driver half a second to compile: only where it is paid back.
        fits = 1 if is_grouped else output_groups // 8
        channel_groups = 4 if fits >= 4 and num_pixels >= 49 else 2 if fits >= 2 else 1
        pixels = 14 if num_pixels >= 49 else 7 if num_pixels >= 28 else 4
        x = power_of_two_above(output_groups, 8)
        y, z = max(1, 32 // x), 1
    else:
        channel_groups = 1
        outputs = num_pixels * output_groups
        z = power_of_two_below(input_groups // 4, 4 if outputs >= 1 << 16 else 16)
        pixels = next((p for p in (4, 2) if outputs * z >= p * _BUSY), 1) if z > 1 else 1
        x = power_of_two_above(output_groups, 8 if z >= 8 else 16)
        y = max(1, (256 if z >= 16 else 128 if z != 4 else 64) // (x * z))
    most = device.limits.max_workgroup_invocations
    room = device.limits.shared_memory_bytes // (16 * pixels * channel_groups)
    while z > 1 and x * y * z > min(most, room):
        y, z = (y // 2, z) if y > 1 else (y, z // 2)
    x, y = shrink_local(x, y, device.limits)
    return make_tile((pixels, channel_groups, x, y, z, 1), num_pixels, output_groups, device)


def make_tile(size: Size, num_pixels: int, output_groups: int, device: DeviceInfo) -> Tile:
    """The tile of a size (pixels, channel groups, local x, y, z, depth)."""
    pixels, channel_groups, x, y, z, depth = size
    tiles = ceil_div(ceil_div(num_pixels, pixels), y)
    widest = device.limits.max_workgroup_count[1]
    folds = ceil_div(tiles, widest)
    return Tile(
        pixels=pixels,
        channel_groups=channel_groups,
        local=(x, y, z),
        groups=(ceil_div(output_groups, x * channel_groups), ceil_div(tiles, folds), folds),
        depth=depth,
    )


def tile_size(tile: Tile) -> Size:
    """What `make_tile` makes the tile of."""
    return (tile.pixels, tile.channel_groups, *tile.local, tile.depth)


def tile_sizes(
    num_pixels: int, output_groups: int, device: DeviceInfo, is_grouped: bool, input_groups: int
) -> tuple[Size, ...]:
    """Sizes worth trying; arguments as for `choose_tile`."""
    limits = device.limits
    if device.is_software:
        pixel_counts, group_counts, totals, sharers = [4, 7, 8, 14], [1, 2, 4], [32], [1]
    else:
        pixel_counts, group_counts, totals = [1, 2, 4, 8], [1, 2], [64, 128, 256]
        sharers = powers_of_two(1, min(16, max(1, input_groups // 2)))
    widths = powers_of_two(1, power_of_two_above(output_groups, 32))[-4:]
    out = []
    for pixels, channel_groups, x, total, z in itertools.product(
        pixel_counts, [1] if is_grouped else group_counts, widths, totals, sharers
    ):
        y = total // (x * z)
        shared = 16 * pixels * channel_groups * total if z > 1 else 0
        is_wasteful = x * channel_groups >= 2 * output_groups or pixels * max(1, y) > 2 * num_pixels
        if y < 1 or shared > limits.shared_memory_bytes or (is_wasteful and x * pixels > 1):
            continue
        if fits_workgroup(x, y, z, limits) and pixels * channel_groups <= _MOST_ACCUMULATORS:
            out += [
                (pixels, channel_groups, x, y, z, depth)
                for depth in ([1] if device.is_software else _DEPTHS)
                if depth == 1 or (pixels * channel_groups <= 4 and depth * z <= input_groups)
            ]
    return tuple(dict.fromkeys(out))


def tile_offer(
    signature: str,
    num_pixels: int,
    output_groups: int,
    device: DeviceInfo,
    is_grouped: bool,
    input_groups: int,
) -> Offer:
    """A tile by rule, and what tuning may choose instead; arguments as for `choose_tile`."""
    shape = (num_pixels, output_groups, device, is_grouped, input_groups)
    return Offer(signature, tile_size(choose_tile(*shape)), lambda: tile_sizes(*shape))
