"""Where one kernel for DEPTHWISE_CONV_2D and the CONV_2D behind it pays, and its tile and workgroup."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from tflite_vk.device_info import DeviceInfo, DeviceLimits
from tflite_vk.ops.launch import Groups
from tflite_vk.ops.sizes import (
    Offer,
    Size,
    fits_workgroup,
    power_of_two_above,
    power_of_two_below,
    powers_of_two,
)
from tflite_vk.shape import LANES, ceil_div

_BINDINGS = 9
"""Buffers that the kernel binds; a convolution alone binds seven."""

_MOST_TAPS = 25
"""A larger depthwise filter is work enough for a kernel of its own, and is not computed twice."""

_MOST_FLOPS = 1 << 29
"""Operations of the pair: beyond, a launch less is nothing, and the kernels apart share no memory."""

_WORKGROUPS = 96
"""Workgroups that keep a large GPU busy, one on most of its processors."""

_INVOCATIONS = (512, 256)
"""Of a workgroup: they share the depthwise results, so many of them. The second number where there are
twice as many workgroups."""

_TILES = ((32, 32), (16, 32), (8, 32), (8, 16), (4, 16), (2, 16))
"""Pixels and output groups of a workgroup, the first with enough workgroups: many pixels share loads of
weights, many output groups share depthwise results."""

_MOST_PIXELS = 8
"""Of an invocation: enough to use a weight that often, few enough for its registers."""

_LEAST_PIXELS = 2
"""The same where invocations are to spare."""

_MOST_UNIT = 4
"""Pixels of a depthwise unit."""

_BYTES = 4 * LANES
"""Of a group of four lanes in shared memory."""


@dataclass(frozen=True)
class SeparableShape:
    """What the tile depends on.

    Attributes:
        num_pixels: output pixels of all images.
        output_groups: groups of four output channels.
        input_groups: groups of four channels of the depthwise part.
        taps: elements of the depthwise filter.
    """

    num_pixels: int
    output_groups: int
    input_groups: int
    taps: int

    @property
    def flops(self) -> int:
        """Operations of both parts, padding lanes included."""
        of_pixel = self.taps + LANES * self.output_groups
        return 2 * self.num_pixels * LANES * self.input_groups * of_pixel


@dataclass(frozen=True)
class SeparableTile:
    """How the kernel is split.

    Attributes:
        pixels: output pixels of one invocation.
        channel_groups: groups of four output channels of one invocation.
        local: local size; x along output channels, y along pixels, z along the sum.
        groups: workgroup counts.
        depth: steps of the sum whose loads are under way together.
        chunk: input groups in shared memory at a time.
        unit: pixels whose depthwise results one invocation computes together.
        slice: results of an invocation whose parts are in shared memory at a time.
    """

    pixels: int
    channel_groups: int
    local: Groups
    groups: Groups
    depth: int
    chunk: int
    unit: int
    slice: int


def pays(shape: SeparableShape, device: DeviceInfo) -> bool:
    """True where one dispatch is faster than two. All thresholds stand at the top of this file.

    A GPU saves a launch and the way through memory, some 4 us of an H200's, and computes depthwise
    results once for each workgroup along the output channels: little, where the pair is bound by
    launches. A software driver launches for nothing: there one kernel took 1.4 times as long as two, in
    the best of the sizes tried (MobileNet v1 and v2, lavapipe).
    """
    if device.is_software or device.limits.max_storage_buffers < _BINDINGS:
        return False
    return shape.taps <= _MOST_TAPS and shape.flops <= _MOST_FLOPS


def choose_size(shape: SeparableShape, device: DeviceInfo) -> Size:
    """The size by rule; see `make_tile`."""
    limits = device.limits
    x, pixels, workgroups = 1, 1, 0
    for pixels, widest in _TILES:
        x = _even_width(shape.output_groups, min(widest, limits.max_workgroup_size[0]))
        workgroups = ceil_div(shape.num_pixels, pixels) * ceil_div(shape.output_groups, x)
        if workgroups >= _WORKGROUPS:
            break
    total = _INVOCATIONS[workgroups >= 2 * _WORKGROUPS]
    total = min(total, limits.max_workgroup_invocations)
    # Two steps of the sum at least for each of those that share it.
    z = power_of_two_below(shape.input_groups // 2, min(16, max(1, total // x)))
    y = power_of_two_below(total // (x * z), max(1, pixels // _LEAST_PIXELS))
    each = pixels // y
    while each > _MOST_PIXELS:
        y, z, each = y * 2, max(1, z // 2), each // 2
    while not _fits((each, 1, x, y, z, 1), limits):
        # Registers first, then sharers: a tile of one pixel and one group fits any device.
        if each > 1:
            each //= 2
        elif z > 1:
            z //= 2
        elif y > 1:
            y //= 2
        else:
            x //= 2
    # A workgroup or two on a processor hide little latency, so the loads of two steps go together.
    return (each, 1, x, y, z, 2 if shape.input_groups >= 4 * z else 1)


def make_tile(size: Size, shape: SeparableShape, device: DeviceInfo) -> SeparableTile:
    """The tile of a size (pixels, channel groups, local x, y, z, depth)."""
    pixels, channel_groups, x, y, z, depth = size
    tiles = ceil_div(shape.num_pixels, pixels * y)
    folds = ceil_div(tiles, device.limits.max_workgroup_count[1])
    held = device.limits.shared_memory_bytes // (_BYTES * pixels * y)
    chunk = shape.input_groups if shape.input_groups <= held else held // z * z
    units = ceil_div(pixels * y * chunk, x * y * z)
    results = pixels * channel_groups
    slice_at_most = max(1, device.limits.shared_memory_bytes // (_BYTES * x * y * z))
    return SeparableTile(
        pixels=pixels,
        channel_groups=channel_groups,
        local=(x, y, z),
        groups=(ceil_div(shape.output_groups, x * channel_groups), ceil_div(tiles, folds), folds),
        depth=depth,
        chunk=chunk,
        unit=power_of_two_below(units, min(_MOST_UNIT, pixels * y)),
        slice=ceil_div(results, ceil_div(results, slice_at_most)),
    )


def sizes(shape: SeparableShape, device: DeviceInfo) -> tuple[Size, ...]:
    """Sizes worth trying."""
    out = []
    for pixels, channel_groups, x, y, z, depth in itertools.product(
        (1, 2, 4, 6, 7, 8),  # many images are 7 * 2^n pixels wide
        (1, 2),
        _widths(shape.output_groups),
        (1, 2, 4, 8, 16),
        powers_of_two(1, min(32, max(1, shape.input_groups // 2))),
        (1, 2),
    ):
        size = (pixels, channel_groups, x, y, z, depth)
        is_wasteful = (
            x * channel_groups >= 2 * shape.output_groups or pixels * y > 2 * shape.num_pixels
        )
        if (
            128 <= x * y * z <= 512
            and 2 <= pixels * y <= (64 if shape.output_groups <= 16 else 16)
            and pixels * channel_groups <= _MOST_PIXELS
            and depth * z <= shape.input_groups
            and not is_wasteful
            and _fits(size, device.limits)
        ):
            out.append(size)
    return tuple(out)


def separable_offer(signature: str, shape: SeparableShape, device: DeviceInfo) -> Offer:
    """A size by rule, and what tuning may choose instead."""
    return Offer(signature, choose_size(shape, device), lambda: sizes(shape, device))


def _even_width(groups: int, most: int) -> int:
    """Local size x that leaves as few invocations idle as can be, at most `most`."""
    return ceil_div(groups, ceil_div(groups, most))


def _widths(groups: int) -> list[int]:
    """Local sizes x worth trying."""
    powers = powers_of_two(min(4, groups), power_of_two_above(groups, 64))
    return sorted({*powers, *(_even_width(groups, most) for most in (16, 32, 64))})


def _fits(size: Size, limits: DeviceLimits) -> bool:
    """True where the device takes a size, with a step and a slice at least in shared memory."""
    pixels, _, x, y, z, _ = size
    needed = _BYTES * y * z * max(x if z > 1 else 0, pixels)
    return fits_workgroup(x, y, z, limits) and needed <= limits.shared_memory_bytes
