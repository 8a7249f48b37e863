"""A driver that fails: lost device, hang, no memory. Injected, since no driver does it on demand."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.conformance.conftest import open_runtime
from tests.conformance.programs import ProgramBuilder, chain, compile_program, floats
from tflite_vk.errors import DeviceError, OptionError
from tflite_vk.runtime.vulkan.api import DEVICE_LOST, OUT_OF_DEVICE_MEMORY
from tflite_vk.runtime.vulkan.device import VulkanDevice
from tflite_vk.runtime.vulkan.handle import TIMEOUT_VARIABLE


@pytest.fixture
def device() -> Iterator[VulkanDevice]:
    opened = VulkanDevice(open_runtime("vulkan").info)
    yield opened
    opened.close()


class FailingLibrary:
    """The library with one function that fails after a number of calls."""

    def __init__(self, real: Any, name: str, result: int, good_calls: int = 0) -> None:
        self._real, self._name, self._result = real, name, result
        self._good_calls = good_calls

    def __getattr__(self, name: str) -> Any:
        if name != self._name:
            return getattr(self._real, name)
        if self._good_calls:
            self._good_calls -= 1
            return getattr(self._real, name)
        return lambda *_: self._result


@pytest.mark.parametrize("good_calls", range(4))
def test_out_of_memory_names_buffer_and_size(device: VulkanDevice, good_calls: int) -> None:
    made = ProgramBuilder()
    data = np.ones(5000, np.float32)
    x, w = made.buffer("input", 1000), made.buffer("constant", 5000, data)
    t, y = made.buffer("temporary", 3000), made.buffer("output", 2000)
    made.add_number(w, t, 1.0)
    made.add(t, w, y)
    made.add(x, w, made.buffer("output", 1000))
    api = device.handle.api
    real = api.lib
    api.lib = FailingLibrary(real, "vkAllocateMemory", OUT_OF_DEVICE_MEMORY, good_calls)
    with pytest.raises(DeviceError) as error:
        compile_program(device, made)
    text = str(error.value)
    assert "no memory left" in text
    assert "VK_ERROR_OUT_OF_DEVICE_MEMORY" in text
    sizes = {"input0": 4000, "constant1": 20000, "temporary2": 12000, "output3": 8000}
    assert any(f"{name!r} of {size} bytes" in text for name, size in sizes.items()), text
    assert "excluded_ops" in text
    api.lib = real
    executable = compile_program(device, made)
    executable.run()
    assert (floats(executable.output_words(y)) == 3).all()


@pytest.mark.parametrize(
    "name",
    [
        "vkCreateBuffer",
        "vkBindBufferMemory",
        "vkMapMemory",
        "vkCreateCommandPool",
        "vkAllocateCommandBuffers",
        "vkBeginCommandBuffer",
        "vkEndCommandBuffer",
        "vkCreateFence",
        "vkCreateDescriptorPool",
        "vkAllocateDescriptorSets",
        "vkCreateQueryPool",
        "vkCreateComputePipelines",
        "vkCreateShaderModule",
        "vkCreatePipelineLayout",
        "vkCreateDescriptorSetLayout",
    ],
)
@pytest.mark.parametrize("good_calls", [0, 1, 2])
def test_every_call_that_fails_is_an_error_and_leaves_a_working_device(
    device: VulkanDevice, name: str, good_calls: int
) -> None:
    made = chain(3, 64)
    api = device.handle.api
    real = api.lib
    api.lib = FailingLibrary(real, name, OUT_OF_DEVICE_MEMORY, good_calls)
    try:
        executable = compile_program(device, made, profiling=True)
        assert good_calls, f"{name} is not called at all"
        executable.close()
    except DeviceError as error:
        assert "VK_ERROR_OUT_OF_DEVICE_MEMORY" in str(error)
    api.lib = real
    executable = compile_program(device, made, profiling=True)
    floats(executable.input_words(0))[:] = 1
    executable.run()
    assert (floats(executable.output_words(3)) == 4).all()


@pytest.mark.parametrize("call", ["_submit", "_wait"])
def test_a_lost_device_stays_lost(
    device: VulkanDevice, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    executable = compile_program(device, chain(1, 64))
    other = compile_program(device, chain(2, 64))
    submission = executable._resources._submission
    real_wait = submission._wait  # type: ignore[union-attr]

    def lost(*arguments: Any) -> int:
        if call == "_wait":
            real_wait(*arguments)  # what is submitted has to end before it is freed
        return DEVICE_LOST

    monkeypatch.setattr(submission, call, lost)
    with pytest.raises(DeviceError, match="was lost while running 'chain of 1'.*DEVICE_LOST"):
        executable.run()
    for failing in (executable, other):
        with pytest.raises(DeviceError, match="was lost earlier"):
            failing.run()
    with pytest.raises(DeviceError, match="was lost earlier"):
        compile_program(device, chain(1, 64))
    executable.close()
    other.close()


def test_a_run_that_takes_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(TIMEOUT_VARIABLE, "1e-9")
    device = VulkanDevice(open_runtime("vulkan").info)
    # Constants would be uploaded, and time out as well.
    executable = compile_program(device, _slow())
    with pytest.raises(DeviceError, match=r"did not finish 'slow' within 1e-09 s.*TIMEOUT_S"):
        for _ in range(100):  # a run may end within the time it takes to ask
            executable.run()
    device.handle.timeout_ns = int(60e9)
    floats(executable.input_words(0))[:] = 1
    executable.run()  # waits for the run that was given up, then runs again
    assert floats(executable.output_words(8))[0] == 9
    executable.close()
    device.close()


def test_closing_while_a_run_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TIMEOUT_VARIABLE, "1e-9")
    device = VulkanDevice(open_runtime("vulkan").info)
    executable = compile_program(device, _slow())
    with pytest.raises(DeviceError, match="did not finish"):
        for _ in range(100):
            executable.run()
    executable.close()
    device.close()


def _slow() -> ProgramBuilder:
    made = chain(8, 1 << 20)
    made.name = "slow"
    # Reads the input where `chain` has a constant to fill unused bindings: nothing to upload.
    made.dispatches = [
        dataclasses.replace(d, bindings=(*d.bindings[:2], *[d.bindings[0]] * 3))
        for d in made.dispatches
    ]
    return made


@pytest.mark.parametrize("text", ["soon", "0", "-1", "nan", "inf"])
def test_a_time_limit_that_means_nothing(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(TIMEOUT_VARIABLE, text)
    with pytest.raises(OptionError, match=TIMEOUT_VARIABLE):
        VulkanDevice(open_runtime("vulkan").info)


def test_a_device_that_is_gone() -> None:
    info = open_runtime("vulkan").info
    with pytest.raises(DeviceError, match="is gone.*devices"):
        VulkanDevice(dataclasses.replace(info, index=99))
    with pytest.raises(DeviceError, match="is now 'llvmpipe|is now '"):
        VulkanDevice(dataclasses.replace(info, name="another"))
