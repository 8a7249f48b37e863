"""Descriptor sets: the buffers of each dispatch, bound at their offsets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tflite_vk.runtime.vulkan.handle import DeviceHandle

_STORAGE_BUFFER = 7

Range = tuple[Any, int, int]
"""A VkBuffer, first byte and number of bytes."""


class Descriptors:
    """Every descriptor set of a program, from one pool of just their size."""

    def __init__(self, handle: DeviceHandle, wanted: Sequence[tuple[Any, Sequence[Range]]]) -> None:
        """Make and write them.

        Args:
            handle: the device.
            wanted: VkDescriptorSetLayout and buffers of each set, binding 0 first; at least one.

        Raises:
            DeviceError: no memory is left.
        """
        api = handle.api
        self._handle = handle
        what = f"making {len(wanted)} descriptor sets"
        size = api.struct(
            "VkDescriptorPoolSize",
            type=_STORAGE_BUFFER,
            descriptorCount=sum(len(ranges) for _, ranges in wanted),
        )
        info = api.struct(
            "VkDescriptorPoolCreateInfo", maxSets=len(wanted), poolSizeCount=1, pPoolSizes=size
        )
        create = api.lib.vkCreateDescriptorPool
        self._pool = api.create(create, "VkDescriptorPool", handle.device, info, what)
        try:
            layouts = api.array("VkDescriptorSetLayout", [layout for layout, _ in wanted])
            info = api.struct(
                "VkDescriptorSetAllocateInfo",
                descriptorPool=self._pool,
                descriptorSetCount=len(wanted),
                pSetLayouts=layouts,
            )
            self.sets = api.ffi.new("VkDescriptorSet[]", len(wanted))
            api.check(api.lib.vkAllocateDescriptorSets(handle.device, info, self.sets), what)
        except BaseException:
            self.destroy()
            raise
        self._write([ranges for _, ranges in wanted])

    def _write(self, wanted: Sequence[Sequence[Range]]) -> None:
        api = self._handle.api
        kept = []
        writes = api.ffi.new("VkWriteDescriptorSet[]", len(wanted))
        for write, target, ranges in zip(writes, self.sets, wanted, strict=True):
            buffers = api.ffi.new("VkDescriptorBufferInfo[]", len(ranges))
            for info, (buffer, offset, size) in zip(buffers, ranges, strict=True):
                info.buffer, info.offset, info.range = buffer, offset, size
            kept.append(buffers)
            write.sType = api.vk.VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET
            write.dstSet, write.descriptorCount = target, len(ranges)
            write.descriptorType, write.pBufferInfo = _STORAGE_BUFFER, buffers
        api.lib.vkUpdateDescriptorSets(self._handle.device, len(wanted), writes, 0, api.ffi.NULL)

    def destroy(self) -> None:
        """Free them all."""
        api = self._handle.api
        api.lib.vkDestroyDescriptorPool(self._handle.device, self._pool, api.ffi.NULL)
