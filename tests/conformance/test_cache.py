"""Pipeline cache files: a help where good, absent where not, and never in the way."""

from __future__ import annotations

import dataclasses
import logging
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.conformance.conftest import open_runtime
from tests.conformance.programs import chain, compile_program, floats
from tflite_vk.device_info import DeviceInfo
from tflite_vk.runtime import cache
from tflite_vk.runtime.cache import CacheFile, CacheKey
from tflite_vk.runtime.device import Device
from tflite_vk.runtime.open import open_device
from tflite_vk.runtime.vulkan.caching import CachingDevice
from tflite_vk.runtime.vulkan.device import VulkanDevice

INFO = DeviceInfo(
    index=0, name="Some GPU", type="discrete", vendor_id=0x10DE, device_id=0x2335,
    driver_version=5, uuid="00112233445566778899aabbccddeeff",
)  # fmt: skip


def driver_data(info: DeviceInfo = INFO, payload: bytes = b"machine code") -> bytes:
    """What a driver returns: Vulkan's header, then its own."""
    header = struct.pack("<IIII", 32, 1, info.vendor_id, info.device_id)
    return header + bytes.fromhex(info.uuid) + payload


@pytest.fixture(autouse=True)
def _forget_warnings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_warned", set())


def _file(folder: Path, info: DeviceInfo = INFO, token: str | None = None) -> CacheFile:
    return CacheFile(folder, CacheKey.of(info), token)


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    file = _file(tmp_path / "made" / "on demand")
    assert file.load() is None
    assert file.save(driver_data())
    assert file.load() == driver_data()
    assert file.save(driver_data(payload=b""))
    assert _file(tmp_path / "made" / "on demand").load() == driver_data(payload=b"")
    assert [p.name for p in file.path.parent.iterdir()] == [file.path.name], "a temporary is left"


def test_every_truncation_and_every_damaged_byte_is_a_miss(tmp_path: Path) -> None:
    file = _file(tmp_path)
    file.save(driver_data())
    good = file.path.read_bytes()
    for length in range(len(good)):
        file.path.write_bytes(good[:length])
        assert file.load() is None, length
    for position in range(len(good)):
        file.path.write_bytes(good[:position] + bytes([good[position] ^ 1]) + good[position + 1 :])
        assert file.load() is None, position
    file.path.write_bytes(good + b"\0")
    assert file.load() is None
    file.path.write_bytes(good)
    assert file.load() == driver_data()


@pytest.mark.parametrize(
    "content", [b"", b"\0" * 4096, os.urandom(4096), b"TFLITEVK" + b"\xff" * 64]
)
def test_any_other_file_is_a_miss(tmp_path: Path, content: bytes) -> None:
    file = _file(tmp_path)
    file.path.write_bytes(content)
    assert file.load() is None


@pytest.mark.parametrize(
    "change",
    [
        {"uuid": "ff" * 16},
        {"driver_version": 6},
        {"name": "Another GPU"},
        {"vendor_id": 1},
        {"device_id": 1},
    ],
)
def test_another_device_or_driver_is_a_miss(tmp_path: Path, change: dict[str, object]) -> None:
    file = _file(tmp_path)
    file.save(driver_data())
    other = _file(tmp_path, dataclasses.replace(INFO, **change))  # type: ignore[arg-type]
    other.path.write_bytes(file.path.read_bytes())
    assert other.load() is None


@pytest.mark.parametrize("field", ["package", "shaders"])
def test_another_package_is_a_miss(tmp_path: Path, field: str) -> None:
    file = _file(tmp_path)
    file.save(driver_data())
    key = dataclasses.replace(file.key, **{field: "another"})
    assert CacheFile(tmp_path, key, None).load() is None


def test_driver_data_for_another_device_is_a_miss(tmp_path: Path) -> None:
    # A driver whose header disagrees with what it says of itself: don't hand it back to it.
    file = _file(tmp_path)
    file.save(driver_data(dataclasses.replace(INFO, uuid="01" * 16)))
    assert file.load() is None
    file.save(b"short")
    assert file.load() is None


def test_tokens_name_files(tmp_path: Path) -> None:
    plain, one, two = _file(tmp_path), _file(tmp_path, token="one"), _file(tmp_path, token="tw o/")
    assert len({plain.path, one.path, two.path}) == 3
    assert all(f.path.parent == tmp_path for f in (plain, one, two))
    one.save(driver_data())
    assert plain.load() is None
    assert two.load() is None
    assert one.load() == driver_data()


