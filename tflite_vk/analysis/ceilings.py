"""What a device can do at most, measured: bytes copied, multiply-adds done, dispatches launched."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from math import prod

import numpy as np

from tflite_vk.device_info import DeviceLimits
from tflite_vk.memory import plan_memory
from tflite_vk.ops.launch import Groups, flat_groups, flat_local
from tflite_vk.program import Binding, Buffer, Dispatch, Kernel, Program, Words
from tflite_vk.runtime.device import Device
from tflite_vk.shape import ceil_div

_VECTOR_BYTES = 16
_REPEATS = 5

COPY_BYTES = 64 << 20
"""Of one copy, read and written each: beyond the caches of a GPU, and little for a CPU."""
SOFTWARE_COPY_BYTES = 32 << 20
_VECTORS_PER_INVOCATION = 4

_CHAINS = 8  # of shaders/measure_arithmetic.comp
_FLOPS_PER_ROUND = _CHAINS * 4 * 2
_ARITHMETIC_INVOCATIONS = 1 << 18
_ARITHMETIC_ROUNDS = 1 << 11
_LAUNCHES = 8
_SOFTWARE_ARITHMETIC_ROUNDS = 1 << 5


@dataclass(frozen=True)
class Ceilings:
    """The most a device was seen to do.

    Attributes:
        copy_gbps: 1e9 bytes a second, read and written together.
        arithmetic_gflops: 1e9 operations a second in float32; a multiply-add is two.
        launch_us: microseconds of a dispatch that does next to nothing, with its barrier.
    """

    copy_gbps: float
    arithmetic_gflops: float
    launch_us: float

    def to_dict(self) -> dict[str, float]:
        """Plain data for JSON."""
        return asdict(self)


def measure_ceilings(device: Device) -> Ceilings:
    """Measure a device; takes about a second.

    Raises:
        DeviceError: the device has no timestamps, or not memory enough.
    """
    info = device.info
    size = SOFTWARE_COPY_BYTES if info.is_software else COPY_BYTES
    copy = copy_program(min(size, info.limits.max_storage_buffer_bytes), info.limits)
    rounds = _SOFTWARE_ARITHMETIC_ROUNDS if info.is_software else _ARITHMETIC_ROUNDS
    arithmetic = arithmetic_program(_ARITHMETIC_INVOCATIONS, rounds, info.limits)
    copied = 2 * 4 * copy.buffers[0].words
    return Ceilings(
        copy_gbps=copied / _best_us(copy, device) / 1e3,
        arithmetic_gflops=arithmetic.dispatches[0].flops / _best_us(arithmetic, device) / 1e3,
        launch_us=_best_us(launch_program(info.limits), device),
    )


def copy_program(num_bytes: int, limits: DeviceLimits) -> Program:
    """A program that copies so many bytes."""
    vectors = num_bytes // _VECTOR_BYTES
    local = flat_local(limits)
    groups = flat_groups(ceil_div(vectors, _VECTORS_PER_INVOCATION), local, limits)
    step = prod(groups) * local[0]
    source = np.zeros(4 * vectors, np.uint32)
    dispatch = _dispatch("measure_copy", local, groups, (vectors, step))
    return _program("copy", source, 4 * vectors, dispatch)


def launch_program(limits: DeviceLimits) -> Program:
    """A program of dispatches that each copy one vector, with a barrier between any two."""
    one = copy_program(_VECTOR_BYTES, limits)
    return replace(one, name="launch", dispatches=one.dispatches * _LAUNCHES)


def arithmetic_program(invocations: int, rounds: int, limits: DeviceLimits) -> Program:
    """A program of multiply-adds whose values converge, so that none overflows or is denormal."""
    local = flat_local(limits)
    groups = flat_groups(invocations, local, limits)
    # The grid may be a little larger than asked, and each invocation of it writes a vector.
    invocations = prod(groups) * local[0]
    source = np.array([0.5] * 4 + [1.0] * 4, np.float32).view(np.uint32)
    flops = invocations * rounds * _FLOPS_PER_ROUND
    dispatch = _dispatch("measure_arithmetic", local, groups, (rounds,), flops)
    return _program("arithmetic", source, 4 * invocations, dispatch)


def _dispatch(
    shader: str, local: Groups, groups: Groups, push: tuple[int, ...], flops: int = 0
) -> Dispatch:
    return Dispatch(
        kernel=Kernel(shader, local),
        bindings=(Binding(0, "r"), Binding(1, "w")),
        push=push,
        groups=groups,
        label=shader,
        node=0,
        flops=flops,
    )


def _program(name: str, source: Words, target_words: int, dispatch: Dispatch) -> Program:
    buffers = (
        Buffer(0, "source", source.size, "constant", source),
        Buffer(1, "target", target_words, "temporary"),
    )
    return Program(name, buffers, (dispatch,))


def _best_us(program: Program, device: Device) -> float:
    executable = device.compile(program, plan_memory(program), profiling=True)
    try:
        times = []
        for _ in range(_REPEATS):
            executable.run()
            times.extend(executable.dispatch_us())
    finally:
        executable.close()
    # A driver without a usable clock says 0.
    return max(min(times), 1e-3)
