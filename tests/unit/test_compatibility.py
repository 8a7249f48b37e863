from dataclasses import replace

import pytest

from tflite_vk import compatibility
from tflite_vk.compatibility import QUIRKS, CompatibilityList
from tflite_vk.device_info import DeviceInfo, DeviceLimits
from tflite_vk.errors import DeviceError, OptionError

LIMITS = DeviceLimits(max_storage_buffers=32)
GPU = DeviceInfo(
    1, "NVIDIA H200", "discrete", vendor_id=0x10DE, driver_name="NVIDIA", limits=LIMITS
)
SOFTWARE = DeviceInfo(0, "llvmpipe (LLVM 15)", "cpu", driver_name="llvmpipe", limits=LIMITS)


@pytest.fixture
def machine(monkeypatch):
    monkeypatch.delenv("TFLITE_VK_DEVICE", raising=False)

    def has(*devices):
        monkeypatch.setattr(compatibility, "probe", lambda: list(devices))

    return has


def test_gpu_before_software(machine):
    machine(SOFTWARE, GPU)
    compat = CompatibilityList()
    assert compat.device == GPU
    assert compat.is_delegate_supported_on_this_device
    assert compat.notes == ()
    options = compat.best_options_for_this_device
    assert (options.device, options.precision) == (1, "fp32")


def test_software_driver_is_supported_and_said(machine):
    machine(SOFTWARE)
    compat = CompatibilityList()
    assert compat.is_delegate_supported_on_this_device
    assert "software driver" in compat.notes[0]


def test_device_option_and_environment(machine, monkeypatch):
    machine(SOFTWARE, GPU)
    assert CompatibilityList("llvm").device == SOFTWARE
    monkeypatch.setenv("TFLITE_VK_DEVICE", "0")
    assert CompatibilityList().device == SOFTWARE


def test_no_device(machine):
    machine()
    compat = CompatibilityList()
    assert compat.device is None
    assert not compat.is_delegate_supported_on_this_device
    assert "no Vulkan device" in compat.notes[0]
    with pytest.raises(DeviceError, match="not supported here: no Vulkan device"):
        _ = compat.best_options_for_this_device


def test_no_loader(monkeypatch):
    def failing():
        raise DeviceError("no Vulkan loader")

    monkeypatch.setattr(compatibility, "probe", failing)
    assert CompatibilityList().notes == ("no Vulkan loader",)


def test_device_that_is_not_there(machine):
    machine(GPU)
    compat = CompatibilityList("Radeon")
    assert not compat.is_delegate_supported_on_this_device
    assert "NVIDIA H200" in compat.notes[0]
    with pytest.raises(OptionError):
        CompatibilityList(-1)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"limits": DeviceLimits()}, "StorageBuffers is 4"),
        ({"limits": replace(LIMITS, max_push_constant_bytes=64)}, "maxPushConstantsSize is 64"),
        ({"limits": replace(LIMITS, max_workgroup_invocations=64)}, "Invocations is 64"),
        ({"limits": replace(LIMITS, shared_memory_bytes=1024)}, "SharedMemorySize is 1024"),
        ({"api_version": "1.0.3"}, "Vulkan 1.0.3"),
    ],
)
def test_limits(machine, change, text):
    machine(replace(GPU, **change))
    compat = CompatibilityList()
    assert not compat.is_delegate_supported_on_this_device
    assert text in compat.notes[0]


def test_quirks_name_where_they_were_seen(machine):
    assert all("#" in q.note for q in QUIRKS)
    machine(DeviceInfo(0, "Adreno (TM) 740", "integrated", limits=LIMITS))
    compat = CompatibilityList()
    assert compat.is_delegate_supported_on_this_device
    assert "executorch#22327" in compat.notes[0]
    machine(GPU)
    assert CompatibilityList().notes == ()
