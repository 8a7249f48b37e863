"""Does a program fit a device? Checked before any of it is made, since drivers don't check."""

from __future__ import annotations

import math

from tflite_vk.device_info import DeviceInfo
from tflite_vk.errors import DeviceError
from tflite_vk.program import Dispatch, Program
from tflite_vk.runtime.vulkan.features import feature_of
from tflite_vk.shader_library import shader_info

_CPU = "leave it on the CPU (excluded_nodes)"


def check_program(program: Program, info: DeviceInfo, enabled: frozenset[str]) -> None:
    """Hold every dispatch against the limits and features of a device.

    Args:
        program: verified program.
        info: the device.
        enabled: features that are switched on, subgroup operations included.

    Raises:
        DeviceError: something is beyond them; says what, by how much, and what to do.
    """
    for dispatch in program.dispatches:
        _check_dispatch(dispatch, info)
    for kernel in program.kernels():
        for capability in shader_info(kernel.shader).capabilities:
            feature = feature_of(capability)
            if feature is not None and feature not in enabled:
                raise DeviceError(
                    f"shader {kernel.shader} needs {feature} (SPIR-V {capability}), which "
                    f"{info.name!r} doesn't offer; choose another precision or device"
                )


def _check_dispatch(dispatch: Dispatch, info: DeviceInfo) -> None:
    limits = info.limits
    where = f"dispatch {dispatch.label!r}"
    shader = shader_info(dispatch.kernel.shader)
    local = dispatch.kernel.spec[:3]
    invocations = math.prod(local)
    if invocations > limits.max_workgroup_invocations or any(
        size > most for size, most in zip(local, limits.max_workgroup_size, strict=False)
    ):
        raise DeviceError(
            f"{where} has workgroups of {'x'.join(map(str, local))} (limit of {info.name!r}: "
            f"{limits.max_workgroup_invocations} in all, {limits.max_workgroup_size} by axis); {_CPU}"
        )
    if any(n > most for n, most in zip(dispatch.groups, limits.max_workgroup_count, strict=True)):
        raise DeviceError(
            f"{where} has {dispatch.groups} workgroups (limit of {info.name!r}: "
            f"{limits.max_workgroup_count}); {_CPU}"
        )
    if len(dispatch.bindings) > limits.max_storage_buffers:
        raise DeviceError(
            f"{where} binds {len(dispatch.bindings)} buffers (limit of {info.name!r}: "
            f"{limits.max_storage_buffers}); {_CPU}"
        )
    if 4 * len(dispatch.push) > limits.max_push_constant_bytes:
        raise DeviceError(
            f"{where} pushes {4 * len(dispatch.push)} bytes of constants (limit of {info.name!r}: "
            f"{limits.max_push_constant_bytes}); {_CPU}"
        )
    if (shader.shared_bytes or 0) > limits.shared_memory_bytes:
        raise DeviceError(
            f"{where} shares {shader.shared_bytes} bytes in a workgroup (limit of {info.name!r}: "
            f"{limits.shared_memory_bytes}); {_CPU}"
        )
