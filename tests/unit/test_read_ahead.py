"""Cache files read before anything is known of the device they are for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tflite_vk.cache.compile_cache import read_program_ahead
from tflite_vk.options import DelegateOptions
from tflite_vk.runtime import cache
from tflite_vk.runtime.cache import EntryFile, read_ahead

IDENTITY = {"device": "one"}


@pytest.fixture
def file(tmp_path: Path) -> EntryFile:
    found = EntryFile(tmp_path / "model-a.program", IDENTITY)
    assert found.write(b"0123", b"456")
    return found


def _never(path: Path) -> bytes:
    raise AssertionError(f"{path} is read again")


def test_it_is_read_once(file: EntryFile, monkeypatch: pytest.MonkeyPatch) -> None:
    read_ahead(file.path)
    monkeypatch.setattr(Path, "read_bytes", _never)
    data = file.read()
    assert data is not None
    assert bytes(data) == b"0123456"
    assert not cache._ahead, "what was used is let go"


def test_it_counts_for_its_own_identity_only(file: EntryFile) -> None:
    read_ahead(file.path)
    assert EntryFile(file.path, {"device": "another"}).read() is None


def test_a_file_written_since_is_read_again(file: EntryFile) -> None:
    read_ahead(file.path)
    changed_ns = file.path.stat().st_mtime_ns
    assert file.write(b"new")
    os.utime(file.path, ns=(changed_ns + 1, changed_ns + 1))
    data = file.read()
    assert data is not None
    assert bytes(data) == b"new"


def test_a_damaged_or_missing_file_is_a_miss(file: EntryFile) -> None:
    content = bytearray(file.path.read_bytes())
    for damaged in (content[:-1], content[:10], b"", bytes(content[:-1]) + b"7"):
        file.path.write_bytes(damaged)
        read_ahead(file.path)
        assert file.read() is None
    file.path.unlink()
    read_ahead(file.path)
    assert file.read() is None


def test_another_program_of_the_folder_lets_it_go(file: EntryFile, tmp_path: Path) -> None:
    read_ahead(file.path)
    assert EntryFile(tmp_path / "model.plan", IDENTITY).read() is None
    assert cache._ahead
    assert EntryFile(tmp_path / "model-b.program", IDENTITY).read() is None
    assert not cache._ahead


def test_only_the_one_program_there_could_be_is_read(file: EntryFile, tmp_path: Path) -> None:
    for options, is_read in (
        (DelegateOptions(), False),
        (DelegateOptions(cache_dir=str(tmp_path)), True),
        (DelegateOptions(cache_dir=str(tmp_path), model_token="model"), True),
        (DelegateOptions(cache_dir=str(tmp_path), model_token="other"), False),
        (DelegateOptions(cache_dir=str(tmp_path / "none")), False),
    ):
        cache._ahead.clear()
        read_program_ahead(options)
        assert (file.path in cache._ahead) == is_read
    cache._ahead.clear()
    EntryFile(tmp_path / "model-b.program", IDENTITY).write(b"1")
    read_program_ahead(DelegateOptions(cache_dir=str(tmp_path)))
    assert not cache._ahead
