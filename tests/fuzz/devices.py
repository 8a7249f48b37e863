"""One device in several shapes: kernels and tiles are chosen by a device's kind and limits."""

from __future__ import annotations

import functools
from dataclasses import replace

from tflite_vk.device_info import DeviceInfo, DeviceLimits
from tflite_vk.runtime.device import Device


@functools.cache
def variants(device: Device) -> dict[str, Device]:
    """The device as it is, as a GPU where it is none, and with the least workgroups of Vulkan 1.1.

    The same driver runs all of them; only lowering is told another story.
    """
    found = {"itself": device}
    if device.info.is_software:
        found["as a GPU"] = open_as(device, replace(device.info, type="discrete"))
    least = DeviceLimits()
    limits = replace(
        device.info.limits,
        max_workgroup_invocations=least.max_workgroup_invocations,
        max_workgroup_size=least.max_workgroup_size,
        shared_memory_bytes=least.shared_memory_bytes,
        max_workgroup_count=(13, 65535, 65535),
    )
    found["least limits"] = open_as(device, replace(device.info, limits=limits))
    return found


def open_as(device: Device, info: DeviceInfo) -> Device:
    """A second device of the same dispatcher, of which lowering is told something else."""
    if device.dispatcher == "kompute":
        from tflite_vk.runtime.kompute import KomputeDevice

        return KomputeDevice(info)
    from tflite_vk.runtime.vulkan.device import VulkanDevice

    return VulkanDevice(info)
