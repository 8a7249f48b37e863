"""A device that says it is a GPU, for choices that depend on the class of the device."""

from __future__ import annotations

from dataclasses import replace

from tflite_vk.device_info import DeviceInfo, DeviceLimits
from tflite_vk.program import MemoryPlan, Program
from tflite_vk.runtime.device import Device, Executable


class AsGpu:
    """The same device under another type.

    Attributes:
        info: of the device, but for its type and, where asked, its limits.
        dispatcher: of the device.
    """

    def __init__(self, device: Device, *, is_small: bool = True) -> None:
        """Args: device: an open one; is_small: with workgroups as small as Vulkan promises."""
        self._device = device
        least, limits = DeviceLimits(), device.info.limits
        if is_small:
            limits = replace(
                limits,
                max_workgroup_invocations=least.max_workgroup_invocations,
                max_workgroup_size=least.max_workgroup_size,
                shared_memory_bytes=least.shared_memory_bytes,
            )
        self.info: DeviceInfo = replace(device.info, type="discrete", limits=limits)
        self.dispatcher = device.dispatcher

    def compile(
        self, program: Program, plan: MemoryPlan, *, profiling: bool = False, guard_words: int = 0
    ) -> Executable:
        """As the device does."""
        return self._device.compile(program, plan, profiling=profiling, guard_words=guard_words)

    def close(self) -> None:
        """As the device does."""
        self._device.close()
