"""CompatibilityList: whether this machine's device can be used, and with which options.

TFLite's class of that name asks a database of phones. Here the device itself is asked, and a short
list of known trouble is gone through. An entry names where it was seen; none is a guess.
"""

from __future__ import annotations

from dataclasses import dataclass

from tflite_vk.device_info import DeviceInfo, DeviceLimits
from tflite_vk.errors import DeviceError, OptionError
from tflite_vk.options import DelegateOptions
from tflite_vk.runtime.open import choose
from tflite_vk.runtime.vulkan.probe import probe
from tflite_vk.shader_library import shader_info, shader_names


@dataclass(frozen=True)
class Quirk:
    """Known trouble with a kind of device.

    Attributes:
        name: part of the device's or driver's name, any case; empty for any.
        vendor_id: PCI vendor, 0 for any.
        note: what happens and where it was seen.
        is_fatal: True where results are not to be trusted.
    """

    name: str
    note: str
    vendor_id: int = 0
    is_fatal: bool = False

    def matches(self, info: DeviceInfo) -> bool:
        """True where a device is of the kind."""
        names = f"{info.name}\n{info.driver_name}".lower()
        return self.name.lower() in names and self.vendor_id in (0, info.vendor_id)


QUIRKS = (
    Quirk(
        "PowerVR",
        "another delegate reported all-zero outputs on PowerVR with an old driver "
        "(pytorch/executorch#17299); compare a model with `tflite-vk compare` first",
    ),
    Quirk(
        "Adreno",
        "another delegate reported large fp32 matrix products that differ from run to run on "
        "Adreno (pytorch/executorch#22327); compare a model with `tflite-vk compare` first",
    ),
    Quirk(
        "SwiftShader",
        "another delegate reported wrong softmax on SwiftShader from kernels with several shared "
        "arrays (pytorch/executorch#14732); compare a model with `tflite-vk compare` first",
    ),
)
"""Trouble that peers reported and that is cheap to check for; see each entry's reference."""

_LEAST = DeviceLimits()


class CompatibilityList:
    """What `DelegateOptions.device` would open on this machine, looked at but not opened.

    Example:
        compat = tflite_vk.CompatibilityList()
        if compat.is_delegate_supported_on_this_device:
            delegate = tflite_vk.VulkanDelegate(compat.best_options_for_this_device)

    Attributes:
        device: what was found, None without one.
        notes: what to know about it, and why it is not supported where it is not.
    """

    def __init__(self, device: int | str | None = None) -> None:
        """Look at a device.

        Args:
            device: as in DelegateOptions.

        Raises:
            OptionError: the value means nothing; a device that is not there is no error but not
                supported.
        """
        self._options = DelegateOptions(device=device)
        self.device: DeviceInfo | None = None
        self._is_supported = False
        try:
            self.device = choose(probe(), self._options.device)
        except (DeviceError, OptionError) as error:
            self.notes: tuple[str, ...] = (str(error),)
            return
        missing = _missing(self.device)
        quirks = [q for q in QUIRKS if q.matches(self.device)]
        self._is_supported = not missing and not any(q.is_fatal for q in quirks)
        self.notes = (*missing, *(q.note for q in quirks), *_speed_notes(self.device))

    @property
    def is_delegate_supported_on_this_device(self) -> bool:
        """True where models run on the device with right results, as far as is known.

        A software driver counts: it computes right, if slower than TFLite's own CPU kernels.
        """
        return self._is_supported

    @property
    def best_options_for_this_device(self) -> DelegateOptions:
        """Options that name the device; everything else stays at its default, fp32 above all.

        Raises:
            DeviceError: no device is supported; says why.
        """
        if self.device is None or not self._is_supported:
            raise DeviceError("the delegate is not supported here: " + "; ".join(self.notes))
        return DelegateOptions(device=self.device.index)


def _missing(info: DeviceInfo) -> tuple[str, ...]:
    """Limits below what the kernels need: what Vulkan promises, and more storage buffers."""
    limits = info.limits
    bindings = max(shader_info(name).bindings for name in shader_names())
    checks = (
        ("maxPerStageDescriptorStorageBuffers", limits.max_storage_buffers, bindings),
        ("maxPushConstantsSize", limits.max_push_constant_bytes, _LEAST.max_push_constant_bytes),
        (
            "maxComputeWorkGroupInvocations",
            limits.max_workgroup_invocations,
            _LEAST.max_workgroup_invocations,
        ),
        ("maxComputeSharedMemorySize", limits.shared_memory_bytes, _LEAST.shared_memory_bytes),
        ("maxStorageBufferRange", limits.max_storage_buffer_bytes, _LEAST.max_storage_buffer_bytes),
    )
    below = tuple(
        f"{info.name}: {name} is {value} (at least {least} needed)"
        for name, value, least in checks
        if value < least
    )
    major, minor = (int(part) for part in info.api_version.split(".")[:2])
    if (major, minor) < (1, 1):
        below += (
            f"{info.name}: Vulkan {info.api_version} (at least 1.1 needed); update its driver",
        )
    return below


def _speed_notes(info: DeviceInfo) -> tuple[str, ...]:
    if not info.is_software:
        return ()
    return (
        f"{info.name} is a software driver that computes on the CPU: results are right, but "
        "TFLite's own CPU kernels are faster",
    )
