"""Device memory: which type suits what, and a buffer with memory of its own."""

from __future__ import annotations

import contextlib
import functools
import gc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tflite_vk.errors import DeviceError, OptionError
from tflite_vk.program import BufferKind, Words
from tflite_vk.runtime.vulkan.api import OUT_OF_MEMORY, VulkanCallError
from tflite_vk.runtime.vulkan.handle import DeviceHandle

DEVICE_LOCAL = 1
HOST_COHERENT = 2 | 4  # visible and coherent: every device has a type with both
HOST_CACHED = 8

HOST_KINDS: tuple[BufferKind, ...] = ("input", "output", "state")
"""Kinds of buffers that the host reads or writes at each run."""

STAGED_KINDS: tuple[BufferKind, ...] = (*HOST_KINDS, "constant")
"""Kinds of buffers that may have to be copied, since the host doesn't see what shaders use."""

STAGING_VARIABLE = "TFLITE_VK_FORCE_STAGING"
"""Environment variable, for tests and measurements; see `staged_kinds`."""

DEVICE_MEMORY = (DEVICE_LOCAL, 0)
"""Flags for what only the device touches, the most wanted first."""

_STORAGE_AND_COPIES = 0x20 | 0x2 | 0x1


@dataclass(frozen=True)
class HostAccess:
    """How the host reaches the buffers of one kind.

    Attributes:
        direct: flags of memory that shaders use and the host sees; None to keep the two apart.
        staging: flags for the host's copy where they are apart, the most wanted first.
    """

    direct: int | None
    staging: tuple[int, ...]


def staged_kinds(text: str | None) -> frozenset[BufferKind]:
    """Kinds of buffers that are copied even where they needn't be, as an environment names them.

    Args:
        text: "1" for all of them, "0" or nothing for none, or kinds such as "input,output".

    Raises:
        OptionError: it names something else.
    """
    names = {"1": list(STAGED_KINDS), "0": []}.get(text or "0", (text or "").split(","))
    unknown = [name for name in names if name not in STAGED_KINDS]
    if unknown:
        raise OptionError(
            f"{STAGING_VARIABLE} is {text!r} (allowed: 0, 1, or some of {', '.join(STAGED_KINDS)}, "
            "with commas between)"
        )
    return frozenset(kind for kind in STAGED_KINDS if kind in names)


def choose_host_access(
    flags: Sequence[int], kind: BufferKind, *, is_staged: bool = False
) -> HostAccess:
    """How the host should reach inputs, outputs or states.

    Memory that is the device's and visible to the host needs no copies. Outputs are an exception
    where the host doesn't cache such memory, as across PCIe: each read then takes a microsecond,
    and a copy by the device into cached host memory is faster.

    Args:
        flags: property flags of each memory type.
        kind: "input", "output" or "state".
        is_staged: copy even where it isn't needed.
    """
    staging = (HOST_COHERENT,) if kind == "input" else (HOST_COHERENT | HOST_CACHED, HOST_COHERENT)
    shared = [f for f in flags if f & DEVICE_LOCAL and f & HOST_COHERENT == HOST_COHERENT]
    if is_staged or not shared:
        return HostAccess(None, staging)
    direct = DEVICE_LOCAL | HOST_COHERENT
    if kind == "output":
        if any(f & HOST_CACHED for f in shared):
            return HostAccess(direct | HOST_CACHED, staging)
        if any(f & staging[0] == staging[0] for f in flags):
            return HostAccess(None, staging)
    return HostAccess(direct, staging)


def _free(handle: DeviceHandle, memory: Any, _: Any = None) -> None:
    if not handle.is_inherited:
        handle.api.lib.vkFreeMemory(handle.device, memory, handle.api.ffi.NULL)
    handle.release()


