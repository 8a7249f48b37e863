"""Block and workgroup of the matrix product through shared memory, which only GPUs are offered."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import partial

from tflite_vk.device_info import DeviceInfo, DeviceLimits
from tflite_vk.ops.conv_tile import Tile, make_tile
from tflite_vk.ops.sizes import Offer, Size, fits_workgroup, near, powers_of_two
from tflite_vk.shape import ceil_div, round_up

# The rule, in figures: a discrete GPU (others may keep shared memory in main memory) takes this form
# where its blocks keep a large one busy, and the sum is long enough to pay for staging. Found on an H200,
# one number at a time, over ResNet-50 and a style network: ResNet-50's kernels then take 0.96 ms, where
# conv_2d alone takes 1.25 and tuning comes to 0.92.
LEAST_SUM = 16
"""Groups of four inputs and taps that one output sums."""
WORKGROUPS = 66
"""Half of what the H200 has in processors; with fewer blocks a split sum in `conv_2d` fills it better."""
INVOCATIONS = 256
"""Of a workgroup: what a block leaves idle goes to parts of the sum."""

_MOST_RESULTS = 16
"""Groups of four outputs of one invocation, all in registers."""

_NUMBERS = 7
"""In a size: (pixels, channel groups, local x, y, z, depth, buffers). The other form has six."""


def is_shared(size: Size) -> bool:
    """True for a size of this form of the kernel, False for one of `conv_tile`'s."""
    return len(size) == _NUMBERS


def make_shared_tile(size: Size, num_pixels: int, output_groups: int, device: DeviceInfo) -> Tile:
    """The tile of a size; an invocation's pixels and groups lie apart, the counts are the same."""
    return make_tile(size[:-1], num_pixels, output_groups, device)


def shared_bytes(size: Size) -> int:
    """Shared memory of a workgroup, as shaders/conv_2d_shared.comp declares it."""
    pixels, channel_groups, x, y, z, depth, buffers = size
    step = depth * z
    inputs = step * (round_up(y * pixels, 8) + max(1, 8 // step))
    weights = step * 4 * x * channel_groups
    partial_sums = pixels * channel_groups * x * y * z if z > 1 else 1
    return 16 * max(buffers * (inputs + weights), partial_sums)


def shared_sizes(
    num_pixels: int, output_groups: int, sum_groups: int, limits: DeviceLimits
) -> tuple[Size, ...]:
    """Sizes worth trying.

    Args:
        num_pixels: output pixels of all images.
        output_groups: groups of four output channels.
        sum_groups: groups of four inputs that one output sums, of all taps.
        limits: of the device.
    """
    out = []
    for pixels, channel_groups, x, total, y, depth in itertools.product(
        (4, 7, 8), (1, 2), (4, 8, 16), (64, 128, 256), (1, 2, 4, 8, 16), (1, 2, 4)
    ):
        z = total // (x * y)
        size = (pixels, channel_groups, x, y, z, depth, 2)
        is_wasteful = (
            x * channel_groups >= 2 * output_groups
            or (pixels * y >= 2 * num_pixels and y > 1)
            or 2 * depth * z > sum_groups
        )
        if z >= 1 and not is_wasteful and _fits(size, limits):
            out.append(size)
    return tuple(out)


def _fits(size: Size, limits: DeviceLimits) -> bool:
    pixels, channel_groups, x, y, z, depth, _ = size
    return (
        fits_workgroup(x, y, z, limits)
        and x * y % depth == 0
        and pixels * channel_groups <= _MOST_RESULTS
        and shared_bytes(size) <= limits.shared_memory_bytes
    )


def choose_shared(
    num_pixels: int, output_groups: int, sum_groups: int, limits: DeviceLimits
) -> Size | None:
    """The best size by rule, None where none fits; arguments as for `shared_sizes`.

    The largest block of which there still are enough, eight groups of channels wide. Its
    invocations are few: more of them split the sum.
    """
    x = next(n for n in (8, 4, 2, 1) if n <= max(1, output_groups))
    # Seven pixels divide the images of most networks (224, 112, 56, 28, 14, 7), eight many others.
    pixels = 7 if round_up(num_pixels, 7) <= round_up(num_pixels, 8) else 8

    def blocks(y: int, channel_groups: int) -> int:
        return _blocks((pixels, channel_groups, x, y), num_pixels, output_groups)

    y = next((n for n in (16, 8, 4, 2) if blocks(n, 1) >= WORKGROUPS), 1)
    channel_groups = 2 if output_groups > x and blocks(y, 2) >= 2 * WORKGROUPS else 1
    shares = (INVOCATIONS // channel_groups) // (x * y)
    for z, depth in itertools.product(reversed(powers_of_two(1, max(1, shares))), (4, 2, 1)):
        size = (pixels, channel_groups, x, y, z, depth, 2)
        if 2 * depth * z <= sum_groups and _fits(size, limits):
            return size
    return None


def _blocks(size: Size, num_pixels: int, output_groups: int) -> int:
    pixels, channel_groups, x, y, *_ = size
    return ceil_div(num_pixels, pixels * y) * ceil_div(output_groups, x * channel_groups)


def is_better(size: Size, num_pixels: int, output_groups: int, sum_groups: int) -> bool:
    """True where the rule takes this form, in this size; arguments as for `shared_sizes`."""
    return sum_groups >= LEAST_SUM and _blocks(size, num_pixels, output_groups) >= WORKGROUPS


def with_shared(
    offer: Offer, num_pixels: int, output_groups: int, sum_groups: int, device: DeviceInfo
) -> Offer:
    """An offer of register tiles with this form beside them, on a GPU.

    Args:
        offer: see `conv_tile.tile_offer`.
        num_pixels: see `shared_sizes`.
        output_groups: see there.
        sum_groups: see there.
        device: the device.
    """
    if device.is_software:
        return offer
    shape = (num_pixels, output_groups, sum_groups)
    own = choose_shared(*shape, device.limits)
    if own is None:
        return offer
    sizes = partial(shared_sizes, *shape, device.limits)
    return replace(
        offer,
        rule=own if device.type == "discrete" and is_better(own, *shape) else offer.rule,
        sizes=lambda: (offer.rule, *offer.sizes(), own, *sizes()),
        few=lambda: (offer.rule, *near(offer.rule, offer.sizes()), own, *near(own, sizes())),
    )
