"""Every runtime behind the Device protocol, each opened once a process."""

from __future__ import annotations

import os

import pytest

from tflite_vk.errors import DeviceError
from tflite_vk.program import BufferKind
from tflite_vk.runtime.device import Device
from tflite_vk.runtime.null import NullDevice
from tflite_vk.runtime.open import choose, open_device
from tflite_vk.runtime.vulkan.memory import STAGED_KINDS
from tflite_vk.runtime.vulkan.probe import probe

# "mixed" is how memory is used on an NVIDIA GPU: inputs written directly, outputs copied.
STAGED: dict[str, tuple[BufferKind, ...]] = {
    "vulkan-staging": STAGED_KINDS,
    "vulkan-mixed": ("output", "constant"),
}
COMPUTING = ("kompute", "kompute-strict", "vulkan", *STAGED)
_opened: dict[str, Device] = {}


def open_runtime(name: str) -> Device:
    """A runtime by name; skips the test where the machine lacks it, fails where CI requires it."""
    if name not in _opened:
        try:
            _opened[name] = _open(name)
        except DeviceError as error:
            if os.environ.get("TFLITE_VK_REQUIRE_DEVICE") == "1":
                raise
            pytest.skip(f"no {name}: {error}")
    return _opened[name]


def _open(name: str) -> Device:
    wanted = os.environ.get("TFLITE_VK_DEVICE") or None
    if name == "null":
        return NullDevice()
    if name in ("kompute", "vulkan"):
        return open_device(wanted, name)
    info = choose(probe(), wanted)
    if name == "kompute-strict":
        from tflite_vk.runtime.kompute import KomputeDevice

        return KomputeDevice(info, is_strict=True)
    from tflite_vk.runtime.vulkan.device import VulkanDevice

    return VulkanDevice(info, staged=STAGED[name])


@pytest.fixture(params=["null", *COMPUTING])
def runtime(request: pytest.FixtureRequest) -> Device:
    """Every runtime, the null one too."""
    return open_runtime(request.param)


@pytest.fixture(params=COMPUTING)
def computing(request: pytest.FixtureRequest) -> Device:
    """Every runtime that computes."""
    return open_runtime(request.param)


@pytest.fixture(params=["vulkan", *STAGED])
def vulkan(request: pytest.FixtureRequest) -> Device:
    """The Vulkan dispatcher, with memory used directly and with copies."""
    return open_runtime(request.param)
