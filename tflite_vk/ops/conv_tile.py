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


_MOST_ACCUMULATORS = 64
"""Sums of one invocation, four lanes each: 32 pixels of two groups. More spill everywhere."""

SUBGROUP = 8
"""Subgroup size that the builds for software drivers are made for."""

_DEPTHS = (1, 2, 4)

_BUSY = 48 * 1024
"""Invocations that keep a large GPU busy; with fewer, a smaller tile hides more latency."""


def shares_loads(output_groups: int, device: DeviceInfo, is_grouped: bool) -> bool:
    """True where a subgroup's invocations should load inputs for each other: `_subgroup` builds.

    They lie along the output channels, so that all of them read the same inputs. With three groups
    of four channels the idle ones are paid back.

    Args:
        output_groups: groups of four output channels.
        device: the device.
        is_grouped: a grouped convolution, whose channels read different inputs.
    """
    return (
        device.is_software
        and device.limits.subgroup_size == SUBGROUP
        and "subgroupBallot" in device.features
        and not is_grouped
        and output_groups > 2
    )


def choose_tile(
    num_pixels: int,
    output_groups: int,
    device: DeviceInfo,
    is_grouped: bool,
    input_groups: int = 0,
    *,
    is_sharing: bool = False,
) -> Tile:
    """A tile by rule.

    Args:
        num_pixels: output pixels of all images.
        output_groups: groups of four output channels.
        device: the device.
        is_grouped: a grouped convolution; its groups can't share loads, so one each.
        input_groups: groups of four input channels that one output sums; 0 for a kernel that
            can't split the sum.
        is_sharing: for a `_subgroup` build; see `shares_loads`.
    """
    if is_sharing:
        size = _sharing_size(num_pixels, output_groups)
    elif device.is_software:
        size = _software_size(num_pixels, output_groups, is_grouped)
    else:
        size = _gpu_size(num_pixels, output_groups, input_groups)
    pixels, channel_groups, x, y, z, depth = size
    most = device.limits.max_workgroup_invocations
    room = device.limits.shared_memory_bytes // (16 * pixels * channel_groups)
    while z > 1 and x * y * z > min(most, room):
        y, z = (y // 2, z) if y > 1 else (y, z // 2)
    x, y = shrink_local(x, y, device.limits)
    return make_tile((pixels, channel_groups, x, y, z, depth), num_pixels, output_groups, device)


def _sharing_size(num_pixels: int, output_groups: int) -> Size:
    """For lavapipe, where this takes 1.5 to 3.5 times less time than `_software_size`."""
    channel_groups = 2 if output_groups > SUBGROUP else 1
    pixels = 32 if num_pixels > 32 else 16 if num_pixels > 16 else 8
    return (pixels, channel_groups, SUBGROUP, 2 if num_pixels > pixels else 1, 1, 1)


def _software_size(num_pixels: int, output_groups: int, is_grouped: bool) -> Size:
    """A software driver is bound by loads, done lane by lane: large register tiles.

    Eight lanes lie along the channels, and the sum is never split.
    """
    # The large tile takes a driver half a second to compile: only where it is paid back.
    fits = 1 if is_grouped else output_groups // 8
    channel_groups = 4 if fits >= 4 and num_pixels >= 49 else 2 if fits >= 2 else 1
    pixels = 14 if num_pixels >= 49 else 7 if num_pixels >= 28 else 4
    x = power_of_two_above(output_groups, 8)
    return (pixels, channel_groups, x, max(1, 32 // x), 1, 1)


def _gpu_size(num_pixels: int, output_groups: int, input_groups: int) -> Size:
    """A GPU has more invocations than outputs: up to 16 of them split a sum.

    Each has four pixels where that leaves enough of them. On an H200 this comes within a fifth of
    the best of 166 tiles over the layers of MobileNet v1 and ResNet-50.
    """
    outputs = num_pixels * output_groups
    z = power_of_two_below(input_groups // 4, 4 if outputs >= 1 << 16 else 16)
    pixels = next((p for p in (4, 2) if outputs * z >= p * _BUSY), 1) if z > 1 else 1
    x = power_of_two_above(output_groups, 8 if z >= 8 else 16)
    y = max(1, (256 if z >= 16 else 128 if z != 4 else 64) // (x * z))
    return (pixels, 1, x, y, z, 1)


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
    num_pixels: int,
    output_groups: int,
    device: DeviceInfo,
    is_grouped: bool,
    input_groups: int,
    *,
    is_sharing: bool = False,
) -> tuple[Size, ...]:
    """Sizes worth trying; arguments as for `choose_tile`."""
    limits = device.limits
    widths = powers_of_two(1, power_of_two_above(output_groups, 32))[-4:]
    sharers: list[int] = [1]
    depths: tuple[int, ...] = (1,)
    if is_sharing:
        pixel_counts, group_counts, totals, widths = [8, 16, 32], [1, 2, 4], [8, 16, 32], [SUBGROUP]
    elif device.is_software:
        pixel_counts, group_counts, totals = [4, 7, 8, 14], [1, 2, 4], [32]
    else:
        pixel_counts, group_counts, totals = [1, 2, 4, 8], [1, 2], [64, 128, 256]
        sharers, depths = powers_of_two(1, min(16, max(1, input_groups // 2))), _DEPTHS
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
                for depth in depths
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
    *,
    is_sharing: bool = False,
) -> Offer:
    """A tile by rule, and what tuning may choose instead; arguments as for `choose_tile`."""
    shape = (num_pixels, output_groups, device, is_grouped, input_groups)
    rule = tile_size(choose_tile(*shape, is_sharing=is_sharing))
    return Offer(signature, rule, lambda: tile_sizes(*shape, is_sharing=is_sharing))
