from __future__ import annotations

import importlib.metadata

import pytest

from tests.cli.conftest import Run
from tflite_vk.analysis import doctor
from tflite_vk.analysis.doctor import diagnose, missing
from tflite_vk.errors import DeviceError
from tflite_vk.runtime.device import Device


def test_devices_with_limits(cli: Run, device: Device) -> None:
    result = cli("devices", "--json")
    assert result.status == 0
    found = result.json[device.info.index]
    assert found["name"] == device.info.name
    assert found["index"] == device.info.index
    assert found["limits"]["max_storage_buffer_bytes"] >= 1 << 27
    text = cli("devices").out
    assert device.info.name in text
    assert "compiled shaders       yes" in text


@pytest.mark.usefixtures("no_driver")
def test_without_a_driver_the_list_is_empty_and_says_why(cli: Run) -> None:
    result = cli("devices", "--json")
    assert (result.status, result.out) == (0, "[]\n")
    assert "Vulkan driver files: VK_DRIVER_FILES names " in result.err
    assert "which does not exist. What to do: unset VK_DRIVER_FILES or correct it" in result.err
    text = cli("devices")
    assert text.status == 0
    assert "Vulkan devices         NO" in text.out
    assert "No Vulkan device: models can be inspected, and nothing runs on a GPU." in text.out


def test_without_the_package_vulkan(monkeypatch: pytest.MonkeyPatch) -> None:
    def load() -> None:
        raise DeviceError("no") from ImportError("No module named 'vulkan'")

    monkeypatch.setattr(doctor, "load_vulkan", load)
    part = missing(diagnose())
    assert part is not None
    assert part.name == "Python package vulkan"
    assert part.detail == "can't be imported (No module named 'vulkan')"
    assert part.advice == "pip install vulkan, which tflite_vk depends on"


def test_without_a_loader(monkeypatch: pytest.MonkeyPatch) -> None:
    def load() -> None:
        raise DeviceError("no") from OSError("libvulkan.so.1: cannot open shared object file")

    monkeypatch.setattr(doctor, "load_vulkan", load)
    part = missing(diagnose())
    assert part is not None
    assert part.name == "Vulkan loader"
    assert part.advice == "Debian and Ubuntu: apt-get install libvulkan1"


@pytest.mark.usefixtures("no_litert")
def test_without_litert_the_gpu_is_not_missing() -> None:
    parts = {part.name: part for part in diagnose()}
    assert not parts["LiteRT"].is_there
    assert parts["LiteRT"].is_optional
    assert "tflite_vk[litert]" in parts["LiteRT"].advice


def test_versions_are_those_installed() -> None:
    parts = {part.name: part for part in diagnose()}
    assert parts["LiteRT"].detail == importlib.metadata.version("ai-edge-litert")
