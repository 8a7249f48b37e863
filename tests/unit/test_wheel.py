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


def _run_hook(hook: str, source: Path, out: Path) -> subprocess.CompletedProcess[str]:
    """Run one hook of the build backend as pip would, offline: its requirements are installed here."""
    return subprocess.run(
        [sys.executable, "-c", BUILD, hook, out],
        cwd=source,
        capture_output=True,
        text=True,
        check=False,
    )


def _build(hook: str, source: Path, out: Path) -> Path:
    done = _run_hook(hook, source, out)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    (made,) = out.iterdir()
    return made


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An unpacked sdist of this checkout, with one shader to keep it quick."""
    root = tmp_path_factory.mktemp("sdist")
    checkout = root / "checkout"
    ignored = shutil.ignore_patterns("spirv", "__pycache__")
    for name in ("tflite_vk", "tools"):
        shutil.copytree(ROOT / name, checkout / name, ignore=ignored)
    for name in ("LICENSE", "MANIFEST.in", "README.md", "pyproject.toml", "setup.py"):
        shutil.copy(ROOT / name, checkout / name)
    shutil.copytree(ROOT / "shaders" / "include", checkout / "shaders" / "include")
    for path in (ROOT / "shaders").glob("elementwise.*"):
        shutil.copy(path, checkout / "shaders")
    with tarfile.open(_build("build_sdist", checkout, root / "out")) as archive:
        archive.extractall(root, filter="data")
    (unpacked,) = root.glob("tflite_vk-*")
    return unpacked


@pytest.fixture(scope="module")
def wheel(sdist: Path) -> Path:
    return _build("build_wheel", sdist, sdist.parent / "wheel")


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


@pytest.mark.parametrize("hook", ["build_wheel", "build_editable"])
def test_a_broken_shader_fails_the_install(sdist: Path, tmp_path: Path, hook: str) -> None:
    source = tmp_path / "source"
    shutil.copytree(sdist, source)
    (source / "shaders" / "broken.comp").write_text("#version 450\nvoid main() { nothing(); }\n")
    done = _run_hook(hook, source, tmp_path / "out")
    assert done.returncode != 0
    assert "shaders/broken.comp: glslang says" in done.stderr