class DeviceBuffer:
    """A VkBuffer with memory of its own.

    Attributes:
        buffer: the VkBuffer.
        size: in bytes.
        words: what it holds, where it stays mapped. The memory lives as long as this array or any
            view of it, so that a view kept too long reads old values and doesn't crash.
        is_visible: the host can write to its memory, mapped or not.
    """

    def __init__(
        self, handle: DeviceHandle, size: int, flags: Sequence[int], *, is_mapped: bool, what: str
    ) -> None:
        """Make one.

        Args:
            handle: the device.
            size: in bytes.
            flags: memory property flags, the most wanted first.
            is_mapped: the host looks into it.
            what: what it is for, for messages.

        Raises:
            DeviceError: no memory is left, or none has any of the flags.
        """
        api = handle.api
        self._handle = handle
        self.size = size
        self.words: Words | None = None
        self.is_visible = False
        self._memory: Any = None
        info = api.struct("VkBufferCreateInfo", size=size, usage=_STORAGE_AND_COPIES)
        what = f"making {what} of {size} bytes"
        self.buffer = _create(handle, api.lib.vkCreateBuffer, "VkBuffer", info, what)
        handle.retain()
        try:
            self._memory = self._allocate(flags, what)
            bind = api.lib.vkBindBufferMemory
            api.check(bind(handle.device, self.buffer, self._memory, 0), what)
            if is_mapped:
                self.words = self._map(what)
        except BaseException:
            self.destroy()
            raise

    def _allocate(self, flags: Sequence[int], what: str) -> Any:
        handle, api = self._handle, self._handle.api
        needs = api.ffi.new("VkMemoryRequirements*")
        api.lib.vkGetBufferMemoryRequirements(handle.device, self.buffer, needs)
        index = _find_type(handle, needs.memoryTypeBits, flags)
        if index is None:
            raise DeviceError(f"{what} failed: no memory type has flags {list(flags)}")
        self.is_visible = handle.memory_flags[index] & HOST_COHERENT == HOST_COHERENT
        info = api.struct("VkMemoryAllocateInfo", allocationSize=needs.size, memoryTypeIndex=index)
        return _create(handle, api.lib.vkAllocateMemory, "VkDeviceMemory", info, what)

    def _address(self, what: str) -> Any:
        """Map all of it."""
        handle, ffi = self._handle, self._handle.api.ffi
        out = ffi.new("void**")
        result = handle.api.lib.vkMapMemory(
            handle.device, self._memory, 0, ffi.cast("uint64_t", -1), 0, out
        )
        handle.api.check(result, what)
        return out[0]

    def _map(self, what: str) -> Words:
        address = self._address(what)
        # cffi calls the destructor when the pointer is gone, and the array below holds it.
        pointer = self._handle.api.ffi.gc(
            address, functools.partial(_free, self._handle, self._memory)
        )
        self._memory = None
        return self._array(pointer)

    def _array(self, pointer: Any) -> Words:
        return np.frombuffer(self._handle.api.ffi.buffer(pointer, self.size), np.uint32)

    @contextlib.contextmanager
    def mapped(self, what: str) -> Iterator[Words]:
        """Its content, for the time being; for visible memory that doesn't stay mapped.

        What is written is visible to all that is submitted later.

        Args:
            what: what it is for, for messages.

        Raises:
            DeviceError: it can't be mapped.
        """
        address = self._address(what)
        try:
            yield self._array(address)
        finally:
            self._handle.api.lib.vkUnmapMemory(self._handle.device, self._memory)

    def destroy(self) -> None:
        """Free it; mapped memory goes with the last array that looks into it."""
        handle = self._handle
        if self.buffer is None or handle.is_inherited:
            return
        handle.api.lib.vkDestroyBuffer(handle.device, self.buffer, handle.api.ffi.NULL)
        self.buffer = None
        if self.words is None:
            _free(handle, self._memory or handle.api.ffi.NULL)
        self.words = None
        self._memory = None


def _find_type(handle: DeviceHandle, allowed: int, flags: Sequence[int]) -> int | None:
    """The first memory type, in the driver's order, that has the most wanted flags there are."""
    for wanted in flags:
        for index, has in enumerate(handle.memory_flags):
            if has & wanted == wanted and allowed >> index & 1:
                return index
    return None


def _create(handle: DeviceHandle, function: Any, kind: str, info: Any, what: str) -> Any:
    """Make something, and try once more after collecting garbage where memory was short."""
    api = handle.api
    try:
        return api.create(function, kind, handle.device, info, what)
    except VulkanCallError as error:
        if error.result not in OUT_OF_MEMORY:
            raise
        # Executables dropped without close() may hold memory until Python finds their cycles.
        gc.collect()
        return api.create(function, kind, handle.device, info, what)
