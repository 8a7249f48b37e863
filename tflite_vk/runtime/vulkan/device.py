"""VulkanDevice: the Device protocol on Vulkan itself."""

from __future__ import annotations

import dataclasses
import os
import weakref
from collections.abc import Collection

from tflite_vk.device_info import DeviceInfo
from tflite_vk.errors import DeviceError
from tflite_vk.program import BufferKind, MemoryPlan, Program
from tflite_vk.runtime.vulkan.api import Api
from tflite_vk.runtime.vulkan.executable import VulkanExecutable
from tflite_vk.runtime.vulkan.features import without_enabling
from tflite_vk.runtime.vulkan.handle import DeviceHandle
from tflite_vk.runtime.vulkan.limits import check_program
from tflite_vk.runtime.vulkan.memory import STAGING_VARIABLE, staged_kinds
from tflite_vk.runtime.vulkan.pipelines import Pipelines
from tflite_vk.runtime.vulkan.resources import Resources


class VulkanDevice:
    """A device opened through the package `vulkan`.

    Safe for several threads. Its executables keep it alive, and memory that an array still looks
    into keeps the Vulkan device below it alive.
    """

    dispatcher = "vulkan"

    def __init__(self, info: DeviceInfo, *, staged: Collection[BufferKind] | None = None) -> None:
        """Open a device.

        Args:
            info: which one, by its index; its limits may be smaller than the device's.
            staged: kinds of buffers that the host reaches through copies even where it sees the
                device's memory; None reads TFLITE_VK_FORCE_STAGING.

        Raises:
            DeviceError: package, loader or driver is missing, or the device can't be opened.
            OptionError: an environment variable has a value that means nothing.
        """
        if staged is None:
            staged = staged_kinds(os.environ.get(STAGING_VARIABLE))
        self._staged = frozenset(staged)
        self.handle = DeviceHandle(Api(), info)
        enabled = self.handle.enabled | without_enabling(info.features)
        self.info = dataclasses.replace(info, features=enabled)
        self.pipelines = Pipelines(self.handle)
        self._executables: weakref.WeakSet[VulkanExecutable] = weakref.WeakSet()
        self._finalizer = weakref.finalize(self, _destroy, self.handle, self.pipelines)

    def compile(
        self, program: Program, plan: MemoryPlan, *, profiling: bool = False, guard_words: int = 0
    ) -> VulkanExecutable:
        """Make a program ready to run."""
        if self.is_closed:
            raise DeviceError(f"device {self.info.name!r} is closed; open it again")
        self.handle.check_usable()
        check_program(program, self.info, self.info.features)
        resources = Resources(
            self.handle,
            self.pipelines,
            program,
            plan,
            profiling=profiling,
            guard_words=guard_words,
            staged=self._staged,
        )
        executable = VulkanExecutable(self, self.handle, resources, guard_words)
        self._executables.add(executable)
        return executable

    @property
    def is_closed(self) -> bool:
        """True after `close`."""
        return not self._finalizer.alive

    def close(self) -> None:
        """Close every executable, then the device."""
        for executable in list(self._executables):
            executable.close()
        self._finalizer()


def _destroy(handle: DeviceHandle, pipelines: Pipelines) -> None:
    pipelines.destroy()
    handle.release()
