"""Workgroup sizes and counts within a device's limits."""

from __future__ import annotations

from tflite_vk.device_info import DeviceLimits
from tflite_vk.shape import ceil_div

FLAT_LOCAL_SIZE = 64

Groups = tuple[int, int, int]


def fold(count: int, limits: DeviceLimits) -> Groups:
    """Workgroup counts for `count` groups in a row, folded over y where x can't hold them.

    `flat_index` and `flat_group` of shaders/include/dispatch.glsl undo it. The grid may be a
    little larger than asked; kernels compare their index with their own count.
    """
    widest = limits.max_workgroup_count[0]
    if count <= widest:
        return (max(1, count), 1, 1)
    y = ceil_div(count, widest)
    return (ceil_div(count, y), y, 1)


def flat_local(limits: DeviceLimits) -> Groups:
    """Local size of a kernel with one invocation per group of four lanes."""
    return (min(FLAT_LOCAL_SIZE, limits.max_workgroup_invocations), 1, 1)


def flat_groups(invocations: int, local: Groups, limits: DeviceLimits) -> Groups:
    """Workgroup counts that cover so many invocations."""
    return fold(ceil_div(invocations, local[0]), limits)


def shrink_local(x: int, y: int, limits: DeviceLimits) -> tuple[int, int]:
    """A two-dimensional local size halved, y first, until the device takes it."""
    while x * y > limits.max_workgroup_invocations and y > 1:
        y //= 2
    while x * y > limits.max_workgroup_invocations or x > limits.max_workgroup_size[0]:
        x //= 2
    return x, y
