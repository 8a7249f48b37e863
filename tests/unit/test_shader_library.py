"""The reader of tflite_vk/spirv: what is in the package, and what it says where something is missing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import build_shaders
import spirv_reflect
from tflite_vk import shader_library
from tflite_vk.errors import ShaderError

SCALE = """#version 450
layout(local_size_x_id = 0, local_size_y_id = 1, local_size_z_id = 2) in;
layout(constant_id = 3) const float factor = 2.0;
layout(set = 0, binding = 0) readonly buffer Source { float source[]; };
layout(set = 0, binding = 1) writeonly buffer Target { float target[]; };
layout(push_constant) uniform Push { uint count; uint offset; };
void main() {
  uint i = gl_GlobalInvocationID.x;
  if (i < count) target[offset + i] = source[i] * factor;
}
"""


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Let the module read a folder of this test's own."""
    monkeypatch.setattr(shader_library, "_folder", lambda: tmp_path / "spirv")
    _forget()
    yield tmp_path
    _forget()


def _forget() -> None:
    for function in ("shader_info", "shader_names", "spirv", "_manifest"):
        getattr(shader_library, function).cache_clear()


def _build(root: Path) -> None:
    (root / "shaders").mkdir()
    (root / "shaders" / "scale.comp").write_text(SCALE)
    assert build_shaders.build(root / "shaders", root / "spirv").errors == []


def test_reads_what_the_build_wrote(library: Path) -> None:
    _build(library)
    assert shader_library.shader_names() == ("scale",)
    info = shader_library.shader_info("scale")
    assert info == shader_library.ShaderInfo(
        name="scale",
        bindings=2,
        access=("r", "w"),
        push_words=2,
        spec_ids=(0, 1, 2, 3),
        spec_defaults=(1, 1, 1, 0x40000000),
        capabilities=("Shader",),
        source_hash=info.source_hash,
        shared_bytes=0,
    )
    assert len(info.source_hash) == 64
    assert shader_library.spirv("scale") == (library / "spirv" / "scale.spv").read_bytes()
    assert (
        shader_library.library_hash()
        == json.loads((library / "spirv" / "manifest.json").read_text())["hash"]
    )


@pytest.mark.parametrize("name", ["nothing", "../scale", ""])
def test_an_unknown_name(library: Path, name: str) -> None:
    _build(library)
    with pytest.raises(ShaderError, match=r"no compiled shader is named .*build_shaders\.py"):
        shader_library.spirv(name)


def test_shaders_that_were_never_built(library: Path) -> None:
    for call in (shader_library.shader_names, shader_library.library_hash):
        with pytest.raises(ShaderError, match=r"not compiled .*build_shaders\.py"):
            call()


@pytest.mark.parametrize(
    ("content", "said"),
    [("{", "not readable"), ("[]", "not of format"), (json.dumps({"format": 0}), "not of format")],
)
def test_a_manifest_that_cannot_be_used(library: Path, content: str, said: str) -> None:
    (library / "spirv").mkdir()
    (library / "spirv" / "manifest.json").write_text(content)
    with pytest.raises(ShaderError, match=said):
        shader_library.shader_names()


def test_a_binary_that_is_gone(library: Path) -> None:
    _build(library)
    (library / "spirv" / "scale.spv").unlink()
    with pytest.raises(ShaderError, match=r"scale\.spv cannot be read"):
        shader_library.spirv("scale")


def test_the_package_ships_current_shaders() -> None:
    assert build_shaders.outdated() == [], "run python tools/build_shaders.py"
    assert shader_library.shader_names()
    for name in shader_library.shader_names():
        words = np.frombuffer(shader_library.spirv(name), np.uint32)
        assert words[0] == spirv_reflect.MAGIC
