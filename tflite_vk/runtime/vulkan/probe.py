"""What Vulkan devices this machine has, with their limits and features."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from tflite_vk.device_info import DeviceInfo, DeviceLimits, DeviceType
from tflite_vk.errors import DeviceError

_TYPES: dict[int, DeviceType] = {1: "integrated", 2: "discrete", 3: "virtual", 4: "cpu"}

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
        pApplicationName="tflite_vk", pEngineName="tflite_vk", apiVersion=vk.VK_MAKE_VERSION(1, 1, 0)
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


def _features(vk: Any, device: Any) -> frozenset[str]:
    """Names of core features that are on, and of the extensions kernels may use."""
    core = vk.vkGetPhysicalDeviceFeatures(device)
    names = {n for n in ("shaderInt16", "shaderInt64", "shaderFloat64") if getattr(core, n)}
    extensions = {
        _text(vk, e.extensionName) for e in vk.vkEnumerateDeviceExtensionProperties(device, None)
    }
    wanted = {
        "VK_KHR_16bit_storage",
        "VK_KHR_8bit_storage",
        "VK_KHR_shader_float16_int8",
        "VK_KHR_shader_integer_dot_product",
        "VK_KHR_cooperative_matrix",
        "VK_KHR_timeline_semaphore",
        "VK_EXT_subgroup_size_control",
    }
    return frozenset(names | (extensions & wanted))


def describe(vk: Any, device: Any, index: int) -> DeviceInfo:
    """DeviceInfo of a physical device."""
    subgroup = vk.VkPhysicalDeviceSubgroupProperties()
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
        driver_version=p.driverVersion,
        api_version=f"{v >> 22 & 0x7F}.{v >> 12 & 0x3FF}.{v & 0xFFF}",
        uuid=bytes(p.pipelineCacheUUID).hex(),
        limits=limits,
        features=_features(vk, device),
    )


def physical_devices(vk: Any, handle: Any) -> list[Any]:
    """Physical devices of an instance, in the driver's order; empty where there are none."""
    try:
        return list(vk.vkEnumeratePhysicalDevices(handle))
    except Exception:  # VK_ERROR_INITIALIZATION_FAILED is what a loader without drivers says
        return []


def probe() -> list[DeviceInfo]:
    """Every Vulkan device.

    Raises:
        DeviceError: package, loader or driver is missing; says which, and what to install.
    """
    vk = load_vulkan()
    with instance(vk) as handle:
        return [describe(vk, d, i) for i, d in enumerate(physical_devices(vk, handle))]
