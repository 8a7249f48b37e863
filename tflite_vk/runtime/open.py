"""Choosing and opening a device."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import logging
import os
import threading
from collections.abc import Iterator, Sequence

from tflite_vk.device_info import DeviceInfo
from tflite_vk.errors import DeviceError, OptionError
from tflite_vk.runtime.device import Device
from tflite_vk.runtime.driver_cache import mesa_cache_in
from tflite_vk.runtime.vulkan.features import without_enabling
from tflite_vk.runtime.vulkan.probe import (
    INSTALL_HINT,
    devices_of,
    instance,
    load_vulkan,
    probe,
)

logger = logging.getLogger("tflite_vk")

_PREFERENCE = ("discrete", "integrated", "virtual", "other", "cpu")

_found: list[DeviceInfo] = []
_open_devices: dict[tuple[int, str], Device] = {}
_lock = threading.Lock()


_inherited: list[Device] = []
"""Devices of the process this one was forked from: kept alive and never touched, since freeing
them would free what the parent still uses."""


def _forget_devices() -> None:
    global _lock  # noqa: PLW0603
    _lock = threading.Lock()  # another thread of the parent may have held the old one
    _inherited.extend(_open_devices.values())
    _open_devices.clear()


os.register_at_fork(after_in_child=_forget_devices)


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

        # Kompute switches no features on, so kernels must not count on any.
        return KomputeDevice(dataclasses.replace(info, features=without_enabling(info.features)))
    from tflite_vk.runtime.vulkan.device import VulkanDevice

    return VulkanDevice(info)


def _open_once(info: DeviceInfo, dispatcher: str) -> Device:
    key = (info.index, dispatcher)
    if key not in _open_devices or getattr(_open_devices[key], "is_closed", False):
        _open_devices[key] = _open(info, dispatcher)
    return _open_devices[key]


@functools.cache
def _has_kompute() -> bool:
    from tflite_vk.runtime.kompute import load_kp

    try:
        load_kp()
    except DeviceError:
        return False
    return True


@contextlib.contextmanager
def _drivers_loaded() -> Iterator[None]:
    """Find devices, and keep drivers loaded until one is open: they take their time to start.

    So drivers are asked once a process; `devices` asks them anew.
    """
    if _open_devices and _found:
        yield
        return
    vk = load_vulkan()
    with instance(vk) as handle:
        _found[:] = _found or devices_of(vk, handle)
        yield


def open_device(
    wanted: int | str | None = None,
    dispatcher: str = "auto",
    *,
    cache_dir: str | os.PathLike[str] | None = None,
    model_token: str | None = None,
) -> Device:
    """Open a device, once a process for each dispatcher.

    Args:
        wanted: as for `choose`.
        dispatcher: "kompute", "vulkan", or "auto": Kompute where it is installed and works.
        cache_dir: folder of pipelines compiled earlier. Kompute keeps none itself; under either
            dispatcher Mesa's own cache goes there, where this process opens a device first.
        model_token: name of the file in it, for one file a model; None shares one.

    Raises:
        DeviceError: nothing to open, or opening failed, or this process was forked from one with
            an open device; says what to install or do.
        OptionError: the option names no device or dispatcher.
    """
    if dispatcher not in ("auto", "kompute", "vulkan"):
        raise OptionError(f"dispatcher {dispatcher!r} is unknown; choose kompute, vulkan or auto")
    if _inherited:
        # A second device works for a while on lavapipe, and the process then crashes or hangs.
        raise DeviceError(
            "this process is a fork of one that had opened a Vulkan device, and drivers don't "
            'survive that; start it with multiprocessing\'s "spawn" method, or open devices in '
            "the forked processes only"
        )
    with _lock, mesa_cache_in(cache_dir), _drivers_loaded():
        device = _open_chosen(choose(_found, wanted), dispatcher)
    if cache_dir is None or device.dispatcher != "vulkan":
        return device
    from tflite_vk.runtime.vulkan.caching import CachingDevice
    from tflite_vk.runtime.vulkan.device import VulkanDevice

    assert isinstance(device, VulkanDevice)
    return CachingDevice(device, cache_dir, model_token)


def import_dispatcher(dispatcher: str) -> None:
    """Import what `open_device` needs of this package, while another thread waits for a driver."""
    if dispatcher == "vulkan" or (dispatcher == "auto" and not _has_kompute()):
        import tflite_vk.runtime.vulkan.device  # noqa: F401


@contextlib.contextmanager
def open_scratch(device: Device) -> Iterator[Device]:
    """The same device opened again, for work that shall leave nothing behind; closed on leaving.

    Raises:
        DeviceError: it can't be opened again.
    """
    if device.dispatcher not in ("kompute", "vulkan"):
        yield device
        return
    scratch = _open(device.info, device.dispatcher)
    try:
        yield scratch
    finally:
        scratch.close()


def _open_chosen(info: DeviceInfo, dispatcher: str) -> Device:
    if dispatcher != "auto":
        return _open_once(info, dispatcher)
    if not _has_kompute():
        return _open_once(info, "vulkan")
    try:
        return _open_once(info, "kompute")
    except DeviceError as error:
        logger.warning("Kompute is installed but fails (%s); Vulkan is used directly", error)
        return _open_once(info, "vulkan")
