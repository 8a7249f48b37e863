"""The integer arithmetic of shaders/include/quantize.glsl, run on the device for odd and extreme values."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import build_shaders
from tflite_vk import shader_library
from tflite_vk.memory import plan_memory
from tflite_vk.ops import fixed_point
from tflite_vk.ops.launch import flat_groups, flat_local
from tflite_vk.ops.quantization import (
    Multiplier,
    divide_by_pot,
    multiply_by_quantized,
    quantize_multiplier,
    split_double,
    to_int32,
)
from tflite_vk.ops.quantized.wide import reduced
from tflite_vk.program import Binding, Buffer, Dispatch, Kernel, Program
from tflite_vk.runtime.device import Device

Ints = npt.NDArray[np.int32]

_SHADER = """#version 450
#extension GL_GOOGLE_include_directive : require
#include "dispatch.glsl"
#include "dot4.glsl"
#include "fixed_point.glsl"
#include "hybrid.glsl"
#include "wide.glsl"
layout(constant_id = 3) const uint WHAT = 0u;
TENSOR_IN(0, i32, a);
TENSOR_IN(1, i32, b);
TENSOR_IN(2, i32, c);
TENSOR_IN(3, i32, d);
TENSOR_OUT(4, i32, y);
layout(push_constant) uniform Push { uint num_groups; } p;
void main() {
    uint i = flat_index();
    if (i >= p.num_groups) return;
    ivec4 r;
    if (WHAT == 0u) r = multiply_by_quantized(a.data[i], b.data[i], c.data[i]);
    if (WHAT == 1u) r = scale_as_double(a.data[i], uvec4(b.data[i]), uvec4(c.data[i]), d.data[i]);
    if (WHAT == 2u) r = divide_by_pot(a.data[i], b.data[i]);
    if (WHAT == 3u) for (int k = 0; k < 4; ++k) r[k] = dot4(uint(a.data[i][k]), uint(b.data[i][k]));
    if (WHAT == 4u) for (int k = 0; k < 4; ++k) r[k] = one_over_one_plus(a.data[i][k]);
    if (WHAT == 5u) for (int k = 0; k < 4; ++k) r[k] = fixed_multiply(a.data[i][k], b.data[i][k]);
    for (int k = 0; k < 4; ++k) {
        uint low = uint(a.data[i][k]);
        int high = b.data[i][k];
        int u = c.data[i][k];
        int v = d.data[i][k];
        if (WHAT == 9u) r[k] = scale_reduced(low, high, uint(u), v);
        // The shift lies above 21 bits of the mantissa.
        if (WHAT == 10u) r[k] = scale_wide_as_double(low, high, uint(u), uint(v) & 0x1FFFFFu, v >> 21);
    }
    for (int k = 0; k < 4; ++k) {
        float u = intBitsToFloat(a.data[i][k]);
        float v = intBitsToFloat(b.data[i][k]);
        if (WHAT == 6u) r[k] = floatBitsToInt(divide_by(u, uint(c.data[i][k])));
        if (WHAT == 7u) r[k] = floatBitsToInt(divide_whole(uint(c.data[i][k]), u));
        if (WHAT == 8u) r[k] = zero_point_of(u, v);
    }
    y.data[i] = r;
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The probe, compiled with the package's own includes."""
    root = tmp_path_factory.mktemp("probe")
    shutil.copytree(build_shaders.DEFAULT_SHADERS / "include", root / "shaders" / "include")
    (root / "shaders" / "probe.comp").write_text(_SHADER)
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


def run(device: Device, what: int, *arrays: npt.ArrayLike) -> list[int]:
    """Results of the probe for int32 arrays; missing operands are zero."""
    length = len(np.asarray(arrays[0]))
    groups = -(-length // 4)
    operands = []
    for i in range(4):
        words = np.zeros(groups * 4, np.int64)
        if i < len(arrays):
            words[:length] = np.asarray(arrays[i], np.int64)
        operands.append((words & 0xFFFFFFFF).astype(np.uint32))
    buffers = [Buffer(i, f"operand {i}", groups * 4, "constant", w) for i, w in enumerate(operands)]
    buffers.append(Buffer(4, "result", groups * 4, "output"))
    local = flat_local(device.info.limits)
    dispatch = Dispatch(
        kernel=Kernel("probe", (*local, what)),
        bindings=tuple(Binding(i, "w" if i == 4 else "r") for i in range(5)),
        push=(groups,),
        groups=flat_groups(groups, local, device.info.limits),
        label="probe",
        node=0,
    )
    program = Program("probe", tuple(buffers), (dispatch,))
    executable = device.compile(program, plan_memory(program))
    try:
        executable.run()
        return executable.output_words(4).view(np.int32)[:length].tolist()
    finally:
        executable.close()


RNG = np.random.default_rng(17)
EXTREME = [0, 1, -1, 2, -2, 3, -3, 127, -128, 2**30, -(2**30), 2**31 - 1, -(2**31), -(2**31) + 1]


def integers(count: int) -> list[int]:
    """Integers of every size, extreme ones first."""
    sizes = RNG.integers(0, 32, count)
    values = [int(RNG.integers(0, 2**31)) >> int(s) for s in sizes]
    signed = [v if RNG.integers(2) else -v for v in values]
    return [*EXTREME, *signed]


def test_multiply_by_quantized(device: Device) -> None:
    xs = integers(4000)
    reals = [float(2.0 ** RNG.uniform(-34, 8)) for _ in xs]
    multipliers = [quantize_multiplier(r) for r in reals]
    # Factors that are powers of two make ties; 2^31 - 1 and the widest shifts are the ends.
    ends = [Multiplier(1 << 30, -s) for s in range(0, 31)] + [Multiplier((1 << 31) - 1, -31)]
    pairs = [*zip(xs, multipliers, strict=True), *((x, m) for x in EXTREME for m in ends)]
    xs, ms = [x for x, _ in pairs], [m for _, m in pairs]
    got = run(device, 0, xs, [m.value for m in ms], [m.shift for m in ms])
    want = [multiply_by_quantized(x, m) for x, m in pairs]
    assert got == want


def wide_integers(count: int) -> list[int]:
    """Integers of up to 47 bits, extreme ones first."""
    values = [int(RNG.integers(0, 1 << 47)) >> int(s) for s in RNG.integers(0, 47, count)]
    ends = [*EXTREME, 1 << 32, -(1 << 32), (1 << 47) - 1, 1 - (1 << 47)]
    return [*ends, *(v if RNG.integers(2) else -v for v in values)]


def wide_words(xs: list[int]) -> tuple[list[int], list[int]]:
    """Low and high words."""
    return [x & 0xFFFFFFFF for x in xs], [x >> 32 for x in xs]


def test_scale_reduced(device: Device) -> None:
    xs = wide_integers(6000)
    factors = [reduced(quantize_multiplier(float(2.0 ** RNG.uniform(-34, 7)))) for _ in xs]
    # Factors that are powers of two make ties.
    ends = [reduced(Multiplier(1 << 30, -s)) for s in range(-6, 32)]
    pairs = [*zip(xs, factors, strict=True), *((x, m) for x in xs[:99] for m in ends)]
    xs = [x for x, _ in pairs]
    got = run(device, 9, *wide_words(xs), [m.value for _, m in pairs], [m.shift for _, m in pairs])
    want = [to_int32((x * m.value + (1 << (m.shift - 1))) >> m.shift) for x, m in pairs]
    assert got == want


def test_scale_wide_as_double(device: Device) -> None:
    xs = wide_integers(6000)
    pairs = [(x, float(2.0 ** RNG.uniform(-60, 12))) for x in xs]
    # Few bits set make products that lie between two doubles.
    pairs += [
        (x | 1, float(1 + 2.0**-s) * 2.0**-e) for x in xs[:400] for s, e in ((52, 9), (40, 30))
    ]
    pairs += [(x, 2.0**-s) for x in xs[:200] for s in range(50)]
    doubles = [split_double(scale) for _, scale in pairs]
    got = run(
        device,
        10,
        *wide_words([x for x, _ in pairs]),
        [d.mantissa & 0xFFFFFFFF for d in doubles],
        [d.mantissa >> 32 | d.shift << 21 for d in doubles],
    )
    assert got == [as_double(x, scale) for x, scale in pairs]


def as_double(x: int, scale: float) -> int:
    """int(round(double(x) * scale)), saturating."""
    product = float(x) * scale
    rounded = math.copysign(math.floor(abs(product)) + (abs(product) % 1 >= 0.5), product)
    return int(max(-(2**31), min(2**31 - 1, rounded)))


def test_scale_as_double(device: Device) -> None:
    xs = integers(4000)
    scales = [float(2.0 ** RNG.uniform(-40, 3)) for _ in xs]
    # float32 products of scales, powers of two, and factors a last place from a tie.
    odd = [0.5, 0.25, 2.0**-31, 1.0, np.nextafter(0.5, 1), np.nextafter(0.5, 0), 1 / 3, 1e-30, 0.0]
    odd += [float(np.float32(0.05)) * float(np.float32(0.02)) / float(np.float32(0.07))]
    pairs = [*zip(xs, scales, strict=True), *((x, float(s)) for x in EXTREME for s in odd)]
    parts = [split_double(s) for _, s in pairs]
    got = run(
        device,
        1,
        [x for x, _ in pairs],
        [d.mantissa & 0xFFFFFFFF for d in parts],
        [d.mantissa >> 32 for d in parts],
        [d.shift for d in parts],
    )
    assert got == [as_double(x, s) for x, s in pairs]


def test_scale_as_double_rounds_the_product_first(device: Device) -> None:
    # The exact product is a little less than n + 1/2, but as a double it is n + 1/2 and rounds away.
    cases = []
    for n in range(1, 200):
        x = int(RNG.integers(2**20, 2**31))
        scale = (n + 0.5) / x
        for s in (scale, np.nextafter(scale, 0), np.nextafter(scale, 1)):
            cases.append((x, float(s)))
            cases.append((-x, float(s)))
    parts = [split_double(s) for _, s in cases]
    got = run(
        device,
        1,
        [x for x, _ in cases],
        [d.mantissa & 0xFFFFFFFF for d in parts],
        [d.mantissa >> 32 for d in parts],
        [d.shift for d in parts],
    )
    assert got == [as_double(x, s) for x, s in cases]


def test_divide_by_pot(device: Device) -> None:
    pairs = [(x, e) for x in integers(50) for e in range(32)]
    got = run(device, 2, [x for x, _ in pairs], [e for _, e in pairs])
    assert got == [divide_by_pot(x, e) for x, e in pairs]


def test_dot4(device: Device) -> None:
    a, b = (RNG.integers(-128, 128, (2000, 4)).astype(np.int8) for _ in range(2))
    a[:4], b[:4] = -128, [[-128], [127], [0], [1]]
    words = [v.view(np.int32).reshape(-1) for v in (a, b)]
    want = (a.astype(np.int32) * b.astype(np.int32)).sum(axis=1)
    assert run(device, 3, *words) == want.tolist()


def one_over_one_plus(a: int) -> int:
    """Source: gemmlowp's one_over_one_plus_x_for_x_in_0_1."""
    half = (a + fixed_point.ONE + 1) // 2
    x = 1515870810 + fixed_point.multiply(half, -1010580540)
    for _ in range(3):
        rest = (1 << 29) - fixed_point.multiply(half, x)
        x += fixed_point.rescale(fixed_point.multiply(x, rest), 4, 2)
    return fixed_point.rescale(x, 1, 0)


def test_one_over_one_plus(device: Device) -> None:
    values = [0, 1, 2**31 - 1, 2**30, *(int(v) for v in RNG.integers(0, 2**31, 2000))]
    got = run(device, 4, values)
    assert got == [one_over_one_plus(v) for v in values]
    for a, y in zip(values, got, strict=True):
        assert abs(y / 2**31 - 1 / (1 + a / 2**31)) < 1e-8


def test_fixed_multiply(device: Device) -> None:
    pairs = [(a, b) for a in EXTREME for b in EXTREME]
    xs = integers(1000)
    pairs += list(zip(xs, reversed(xs), strict=True))
    got = run(device, 5, [a for a, _ in pairs], [b for _, b in pairs])
    assert got == [to_int32(fixed_point.multiply(a, b)) for a, b in pairs]


def floats(count: int) -> list[float]:
    """Positive float32 values of every ordinary size."""
    values = 10.0 ** RNG.uniform(-30, 30, count)
    whole = RNG.integers(1, 1 << 24, count).astype(np.float64)
    odd = [1.0, np.nextafter(np.float32(1), 0), np.nextafter(np.float32(1), 2), 255.0, 127.0, 1 / 3]
    return [float(np.float32(v)) for v in (*values, *whole, *odd)]


def bits(values: list[float]) -> list[int]:
    """float32 values as int32."""
    words: list[int] = np.asarray(values, np.float32).view(np.int32).tolist()
    return words


@pytest.mark.parametrize("divisor", [127, 255])
def test_divide_by(device: Device, divisor: int) -> None:
    values = floats(3000)
    got = run(device, 6, bits(values), [0], [divisor] * len(values))
    assert got == bits([float(np.float32(v) / np.float32(divisor)) for v in values])


@pytest.mark.parametrize("dividend", [1, 127])
def test_divide_whole(device: Device, dividend: int) -> None:
    values = floats(3000)
    got = run(device, 7, bits(values), [0], [dividend] * len(values))
    assert got == bits([float(np.float32(dividend) / np.float32(v)) for v in values])


def zero_point(below: float, above: float) -> int:
    """What TFLite computes in double.

    Source: PortableAsymmetricQuantizeFloats of
    tflite/kernels/internal/reference/portable_tensor_utils.cc.
    """
    scale = (above + below) / 255.0
    from_min, from_max = -128 + below / scale, 127 - above / scale
    is_min = 128 + below / scale < 127 + above / scale
    z = max(-128.0, min(127.0, from_min if is_min else from_max))
    return int(math.copysign(math.floor(abs(z) + 0.5), z))


def test_zero_point_of(device: Device) -> None:
    pairs = [(0.0, 3.0), (3.0, 0.0), (1.0, 1e30), (1e30, 1.0)]
    values = floats(1500)
    pairs += list(zip(values, reversed(values), strict=True))
    near = RNG.uniform(0.5, 1.5, (3000, 2)).astype(np.float32)
    pairs += [(float(a), float(b)) for a, b in near]
    # Ranges about 0, and every other range whose zero point is a tie.
    pairs += [(v, v) for v in values] + [(float(a), float(a)) for a, _ in near]
    for k in range(255):
        unit = float(RNG.integers(1, 1 << 14)) * 2.0 ** int(RNG.integers(-16, 4))
        pairs.append((unit * (2 * k + 1), unit * (509 - 2 * k)))
    got = run(device, 8, bits([a for a, _ in pairs]), bits([b for _, b in pairs]))
    assert got == [zero_point(a, b) for a, b in pairs]
