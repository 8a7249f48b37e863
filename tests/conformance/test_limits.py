"""A program beyond the device's limits is refused with words, before any of it is made.

The limits are simulated: the device object gets a smaller DeviceInfo than the driver offers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
import pytest

from tests.conformance.conftest import open_runtime
from tests.conformance.programs import (
    ProgramBuilder,
    chain,
    compile_program,
    floats,
    random_program,
)
from tflite_vk.device_info import DeviceInfo
from tflite_vk.errors import DeviceError
from tflite_vk.runtime.vulkan.device import VulkanDevice
from tflite_vk.runtime.vulkan.features import feature_of
from tflite_vk.shader_library import shader_info


@pytest.fixture
def info() -> DeviceInfo:
    return open_runtime("vulkan").info


def _limited(info: DeviceInfo, **limits: object) -> VulkanDevice:
    smaller = dataclasses.replace(info.limits, **limits)  # type: ignore[arg-type]
    return VulkanDevice(dataclasses.replace(info, limits=smaller))


@pytest.fixture
def limited(info: DeviceInfo) -> Iterator[object]:
    opened: list[VulkanDevice] = []

    def make(**limits: object) -> VulkanDevice:
        opened.append(_limited(info, **limits))
        return opened[-1]

    yield make
    for device in opened:
        device.close()


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"max_workgroup_invocations": 32}, "workgroups of 64x1x1.*32 in all"),
        ({"max_workgroup_size": (32, 32, 32)}, "workgroups of 64x1x1.*by axis"),
        ({"max_workgroup_count": (3, 9, 9)}, r"\(16, 1, 1\) workgroups.*\(3, 9, 9\)"),
        ({"max_storage_buffers": 4}, "binds 5 buffers.*4"),
        ({"max_push_constant_bytes": 20}, "pushes 24 bytes.*20"),
        ({"max_storage_buffer_bytes": 4096}, "has 16384 bytes.*4096.*maxStorageBufferRange"),
        ({"max_memory_allocation_bytes": 4096}, "'input0' has 16384 bytes.*4096 at once"),
    ],
)
def test_what_is_beyond_a_limit_is_refused(
    limited: object, limits: dict[str, object], message: str
) -> None:
    device = limited(**limits)  # type: ignore[operator]
    with pytest.raises(DeviceError, match=message) as error:
        compile_program(device, chain(1, 4096))
    assert "excluded" in str(error.value), "the message must say what to do"
    # What fits still runs on the same device.
    if "max_workgroup_count" in limits or "bytes" in next(iter(limits)):
        made = chain(1, 64) if "max_push_constant_bytes" not in limits else ProgramBuilder()
        compile_program(device, made).run()


def test_an_arena_too_large_to_allocate_is_split(limited: object) -> None:
    made = random_program(11, 1024)
    rng = np.random.default_rng(0)
    given = {x: rng.integers(-9, 9, 1024).astype(np.float32) for x in (0, 1)}
    want = dict(given)
    made.compute(want)
    # One buffer of 4 KiB and a little: nothing can share an allocation, and all still runs.
    device = limited(max_memory_allocation_bytes=5000)  # type: ignore[operator]
    executable = compile_program(device, made)
    for x in (0, 1):
        floats(executable.input_words(x))[:] = given[x]
    for _ in range(2):
        executable.run()
        for b in made.buffers:
            if b.kind == "output":
                assert np.array_equal(floats(executable.output_words(b.id)), want[b.id])


@pytest.mark.parametrize("alignment", [4, 16, 64, 256, 1024])
def test_any_alignment(limited: object, alignment: int) -> None:
    device = limited(storage_buffer_offset_alignment=alignment)  # type: ignore[operator]
    made = ProgramBuilder()
    x = made.buffer("input", 20)
    ends = []
    for i in range(5):
        t, y = made.buffer("temporary", 12 + 4 * i), made.buffer("output", 12)
        made.add_number(x, t, float(i))
        made.add_number(t, y, 1.0)
        ends.append(y)
    executable = compile_program(device, made)
    floats(executable.input_words(x))[:] = 1
    executable.run()
    assert [floats(executable.output_words(y))[0] for y in ends] == [2, 3, 4, 5, 6]


def test_the_base_shaders_need_no_feature() -> None:
    for name in ("elementwise", "conv_2d", "depthwise_conv_2d", "fully_connected"):
        assert [feature_of(c) for c in shader_info(name).capabilities] == [None]


def test_a_missing_feature_is_named(info: DeviceInfo, monkeypatch: pytest.MonkeyPatch) -> None:
    real = shader_info("elementwise")
    needy = dataclasses.replace(real, capabilities=("Shader", "CooperativeMatrixKHR"))
    monkeypatch.setattr("tflite_vk.runtime.vulkan.limits.shader_info", lambda name: needy)
    device = _limited(info)
    with pytest.raises(DeviceError, match="needs cooperativeMatrix .*CooperativeMatrixKHR"):
        compile_program(device, chain(1, 64))
    device.close()


def test_features_are_switched_on_where_a_shader_needs_them(
    info: DeviceInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tflite_vk.runtime.vulkan import features
    from tflite_vk.runtime.vulkan.probe import probe

    found = probe()[info.index].features
    wanted = {"Float16", "StorageBuffer16BitAccess", "Int8", "StorageBuffer8BitAccess"}
    real = shader_info("elementwise")
    needy = dataclasses.replace(real, capabilities=("Shader", *sorted(wanted)))
    monkeypatch.setattr(features, "shader_info", lambda name: needy)
    device = VulkanDevice(dataclasses.replace(info, features=found))
    names = {feature_of(c) for c in wanted}
    assert device.handle.enabled == names & found
    executable = compile_program(device, chain(2, 64))
    executable.run()
    device.close()


def test_unknown_capabilities_are_never_offered() -> None:
    assert feature_of("RayTracingKHR") == "RayTracingKHR"
    assert feature_of("GroupNonUniformArithmetic") == "subgroupArithmetic"
    assert feature_of("Shader") is None
