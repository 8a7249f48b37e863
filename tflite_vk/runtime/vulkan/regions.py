"""The allocations of a placement, on the device and, where the host needs one, beside it."""

from __future__ import annotations

from typing import Any

from tflite_vk.errors import DeviceError
from tflite_vk.program import Words
from tflite_vk.runtime.vulkan.api import OUT_OF_MEMORY, VulkanCallError
from tflite_vk.runtime.vulkan.handle import DeviceHandle
from tflite_vk.runtime.vulkan.memory import (
    DEVICE_MEMORY,
    HOST_KINDS,
    DeviceBuffer,
    choose_host_access,
)
from tflite_vk.runtime.vulkan.placement import Place, Region
from tflite_vk.runtime.vulkan.transfer import copy_regions


class RegionMemory:
    """Memory of one region.

    Attributes:
        region: what it is for.
        device: what shaders use.
        staging: the host's copy; None where the host sees `device` itself, or needs nothing.
        is_staged: keep apart what the host and what shaders use even where it needn't be.
    """

    def __init__(self, handle: DeviceHandle, region: Region, *, is_staged: bool) -> None:
        """Allocate.

        Args:
            handle: the device.
            region: what it is for.
            is_staged: copy between host and device even where the host sees the device's memory.

        Raises:
            DeviceError: no memory is left; names the largest buffer.
        """
        self.region = region
        self.is_staged = is_staged
        self.staging: DeviceBuffer | None = None
        what = str(region)
        try:
            self.device = self._make(handle, what)
        except VulkanCallError as error:
            if error.result not in OUT_OF_MEMORY:
                raise
            raise DeviceError(
                f"{handle.info.name!r} has no memory left: {error}; use a smaller batch, or leave "
                "some operators on the CPU (excluded_ops)"
            ) from error

    def _make(self, handle: DeviceHandle, what: str) -> DeviceBuffer:
        size = self.region.size
        if self.region.kind not in HOST_KINDS:
            return DeviceBuffer(handle, size, DEVICE_MEMORY, is_mapped=False, what=what)
        access = choose_host_access(handle.memory_flags, self.region.kind, is_staged=self.is_staged)
        if access.direct is not None:
            try:
                return DeviceBuffer(handle, size, (access.direct,), is_mapped=True, what=what)
            except VulkanCallError as error:
                # A GPU may show the host a small window of its memory only, and that may be full.
                if error.result not in OUT_OF_MEMORY:
                    raise
        device = DeviceBuffer(handle, size, DEVICE_MEMORY, is_mapped=False, what=what)
        try:
            self.staging = DeviceBuffer(
                handle, size, access.staging, is_mapped=True, what=f"staging {what}"
            )
        except BaseException:
            device.destroy()
            raise
        return device

    @property
    def words(self) -> Words | None:
        """What the host sees; None where it sees nothing."""
        return (self.staging or self.device).words

    @property
    def takes_writes(self) -> bool:
        """True where the host may write constants where shaders read them."""
        return self.device.is_visible and not self.is_staged

    @property
    def is_uploaded(self) -> bool:
        """True where each run begins with a copy to the device."""
        return self.staging is not None and self.region.kind in ("input", "state")

    @property
    def is_downloaded(self) -> bool:
        """True where each run ends with a copy from the device."""
        return self.staging is not None and self.region.kind in ("output", "state")

    def destroy(self) -> None:
        """Free it."""
        self.device.destroy()
        if self.staging is not None:
            self.staging.destroy()


class Copies:
    """The copies between a region and its staging memory, ready to record in either direction."""

    def __init__(self, handle: DeviceHandle, memory: RegionMemory, places: list[Place]) -> None:
        assert memory.staging is not None
        self._api = handle.api
        self._memory = memory
        self._count = len(places)
        # Buffer by buffer: the guard words between them stay as the device left them.
        self._regions = copy_regions(handle, [(p.offset, p.offset, p.size) for p in places])

    def record_upload(self, commands: Any) -> None:
        """Record staging memory to device."""
        assert self._memory.staging is not None
        self._record(commands, self._memory.staging, self._memory.device)

    def record_download(self, commands: Any) -> None:
        """Record device to staging memory."""
        assert self._memory.staging is not None
        self._record(commands, self._memory.device, self._memory.staging)

    def _record(self, commands: Any, source: DeviceBuffer, target: DeviceBuffer) -> None:
        self._api.lib.vkCmdCopyBuffer(
            commands, source.buffer, target.buffer, self._count, self._regions
        )
