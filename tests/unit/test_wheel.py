"""The sdist holds all that the wheel is built from, and the wheel all that the package needs."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import build_shaders

ROOT = build_shaders.ROOT
BUILD = "import sys, setuptools.build_meta as b; getattr(b, sys.argv[1])(sys.argv[2])"


def _build(hook: str, source: Path, out: Path) -> Path:
    """Run one hook of the build backend as pip would, offline: its requirements are installed here."""
    done = subprocess.run(
        [sys.executable, "-c", BUILD, hook, out],
        cwd=source,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    (made,) = out.iterdir()
    return made


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that an sdist of this checkout gives, with two shaders to keep it quick."""
    root = tmp_path_factory.mktemp("wheel")
    checkout, out = root / "checkout", root / "out"
    ignored = shutil.ignore_patterns("spirv", "__pycache__")
    for name in ("tflite_vk", "tools"):
        shutil.copytree(ROOT / name, checkout / name, ignore=ignored)
    for name in ("LICENSE", "MANIFEST.in", "README.md", "pyproject.toml", "setup.py"):
        shutil.copy(ROOT / name, checkout / name)
    shutil.copytree(ROOT / "shaders" / "include", checkout / "shaders" / "include")
    for path in (ROOT / "shaders").glob("elementwise.*"):
        shutil.copy(path, checkout / "shaders")
    with tarfile.open(_build("build_sdist", checkout, out / "sdist")) as archive:
        archive.extractall(out, filter="data")
    (unpacked,) = out.glob("tflite_vk-*")
    return _build("build_wheel", unpacked, out / "wheel")


def test_wheel_ships_the_shaders(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {"tflite_vk/py.typed", "tflite_vk/spirv/manifest.json"} <= set(names)
    assert "tflite_vk/spirv/elementwise.spv" in names
    assert any(name.endswith("/licenses/LICENSE") for name in names)
    assert {name.split("/")[0].split("-")[0] for name in names} == {"tflite_vk"}
    assert wheel.name.endswith("-py3-none-any.whl")


def test_wheel_is_enough_to_read_them(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path)
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from tflite_vk import shader_library as s\n"
        "assert s.__file__.startswith(sys.argv[1]), s.__file__\n"
        "print(*s.shader_names(), len(s.spirv('elementwise')) > 1000)"
    )
    said = subprocess.run(
        [sys.executable, "-I", "-c", program, tmp_path],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.startswith("elementwise ")
    assert said.stdout.endswith("True\n")
