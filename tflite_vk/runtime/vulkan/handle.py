"""DeviceHandle: instance, logical device and compute queue, alive until the last holder lets go."""

from __future__ import annotations

import math
import os
import threading
from typing import Any

from tflite_vk.device_info import DeviceInfo
from tflite_vk.errors import DeviceError, OptionError
from tflite_vk.runtime.vulkan.api import DEVICE_LOST, TIMEOUT, Api, VulkanCallError
from tflite_vk.runtime.vulkan.features import Feature, feature_chain, wanted_by_library
from tflite_vk.runtime.vulkan.probe import create_instance, describe, physical_devices

TIMEOUT_VARIABLE = "TFLITE_VK_TIMEOUT_S"
"""Environment variable: seconds that one run may take before it counts as hung."""

_TIMEOUT_S = 60.0
# A software driver takes minutes for what a GPU does in a second, and compiles during a run.
_TIMEOUT_SOFTWARE_S = 600.0
_COMPUTE_QUEUE = 2


def timeout_ns(info: DeviceInfo) -> int:
    """How long a run may take, in nanoseconds.

    Raises:
        OptionError: TFLITE_VK_TIMEOUT_S is no positive number.
    """
    text = os.environ.get(TIMEOUT_VARIABLE)
    if not text:
        return int((_TIMEOUT_SOFTWARE_S if info.is_software else _TIMEOUT_S) * 1e9)
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= 1e9:
        raise OptionError(f"{TIMEOUT_VARIABLE} is {text!r}; give a positive number of seconds")
    return max(1, int(seconds * 1e9))


