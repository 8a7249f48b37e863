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
        local: local size; x along channels.
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


def choose_tile(num_pixels: int, output_groups: int, device: DeviceInfo, is_grouped: bool) -> Tile:
    """A tile by rule.

    A software driver is bound by loads, done lane by lane: large register tiles, eight lanes along
    the channels. A GPU needs invocations to hide latency: on an H200 one pixel and one group of
    channels an invocation was the fastest of 28 tiles on every layer of MobileNet v1.

    Args:
        num_pixels: output pixels of all images.
        output_groups: groups of four output channels.
        device: the device.
        is_grouped: a grouped convolution; its groups can't share loads, so one each.
    """
    if device.is_software:
        channel_groups = 1 if is_grouped or output_groups < 16 else 2
        pixels = 8 if num_pixels >= 64 else 4
        x = _power_of_two(ceil_div(output_groups, channel_groups), 8)
        y = max(1, 32 // x)
    else:
        channel_groups = 1
        pixels = 1
        x = _power_of_two(output_groups, 16)
        y = max(1, 64 // x)
    x, y = shrink_local(x, y, device.limits)
    tiles = ceil_div(ceil_div(num_pixels, pixels), y)
    widest = device.limits.max_workgroup_count[1]
    z = ceil_div(tiles, widest)
    return Tile(
        pixels=pixels,
        channel_groups=channel_groups,
        local=(x, y, 1),
        groups=(ceil_div(output_groups, x * channel_groups), ceil_div(tiles, z), z),
    )
