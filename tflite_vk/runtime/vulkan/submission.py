"""Submission: one command buffer with its fence, submitted as often as one likes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tflite_vk.errors import DeviceError
from tflite_vk.runtime.vulkan.api import TIMEOUT
from tflite_vk.runtime.vulkan.handle import DeviceHandle

Record = Callable[[Any], None]

_SLICE_NS = 500_000_000  # Python sees Ctrl-C only between two waits
_LATE_NS = 10_000_000_000


class Submission:
    """A recorded command buffer and everything a submit needs, made once.

    A run allocates nothing: structures, handles and the driver's entry points are at hand.
    """

    def __init__(self, handle: DeviceHandle, record: Record, what: str) -> None:
        """Record.

        Args:
            handle: the device.
            record: called with the command buffer, between begin and end.
            what: what is being run, for messages.

        Raises:
            DeviceError: no memory is left.
        """
        api = handle.api
        self._handle = handle
        self._what = what
        self._is_pending = self._is_destroyed = False
        self._pool: Any = None
        self._fence: Any = None
        handle.retain()
        try:
            pool = api.struct("VkCommandPoolCreateInfo", queueFamilyIndex=handle.queue_family)
            create = api.lib.vkCreateCommandPool
            self._pool = api.create(create, "VkCommandPool", handle.device, pool, what)
            commands = self._record(record)
            fence = api.struct("VkFenceCreateInfo")
            create = api.lib.vkCreateFence
            self._fence = api.create(create, "VkFence", handle.device, fence, what)
        except BaseException:
            self.destroy()
            raise
        self._fences = api.array("VkFence", [self._fence])
        self._commands = api.array("VkCommandBuffer", [commands])
        self._info = api.struct(
            "VkSubmitInfo", commandBufferCount=1, pCommandBuffers=self._commands
        )
        self._submit = handle.function("vkQueueSubmit")
        self._wait = handle.function("vkWaitForFences")
        self._reset = handle.function("vkResetFences")

    def _record(self, record: Record) -> Any:
        handle, api = self._handle, self._handle.api
        info = api.struct(
            "VkCommandBufferAllocateInfo", commandPool=self._pool, commandBufferCount=1
        )
        out = api.ffi.new("VkCommandBuffer*")
        api.check(api.lib.vkAllocateCommandBuffers(handle.device, info, out), self._what)
        commands = out[0]
        begin = api.struct("VkCommandBufferBeginInfo")
        api.check(api.lib.vkBeginCommandBuffer(commands, begin), self._what)
        record(commands)
        api.check(api.lib.vkEndCommandBuffer(commands), self._what)
        return commands

    def run(self) -> None:
        """Submit, and wait for the end.

        Raises:
            DeviceError: the device was lost, or took longer than it may.
        """
        handle = self._handle
        if self._is_pending:
            self._settle(handle.timeout_ns)  # an earlier run that took too long
        # Before the submit: interrupted between the two, it must not pass for finished.
        self._is_pending = True
        with handle.queue_lock:
            result = self._submit(handle.queue, 1, self._info, self._fence)
        if result:
            self._is_pending = False
            raise handle.failure(result, self._what)
        self._settle(handle.timeout_ns)

    def _settle(self, patience_ns: int) -> None:
        """Wait for the end of a run, so that its commands may be used again or freed.

        Raises:
            DeviceError: it still runs, or the device was lost.
        """
        handle = self._handle
        result = self._wait(handle.device, 1, self._fences, 1, min(patience_ns, _SLICE_NS))
        while result == TIMEOUT and patience_ns > _SLICE_NS:
            patience_ns -= _SLICE_NS
            result = self._wait(handle.device, 1, self._fences, 1, min(patience_ns, _SLICE_NS))
        if result:
            raise handle.failure(result, self._what)
        self._reset(handle.device, 1, self._fences)
        self._is_pending = False

    def destroy(self) -> bool:
        """Free it; False where the device still runs it, and nothing it uses may be freed."""
        handle, api = self._handle, self._handle.api
        if handle.is_inherited:
            return False
        if self._is_destroyed:
            return True
        if self._is_pending and not handle.is_lost:
            try:
                self._settle(_LATE_NS)
            except DeviceError:
                if not handle.is_lost:
                    return False
        if self._fence is not None:
            api.lib.vkDestroyFence(handle.device, self._fence, api.ffi.NULL)
        if self._pool is not None:
            api.lib.vkDestroyCommandPool(handle.device, self._pool, api.ffi.NULL)
        self._is_destroyed = True
        handle.release()
        return True