class DeviceHandle:
    """What every Vulkan object of this package belongs to.

    Holders count: the device object, each executable, and each piece of mapped memory that an
    array still looks into. The last one to leave destroys device and instance, so that no order
    of closing or garbage collection uses a device that is gone.

    Attributes:
        api: raw calls.
        info: the device as described, with the limits to respect and the features switched on.
        physical, device, queue: Vulkan handles.
        queue_family: index of the queue's family.
        timestamp_bits: valid bits of a timestamp on that queue; 0 where it has none.
        timestamp_us: microseconds of one timestamp tick.
        memory_flags: property flags of each memory type.
        queue_lock: held while submitting; Vulkan lets one thread at a time use a queue.
        timeout_ns: how long a run may take.
        is_lost: the device was lost; nothing runs on it any more.
    """

    def __init__(self, api: Api, info: DeviceInfo) -> None:
        """Open a device.

        Args:
            api: raw calls.
            info: which one, by its index; its limits may be smaller than the device's.

        Raises:
            DeviceError: it is gone, has no compute queue, or the driver refuses.
        """
        self.api = api
        self.timeout_ns = timeout_ns(info)
        self.is_lost = False
        self.queue_lock = threading.Lock()
        self._holders_lock = threading.RLock()
        self._holders = 1
        self._pid = os.getpid()
        self._name = f"device {info.index} {info.name!r}"
        self._instance = create_instance(api.vk)
        try:
            self.physical = self._find(info)
            self.queue_family, self.timestamp_bits = self._find_queue()
            wanted = wanted_by_library(info.features)
            self.device = self._open(wanted)
        except BaseException:
            api.lib.vkDestroyInstance(self._instance, api.ffi.NULL)
            raise
        self.info = info
        self.enabled = frozenset(f.name for f in wanted)
        queue = api.ffi.new("VkQueue*")
        api.lib.vkGetDeviceQueue(self.device, self.queue_family, 0, queue)
        self.queue = queue[0]
        properties = api.ffi.new("VkPhysicalDeviceProperties*")
        api.lib.vkGetPhysicalDeviceProperties(self.physical, properties)
        self.timestamp_us = properties.limits.timestampPeriod / 1000.0
        self.memory_flags = self._memory_flags()

    def _find(self, info: DeviceInfo) -> Any:
        found = physical_devices(self.api.vk, self._instance)
        if info.index >= len(found):
            raise DeviceError(
                f"{self._name} is gone: the driver now has {len(found)} devices; "
                "see tflite_vk.devices()"
            )
        now = describe(self.api.vk, found[info.index], info.index)
        if now.name != info.name:
            raise DeviceError(f"{self._name} is now {now.name!r}; see tflite_vk.devices()")
        return found[info.index]

    def _find_queue(self) -> tuple[int, int]:
        """Family of the queue to use, and the valid bits of its timestamps."""
        ffi, lib = self.api.ffi, self.api.lib
        count = ffi.new("uint32_t*")
        lib.vkGetPhysicalDeviceQueueFamilyProperties(self.physical, count, ffi.NULL)
        families = ffi.new("VkQueueFamilyProperties[]", count[0])
        lib.vkGetPhysicalDeviceQueueFamilyProperties(self.physical, count, families)
        able = [i for i, f in enumerate(families) if f.queueFlags & _COMPUTE_QUEUE and f.queueCount]
        if not able:
            raise DeviceError(f"{self._name} has no queue for compute; choose another device")
        # The first one, as Kompute does: on some drivers the others are slower or lack timestamps.
        return able[0], families[able[0]].timestampValidBits

    def _open(self, features: list[Feature]) -> Any:
        api = self.api
        priority = api.ffi.new("float[1]", [1.0])
        queue = api.struct(
            "VkDeviceQueueCreateInfo",
            queueFamilyIndex=self.queue_family,
            queueCount=1,
            pQueuePriorities=priority,
        )
        names = sorted({f.extension for f in features if f.extension is not None})
        texts = [api.ffi.new("char[]", name.encode()) for name in names]
        extensions = api.ffi.new("char*[]", texts)
        chain = feature_chain(api.vk, features, enable=True)
        info = api.struct(
            "VkDeviceCreateInfo",
            pNext=chain.core,
            queueCreateInfoCount=1,
            pQueueCreateInfos=queue,
            enabledExtensionCount=len(texts),
            ppEnabledExtensionNames=extensions,
        )
        create = api.lib.vkCreateDevice
        return api.create(create, "VkDevice", self.physical, info, f"opening {self._name}")

    def _memory_flags(self) -> list[int]:
        found = self.api.ffi.new("VkPhysicalDeviceMemoryProperties*")
        self.api.lib.vkGetPhysicalDeviceMemoryProperties(self.physical, found)
        return [found.memoryTypes[i].propertyFlags for i in range(found.memoryTypeCount)]

    def function(self, name: str) -> Any:
        """The driver's own entry point of a device function, without the loader in between."""
        text = self.api.ffi.new("char[]", name.encode())
        address = self.api.lib.vkGetDeviceProcAddr(self.device, text)
        return self.api.ffi.cast(f"PFN_{name}", address)

    def check_usable(self) -> None:
        """Raise unless this process may use the device.

        Raises:
            DeviceError: the process was forked after the device was opened, or it was lost.
        """
        if os.getpid() != self._pid:
            raise DeviceError(
                f"{self._name} was opened by process {self._pid}, of which this one is a fork, and "
                "drivers don't survive that; start it with multiprocessing's \"spawn\" method, or "
                "open devices in the forked processes only"
            )
        if self.is_lost:
            raise DeviceError(f"{self._name} was lost earlier; start the process again")

    @property
    def is_inherited(self) -> bool:
        """True in a process forked after opening, which must touch nothing, not even to free it."""
        return os.getpid() != self._pid

    def failure(self, result: int, what: str) -> DeviceError:
        """The error for a failed submit or wait."""
        if result == TIMEOUT:
            return DeviceError(
                f"{self._name} did not finish {what} within {self.timeout_ns / 1e9:g} s; raise "
                f"{TIMEOUT_VARIABLE} if it needs longer, or use a smaller model or batch"
            )
        if result == DEVICE_LOST:
            self.is_lost = True
            return VulkanCallError(
                f"{self._name} was lost while running {what} (VK_ERROR_DEVICE_LOST): the driver "
                "reset it, often because a dispatch ran too long; start the process again",
                result,
            )
        return VulkanCallError(
            f"{self._name} failed while running {what} ({self.api.name(result)})", result
        )

    def retain(self) -> None:
        """Count one more holder."""
        with self._holders_lock:
            self._holders += 1

    def release(self) -> None:
        """Count one holder less; the last one destroys the device."""
        with self._holders_lock:
            self._holders -= 1
            is_last = self._holders == 0
        if is_last and not self.is_inherited:
            null = self.api.ffi.NULL
            self.api.lib.vkDestroyDevice(self.device, null)
            self.api.lib.vkDestroyInstance(self._instance, null)
