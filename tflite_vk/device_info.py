"""What a Vulkan device is and can do, as plain data that lowering may read."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

DeviceType = Literal["discrete", "integrated", "virtual", "cpu", "other"]


@dataclass(frozen=True)
class DeviceLimits:
    """Vulkan limits a lowering must respect. Defaults are the least that Vulkan 1.1 promises.

    Source: Vulkan specification, table "Required Limits".
    """

    max_workgroup_invocations: int = 128
    max_workgroup_size: tuple[int, int, int] = (128, 128, 64)
    max_workgroup_count: tuple[int, int, int] = (65535, 65535, 65535)
    shared_memory_bytes: int = 16384
    max_storage_buffer_bytes: int = 1 << 27
    max_push_constant_bytes: int = 128
    max_storage_buffers: int = 4
    max_memory_allocation_bytes: int = 1 << 30
    subgroup_size: int = 1
    storage_buffer_offset_alignment: int = 256


@dataclass(frozen=True)
class DeviceInfo:
    """One Vulkan physical device.

    Attributes:
        index: position in `tflite_vk.devices()`, and in the driver's enumeration.
        name: the driver's name for it.
        type: what kind; "cpu" is a software driver.
        vendor_id: PCI vendor.
        device_id: PCI device.
        driver_name: such as "llvmpipe" or "NVIDIA"; empty where the driver doesn't tell.
        driver_version: vendor's own encoding.
        api_version: "major.minor.patch".
        uuid: pipeline cache UUID, hexadecimal; changes with driver or device.
        limits: see DeviceLimits.
        timestamp_ns: nanoseconds of one tick of its timestamps.
        features: names of optional features the device has (Vulkan's spelling).
    """

    index: int
    name: str
    type: DeviceType
    vendor_id: int = 0
    device_id: int = 0
    driver_name: str = ""
    driver_version: int = 0
    api_version: str = "1.1.0"
    uuid: str = ""
    limits: DeviceLimits = DeviceLimits()
    timestamp_ns: float = 1.0
    features: frozenset[str] = frozenset()

    @property
    def is_software(self) -> bool:
        """True for a driver that computes on the CPU (lavapipe, SwiftShader)."""
        return self.type == "cpu"

    def to_dict(self) -> dict[str, object]:
        """Plain data for JSON."""
        return {**asdict(self), "features": sorted(self.features)}