def test_a_folder_that_cannot_be_written_warns_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    blocked = tmp_path / "a file"
    blocked.write_text("in the way")
    with caplog.at_level(logging.WARNING, "tflite_vk"):
        for _ in range(3):
            assert not _file(blocked / "folder").save(driver_data())
            assert _file(blocked / "folder").load() is None
    assert len(caplog.records) == 1
    assert "can't be written" in caplog.text
    assert blocked.read_text() == "in the way"


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_read_only_folder_warns_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tmp_path.chmod(0o555)
    with caplog.at_level(logging.WARNING, "tflite_vk"):
        assert not _file(tmp_path).save(driver_data())
        assert not _file(tmp_path).save(driver_data())
    assert len(caplog.records) == 1


# With a driver


@pytest.fixture
def device() -> Iterator[VulkanDevice]:
    opened = VulkanDevice(open_runtime("vulkan").info)
    yield opened
    opened.close()


def _assert_runs(device: Device) -> None:
    executable = compile_program(device, chain(3, 64))
    floats(executable.input_words(0))[:] = np.arange(64)
    executable.run()
    assert np.array_equal(floats(executable.output_words(3)), np.arange(64) + np.float32(3))
    executable.close()


def test_a_second_process_starts_warm(device: VulkanDevice, tmp_path: Path) -> None:
    cold = CachingDevice(device, tmp_path, "model")
    assert not cold.is_warm
    _assert_runs(cold)
    assert cold.file.path.exists()
    again = VulkanDevice(device.info)  # what another process has: a device with nothing compiled
    warm = CachingDevice(again, tmp_path, "model")
    assert warm.is_warm
    _assert_runs(warm)
    assert not CachingDevice(again, tmp_path, "another").is_warm
    warm.close()


def test_nothing_new_writes_nothing(device: VulkanDevice, tmp_path: Path) -> None:
    caching = CachingDevice(device, tmp_path)
    _assert_runs(caching)
    before = caching.file.path.stat()
    _assert_runs(caching)
    after = caching.file.path.stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


@pytest.mark.parametrize("damage", ["cut", "flipped", "garbage", "folder"])
def test_a_bad_file_changes_no_result(device: VulkanDevice, tmp_path: Path, damage: str) -> None:
    caching = CachingDevice(device, tmp_path)
    _assert_runs(caching)
    path = caching.file.path
    good = path.read_bytes()
    if damage == "folder":
        path.unlink()
        path.mkdir()
    else:
        bad = {
            "cut": good[: len(good) // 2],
            "flipped": good[:-1] + bytes([good[-1] ^ 0xFF]),
            "garbage": os.urandom(len(good)),
        }
        path.write_bytes(bad[damage])
    again = VulkanDevice(device.info)
    damaged = CachingDevice(again, tmp_path)
    assert not damaged.is_warm
    _assert_runs(damaged)
    if damage != "folder":
        assert path.read_bytes() == good, "a good file takes the place of a bad one"
    damaged.close()


def test_the_option_reaches_the_file(tmp_path: Path) -> None:
    opened = open_device(open_runtime("vulkan").info.index, "vulkan", cache_dir=tmp_path)
    assert opened.dispatcher == "vulkan"
    _assert_runs(opened)
    assert [p.suffix for p in tmp_path.iterdir()] == [".vkcache"]
    # Kompute has no cache to keep; the option does no harm there.
    _assert_runs(open_device(None, "auto", cache_dir=tmp_path / "other"))


_WRITER = """
import sys
from tests.conformance.test_cache import INFO, driver_data, _file
from pathlib import Path
file = _file(Path(sys.argv[1]))
good = {driver_data(payload=bytes([n]) * 200_000) for n in (1, 2)}
for i in range(200):
    assert file.save(driver_data(payload=bytes([int(sys.argv[2])]) * 200_000))
    assert file.load() in good
"""


def test_two_processes_write_at_once(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen([sys.executable, "-c", _WRITER, str(tmp_path), str(n)]) for n in (1, 2)
    ]
    assert [p.wait(120) for p in processes] == [0, 0]
    assert _file(tmp_path).load() is not None
    assert len(list(tmp_path.iterdir())) == 1
