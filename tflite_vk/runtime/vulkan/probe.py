"""What Vulkan devices this machine has, with their limits and features."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from tflite_vk.device_info import DeviceInfo, DeviceLimits, DeviceType
from tflite_vk.errors import DeviceError
from tflite_vk.runtime.vulkan.features import available_features, subgroup_features

_TYPES: dict[int, DeviceType] = {1: "integrated", 2: "discrete", 3: "virtual", 4: "cpu"}

_VULKAN_1_1 = 1 << 22 | 1 << 12

INSTALL_HINT = (
    "install a Vulkan driver and loader (Debian and Ubuntu: `apt-get install libvulkan1 "
    "mesa-vulkan-drivers`; NVIDIA: the driver's own package), then run `tflite-vk devices`"
)


def load_vulkan() -> Any:
    """The `vulkan` module.

    Raises:
        DeviceError: the package or the Vulkan loader (libvulkan.so.1) is missing.
    """
    try:
        import vulkan
    except ImportError as error:
        raise DeviceError(
            f"the Python package `vulkan` can't be imported ({error}); `pip install vulkan`"
        ) from error
    except OSError as error:
        raise DeviceError(
            f"no Vulkan loader (libvulkan.so.1) on this machine ({error}); {INSTALL_HINT}"
        ) from error
    return vulkan


def vulkan_error_name(error: BaseException) -> str:
    """Short name of an exception of the `vulkan` package, such as VkErrorDeviceLost."""
    return type(error).__name__


@contextlib.contextmanager
def instance(vk: Any, extensions: tuple[str, ...] = ()) -> Iterator[Any]:
    """A Vulkan 1.1 instance, destroyed on leaving.

    Raises:
        DeviceError: no driver could be loaded, or the loader is too old.
    """
    handle = create_instance(vk, extensions)
    try:
        yield handle
    finally:
        vk.vkDestroyInstance(handle, None)


def create_instance(vk: Any, extensions: tuple[str, ...] = ()) -> Any:
    """A Vulkan 1.1 instance that the caller destroys.

    Raises:
        DeviceError: no driver could be loaded, or the loader is too old.
    """
    application = vk.VkApplicationInfo(
        pApplicationName="tflite_vk",
        pEngineName="tflite_vk",
        apiVersion=vk.VK_MAKE_VERSION(1, 1, 0),
    )
    info = vk.VkInstanceCreateInfo(
        pApplicationInfo=application, ppEnabledExtensionNames=list(extensions)
    )
    try:
        return vk.vkCreateInstance(info, None)
    except Exception as error:  # the package has one class per VkResult, without a useful base
        raise DeviceError(
            f"vkCreateInstance failed ({vulkan_error_name(error)}): no driver could be loaded; "
            f"{INSTALL_HINT}"
        ) from error


def _text(vk: Any, chars: Any) -> str:
    return chars if isinstance(chars, str) else vk.ffi.string(chars).decode(errors="replace")


def _extensions(vk: Any, device: Any) -> frozenset[str]:
    found = vk.vkEnumerateDeviceExtensionProperties(device, None)
    return frozenset(_text(vk, e.extensionName) for e in found)


def is_usable(vk: Any, device: Any) -> bool:
    """False for a device of Vulkan 1.0, which the shaders (SPIR-V 1.3) are too new for."""
    properties = vk.ffi.new("VkPhysicalDeviceProperties*")
    vk.lib.vkGetPhysicalDeviceProperties(device, properties)
    return bool(properties.apiVersion >= _VULKAN_1_1)


def describe(vk: Any, device: Any, index: int) -> DeviceInfo:
    """DeviceInfo of a physical device of Vulkan 1.1 or newer."""
    extensions = _extensions(vk, device)
    # An unknown structure would be skipped by the driver, but the layer complains of it.
    driver = vk.VkPhysicalDeviceDriverProperties()
    subgroup = vk.VkPhysicalDeviceSubgroupProperties(
        pNext=driver if "VK_KHR_driver_properties" in extensions else None
    )
    maintenance = vk.VkPhysicalDeviceMaintenance3Properties(pNext=subgroup)
    wrapped = vk.VkPhysicalDeviceProperties2(pNext=maintenance)
    vk.vkGetPhysicalDeviceProperties2(device, wrapped)
    p = wrapped.properties
    raw = p.limits
    limits = DeviceLimits(
        max_workgroup_invocations=raw.maxComputeWorkGroupInvocations,
        max_workgroup_size=tuple(raw.maxComputeWorkGroupSize),
        max_workgroup_count=tuple(raw.maxComputeWorkGroupCount),
        shared_memory_bytes=raw.maxComputeSharedMemorySize,
        max_storage_buffer_bytes=raw.maxStorageBufferRange,
        max_push_constant_bytes=raw.maxPushConstantsSize,
        max_storage_buffers=raw.maxPerStageDescriptorStorageBuffers,
        max_memory_allocation_bytes=maintenance.maxMemoryAllocationSize,
        subgroup_size=max(1, subgroup.subgroupSize),
        storage_buffer_offset_alignment=raw.minStorageBufferOffsetAlignment,
    )
    v = p.apiVersion
    return DeviceInfo(
        index=index,
        name=_text(vk, p.deviceName),
        type=_TYPES.get(p.deviceType, "other"),
        vendor_id=p.vendorID,
        device_id=p.deviceID,
        driver_name=_text(vk, driver.driverName),
        driver_version=p.driverVersion,
        api_version=f"{v >> 22 & 0x7F}.{v >> 12 & 0x3FF}.{v & 0xFFF}",
        uuid=bytes(p.pipelineCacheUUID).hex(),
        limits=limits,
        timestamp_ns=raw.timestampPeriod,
        features=available_features(vk, device, extensions)
        | frozenset(subgroup_features(subgroup)),
    )


def physical_devices(vk: Any, handle: Any) -> list[Any]:
    """Physical devices of an instance, in the driver's order; empty where there are none."""
    try:
        return list(vk.vkEnumeratePhysicalDevices(handle))
    except Exception:  # VK_ERROR_INITIALIZATION_FAILED is what a loader without drivers says
        return []


def probe() -> list[DeviceInfo]:
    """Every device of Vulkan 1.1 or newer, numbered as the driver numbers all of them.

    Raises:
        DeviceError: package, loader or driver is missing; says which, and what to install.
    """
    vk = load_vulkan()
    with instance(vk) as handle:
        return devices_of(vk, handle)


def devices_of(vk: Any, handle: Any) -> list[DeviceInfo]:
    """The same of an instance that is there already: making one takes a driver its time."""
    found = enumerate(physical_devices(vk, handle))
    return [describe(vk, d, i) for i, d in found if is_usable(vk, d)]
