"""CachingDevice: a VulkanDevice whose compiled pipelines are kept in a file."""

from __future__ import annotations

import hashlib
import logging
import os
import threading

from tflite_vk.device_info import DeviceInfo
from tflite_vk.errors import DeviceError
from tflite_vk.program import MemoryPlan, Program
from tflite_vk.runtime.cache import CacheFile, CacheKey
from tflite_vk.runtime.vulkan.device import VulkanDevice
from tflite_vk.runtime.vulkan.executable import VulkanExecutable

logger = logging.getLogger("tflite_vk")


class CachingDevice:
    """The same device, with one more place for its pipelines.

    The pipelines are the device's: every file holds what all its models have compiled so far.
    """

    dispatcher = "vulkan"

    def __init__(
        self, device: VulkanDevice, folder: str | os.PathLike[str], token: str | None = None
    ) -> None:
        """Read the file into the device's cache, if there is a good one.

        Args:
            device: an open device.
            folder: where the file lies.
            token: name of the file; None shares one between models.
        """
        self.device = device
        self.file = CacheFile(folder, CacheKey.of(device.info), token)
        self._lock = threading.Lock()
        self._digest = b""
        self.is_warm = self._take_in()

    @property
    def info(self) -> DeviceInfo:
        """What was opened."""
        return self.device.info

    def compile(
        self, program: Program, plan: MemoryPlan, *, profiling: bool = False, guard_words: int = 0
    ) -> VulkanExecutable:
        """Make a program ready to run, and keep the pipelines that had to be made for it."""
        before = self.device.pipelines.num_made
        executable = self.device.compile(
            program, plan, profiling=profiling, guard_words=guard_words
        )
        if self.device.pipelines.num_made != before or not self._digest:
            with self._lock:
                self._save()
        return executable

    def _take_in(self) -> bool:
        """Merge the file into the device's cache; False where it holds nothing good or new."""
        data = self.file.load()
        if data is None:
            return False
        digest = hashlib.sha256(data).digest()
        if digest == self._digest:
            return False
        try:
            self.device.pipelines.merge(data)
        except DeviceError as error:
            logger.info("the driver refuses the pipeline cache %s (%s)", self.file.path, error)
            return False
        self._digest = digest
        return True

    def _save(self) -> None:
        self._take_in()  # what another process has written since
        data = self.device.pipelines.cache_data()
        digest = hashlib.sha256(data).digest()
        if digest != self._digest and self.file.save(data):
            self._digest = digest

    def close(self) -> None:
        """Close the device below, and everything made from it."""
        self.device.close()
