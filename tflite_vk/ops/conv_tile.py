"""Register tile and workgroup of the matrix product kernels, by device class."""

from __future__ import annotations

from dataclasses import dataclass

from tflite_vk.device_info import DeviceInfo
from tflite_vk.ops.launch import Groups, shrink_local
from tflite_vk.shape import ceil_div


@dataclass(frozen=True)
class Tile:
    """How a product is split.

    Attributes:
        pixels: output pixels of one invocation.
        channel_groups: groups of four output channels of one invocation.
        local: local size; x along output channels, y along pixels, z along the sum.
        groups: workgroup counts.
    """

    pixels: int
    channel_groups: int
    local: Groups
    groups: Groups


def _power_of_two(value: int, most: int) -> int:
    """Smallest power of two >= value, at most `most`."""
    size = 1
    while size < value and size < most:
        size *= 2
    return size


def _power_of_two_below(value: int, most: int) -> int:
    """Largest power of two <= value, at least 1 and at most `most`."""
    size = 1
    while size * 2 <= min(value, most):
        size *= 2
    return size


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
        pixels = 14 if num_pixels >= 98 else 7 if num_pixels >= 28 else 4
        x = _power_of_two(output_groups, 8)
        y, z = max(1, 32 // x), 1
    else:
        channel_groups = 1
        outputs = num_pixels * output_groups
        z = _power_of_two_below(input_groups // 4, 4 if outputs >= 1 << 16 else 16)
        pixels = next((p for p in (4, 2) if outputs * z >= p * _BUSY), 1) if z > 1 else 1
        x = _power_of_two(output_groups, 8 if z >= 8 else 16)
        y = max(1, (256 if z >= 16 else 128 if z != 4 else 64) // (x * z))
    most = device.limits.max_workgroup_invocations
    room = device.limits.shared_memory_bytes // (16 * pixels * channel_groups)
    while z > 1 and x * y * z > min(most, room):
        y, z = (y // 2, z) if y > 1 else (y, z // 2)
    x, y = shrink_local(x, y, device.limits)
    tiles = ceil_div(ceil_div(num_pixels, pixels), y)
    widest = device.limits.max_workgroup_count[1]
    folds = ceil_div(tiles, widest)
    return Tile(
        pixels=pixels,
        channel_groups=channel_groups,
        local=(x, y, z),
        groups=(ceil_div(output_groups, x * channel_groups), ceil_div(tiles, folds), folds),
    )
