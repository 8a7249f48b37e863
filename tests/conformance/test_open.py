"""Which dispatcher opens: the one asked for, or Kompute where it works, else Vulkan itself."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from tests.conformance.conftest import open_runtime
from tflite_vk.device_info import DeviceInfo
from tflite_vk.errors import DeviceError, OptionError
from tflite_vk.runtime import open as opening
from tflite_vk.runtime.vulkan.features import without_enabling
from tflite_vk.runtime.vulkan.probe import probe


@pytest.fixture
def info(monkeypatch: pytest.MonkeyPatch) -> DeviceInfo:
    """The device under test, with nothing opened yet."""
    found = open_runtime("vulkan").info
    monkeypatch.setattr(opening, "_open_devices", {})
    return found


def test_auto_is_kompute_where_installed(info: DeviceInfo) -> None:
    open_runtime("kompute")
    assert opening.open_device(info.index).dispatcher == "kompute"


def test_auto_without_kompute(info: DeviceInfo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "_has_kompute", lambda: False)
    assert opening.open_device(info.index).dispatcher == "vulkan"
    with pytest.raises(DeviceError, match=r"no kp here|Kompute"):
        monkeypatch.setattr("tflite_vk.runtime.kompute.load_kp", _fail)
        opening.open_device(info.index, "kompute")


def _fail() -> Any:
    raise DeviceError("no kp here")


def test_auto_where_kompute_fails(
    info: DeviceInfo, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise DeviceError("the self-test failed")

    monkeypatch.setattr(opening, "_has_kompute", lambda: True)
    monkeypatch.setattr("tflite_vk.runtime.kompute.KomputeDevice", fail)
    with caplog.at_level(logging.WARNING, "tflite_vk"):
        assert opening.open_device(info.index).dispatcher == "vulkan"
    assert "the self-test failed" in caplog.text
    with pytest.raises(DeviceError, match="the self-test failed"):
        opening.open_device(info.index, "kompute")


def test_a_device_opens_once(info: DeviceInfo) -> None:
    first = opening.open_device(info.index, "vulkan")
    assert opening.open_device(info.name[3:9].upper(), "vulkan") is first
    first.close()
    again = opening.open_device(info.index, "vulkan")
    assert again is not first
    again.close()


def test_an_unknown_dispatcher(info: DeviceInfo) -> None:
    with pytest.raises(OptionError, match="'cuda' is unknown; choose kompute, vulkan or auto"):
        opening.open_device(info.index, "cuda")


def test_features_are_those_that_kernels_may_use() -> None:
    everything = probe()[open_runtime("vulkan").info.index].features
    subgroup = without_enabling(everything)
    assert open_runtime("kompute").info.features == subgroup
    assert subgroup <= open_runtime("vulkan").info.features <= everything
    assert all(f.startswith("subgroup") for f in subgroup)


def test_the_driver_is_named() -> None:
    info = open_runtime("vulkan").info
    assert info.driver_name
    assert bytes.fromhex(info.uuid)
