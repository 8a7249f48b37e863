"""Choosing and opening a device."""

from __future__ import annotations

import functools
import threading
from collections.abc import Sequence

from tflite_vk.device_info import DeviceInfo
from tflite_vk.errors import DeviceError, OptionError
from tflite_vk.runtime.device import Device
from tflite_vk.runtime.vulkan.probe import INSTALL_HINT, probe

_PREFERENCE = ("discrete", "integrated", "virtual", "other", "cpu")

_open_devices: dict[tuple[int, str], Device] = {}
_lock = threading.Lock()


def devices() -> list[DeviceInfo]:
    """Every Vulkan device of this machine; empty without a driver or loader. Never raises."""
    try:
        return probe()
    except DeviceError:
        return []


def choose(found: Sequence[DeviceInfo], wanted: int | str | None) -> DeviceInfo:
    """The device an option names, or the best one.

    Args:
        found: what the machine has.
        wanted: index, digits, part of a name (any case), or None for the best: a GPU before a
            software driver, the driver's order among equals.

    Raises:
        DeviceError: no device at all.
        OptionError: none that the option names.
    """
    if not found:
        raise DeviceError(f"no Vulkan device on this machine; {INSTALL_HINT}")
    if wanted is None:
        return min(found, key=lambda d: (_PREFERENCE.index(d.type), d.index))
    names = "; ".join(f"{d.index}: {d.name}" for d in found)
    if isinstance(wanted, int) or wanted.isdigit():
        match = [d for d in found if d.index == int(wanted)]
    else:
        match = [d for d in found if wanted.lower() in d.name.lower()]
    if not match:
        raise OptionError(f"device {wanted!r} is not on this machine; devices: {names}")
    return match[0]


def _open(info: DeviceInfo, dispatcher: str) -> Device:
    # Imported here: neither `kp` nor Vulkan is needed until a device opens.
    if dispatcher == "kompute":
        from tflite_vk.runtime.kompute import KomputeDevice

        return KomputeDevice(info)
    raise OptionError(f"dispatcher {dispatcher!r} is unknown; choose kompute or auto")


@functools.cache
def _has_kompute() -> bool:
    from tflite_vk.runtime.kompute import load_kp

    try:
        load_kp()
    except DeviceError:
        return False
    return True


def open_device(wanted: int | str | None = None, dispatcher: str = "auto") -> Device:
    """Open a device, once a process for each dispatcher.

    Args:
        wanted: as for `choose`.
        dispatcher: "kompute", "vulkan", or "auto": Kompute where it is installed.

    Raises:
        DeviceError: nothing to open, or opening failed; says what to install.
        OptionError: the option names no device or dispatcher.
    """
    if dispatcher == "auto":
        dispatcher = "kompute"
    found = probe()
    info = choose(found, wanted)
    key = (info.index, dispatcher)
    with _lock:
        if key not in _open_devices:
            _open_devices[key] = _open(info, dispatcher)
        return _open_devices[key]
