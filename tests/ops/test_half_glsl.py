"""float16 as shaders/include/tensor.glsl stores and reads it, run on the device for every value that matters."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import build_shaders
from tests.support.half import to_half
from tflite_vk import shader_library
from tflite_vk.memory import plan_memory
from tflite_vk.ops.launch import flat_groups, flat_local
from tflite_vk.program import Binding, Buffer, Dispatch, Kernel, Program
from tflite_vk.runtime.device import Device

Floats = npt.NDArray[np.float32]

_SHADER = """#version 450
#extension GL_GOOGLE_include_directive : require
#include "dispatch.glsl"
#include "tensor.glsl"
TENSOR_IN(0, IN, x);
TENSOR_OUT(1, OUT, y);
layout(push_constant) uniform Push { uint num_groups; } p;
void main() {
    uint i = flat_index();
    if (i >= p.num_groups) return;
    STORE(OUT, y, i, LOAD(IN, x, i));
}
"""
_VARIANTS = """
[variants.store]
IN = "f32"
OUT = "f16"

[variants.load]
IN = "f16"
OUT = "f32"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The probe, compiled with the package's own includes."""
    root = tmp_path_factory.mktemp("probe")
    shutil.copytree(build_shaders.DEFAULT_SHADERS / "include", root / "shaders" / "include")
    (root / "shaders" / "probe.comp").write_text(_SHADER)
    (root / "shaders" / "probe.toml").write_text(_VARIANTS)
    result = build_shaders.build(root / "shaders", root / "spirv")
    assert not result.errors, result.errors
    return root / "spirv"


@pytest.fixture(autouse=True)
def probe(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the shader library read the probe's folder."""
    cached = (shader_library._manifest, shader_library.shader_info, shader_library.spirv)
    monkeypatch.setattr(shader_library, "_folder", lambda: folder)
    for function in cached:
        function.cache_clear()
    yield
    for function in cached:
        function.cache_clear()


def run(
    device: Device, shader: str, source: npt.NDArray[np.generic], out_words: int
) -> npt.NDArray[np.uint32]:
    """Words that a probe makes of an array of whole groups."""
    words = np.ascontiguousarray(source).view(np.uint32)
    groups = source.size // 4
    local = flat_local(device.info.limits)
    program = Program(
        "probe",
        (
            Buffer(0, "source", words.size, "constant", words),
            Buffer(1, "result", out_words, "output"),
        ),
        (
            Dispatch(
                kernel=Kernel(shader, local),
                bindings=(Binding(0, "r"), Binding(1, "w")),
                push=(groups,),
                groups=flat_groups(groups, local, device.info.limits),
                label="probe",
                node=0,
            ),
        ),
    )
    executable = device.compile(program, plan_memory(program))
    try:
        executable.run()
        return executable.output_words(1).copy()
    finally:
        executable.close()


def stored(device: Device, values: npt.ArrayLike) -> npt.NDArray[np.uint16]:
    """Bits of float16 that the device makes of float32."""
    x = np.asarray(values, np.float32)
    padded = np.resize(x, -(-x.size // 4) * 4)
    return run(device, "store", padded, padded.size // 2).view(np.uint16)[: x.size]


def all_halves() -> npt.NDArray[np.float16]:
    """Every float16."""
    return np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def test_every_float16_is_kept(device: Device) -> None:
    """NaNs stay NaNs, the rest keeps its bits."""
    halves = all_halves()
    got = stored(device, halves.astype(np.float32)).view(np.float16)
    is_nan = np.isnan(halves)
    assert np.isnan(got[is_nan]).all()
    assert np.array_equal(got[~is_nan].view(np.uint16), halves[~is_nan].view(np.uint16))


def test_every_float16_is_read(device: Device) -> None:
    halves = all_halves()
    got = run(device, "load", halves, halves.size).view(np.float32)
    is_nan = np.isnan(halves)
    assert np.isnan(got[is_nan]).all()
    assert np.array_equal(got[~is_nan], halves[~is_nan].astype(np.float32))


def between(halves: npt.NDArray[np.float16]) -> Floats:
    """Ties of neighbouring positive float16 values, and float32 just below and above each."""
    low, high = halves[:-1].astype(np.float32), halves[1:].astype(np.float32)
    middle = (low + high) / 2
    zero, infinity = np.float32(0), np.float32(np.inf)
    around = [middle, np.nextafter(middle, zero), np.nextafter(middle, infinity)]
    return np.concatenate([*around, np.nextafter(low, infinity), np.nextafter(high, zero)])


def test_rounds_to_nearest_ties_to_even(device: Device) -> None:
    x = between(np.arange(0x7C00, dtype=np.uint16).view(np.float16))
    x = np.concatenate([x, -x])
    want = to_half(x).astype(np.float16).view(np.uint16)
    got = stored(device, x)
    wrong = np.flatnonzero(got != want)
    assert not wrong.size, (
        f"{wrong.size} of {x.size}: {[(x[i], got[i], want[i]) for i in wrong[:5]]}"
    )


def test_saturates_but_keeps_infinities_and_nan(device: Device) -> None:
    huge = np.float32(3.4028235e38)
    x = np.array(
        [65504, 65519.996, 65520, 65536, 1e6, 6.1e33, 1e37, 1e38, huge, np.inf, np.nan], np.float32
    )
    x = np.concatenate([x, -x])
    got = stored(device, x).view(np.float16).astype(np.float32)
    want = np.where(np.isfinite(x), np.clip(x, -65504, 65504), x)
    assert np.array_equal(got, want, equal_nan=True), got


def test_tiny_values(device: Device) -> None:
    """float32's own subnormals among them, which a device may flush: they round to zero anyway."""
    x = np.array(
        [
            1e-45,
            1e-40,
            1.1e-38,
            1e-30,
            2**-26,
            2**-25,
            np.nextafter(np.float32(2**-25), 1),
            2**-24,
            3e-8,
        ],
        np.float32,
    )
    x = np.concatenate([x, -x])
    want = to_half(x).astype(np.float16).view(np.uint16)
    assert stored(device, x).tolist() == want.tolist()
