"""Closing, dropping and remaking, in any order: nothing crashes, nothing stays behind."""

from __future__ import annotations

import dataclasses
import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conformance.conftest import open_runtime
from tests.conformance.programs import chain, compile_program, floats, random_program
from tflite_vk.errors import DeviceError
from tflite_vk.program import Program
from tflite_vk.runtime.device import Device
from tflite_vk.runtime.kompute import KomputeDevice
from tflite_vk.runtime.vulkan.device import VulkanDevice
from tflite_vk.runtime.vulkan.pipelines import MAX_IDLE


def test_nothing_works_after_close(runtime: Device) -> None:
    executable = compile_program(runtime, chain(1, 16), profiling=True, guard_words=4)
    executable.run()
    executable.close()
    executable.close()
    for call in (
        executable.run,
        executable.reset_states,
        executable.dispatch_us,
        executable.check_guards,
        lambda: executable.input_words(0),
        lambda: executable.output_words(1),
    ):
        with pytest.raises(DeviceError, match="closed"):
            call()


def test_executables_are_independent(computing: Device) -> None:
    made = [compile_program(computing, chain(n, 64)) for n in (1, 2, 3)]
    for n, executable in enumerate(made):
        floats(executable.input_words(0))[:] = n
    made[1].close()
    for n in (0, 2):
        made[n].run()
        assert (floats(made[n].output_words(n + 1)) == 2 * n + 1).all()
        made[n].close()


def test_views_outlive_their_executable(computing: Device) -> None:
    executable = compile_program(computing, chain(1, 1 << 20))
    floats(executable.input_words(0))[:] = 1
    executable.run()
    given, got = executable.input_words(0), executable.output_words(1)[5:]
    executable.close()
    del executable
    gc.collect()
    assert float(floats(given).sum()) == 1 << 20
    assert (floats(got) == 2).all()


def test_dropping_frees(computing: Device) -> None:
    for _ in range(3):
        executable = compile_program(computing, chain(3, 1 << 20))
        executable.run()
        del executable
    gc.collect()


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_300_cycles_leave_memory_flat(vulkan: Device) -> None:
    made = random_program(7, 1 << 12)

    def cycles(count: int) -> int:
        for i in range(count):
            executable = compile_program(vulkan, made, profiling=i % 3 == 0, guard_words=i % 2)
            executable.run()
            if i % 2:
                executable.close()
            del executable
        gc.collect()
        return _resident_bytes()

    before = cycles(50)
    after = cycles(300)
    # One cycle makes 200 KiB of buffers.
    assert after - before < 4 << 20, f"{(after - before) >> 10} KiB more after 300 cycles"


def test_runs_leave_memory_flat(computing: Device) -> None:
    executable = compile_program(computing, chain(2, 64))
    for _ in range(200):
        executable.run()
    before = _resident_bytes()
    for _ in range(2000):
        executable.run()
    assert _resident_bytes() - before < 2 << 20
    executable.close()


def test_pipelines_are_shared(vulkan: Device) -> None:
    assert isinstance(vulkan, VulkanDevice)
    first = compile_program(vulkan, chain(20, 64))
    made = vulkan.pipelines.num_made
    second = compile_program(vulkan, chain(30, 128))
    first.close()
    third = compile_program(vulkan, chain(5, 256))
    assert vulkan.pipelines.num_made == made
    second.close()
    third.close()


def test_unused_pipelines_are_bounded(vulkan: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(vulkan, VulkanDevice)
    monkeypatch.setattr("tflite_vk.runtime.vulkan.pipelines.MAX_IDLE", 4)
    assert MAX_IDLE > 4
    for local in range(1, 12):
        made = chain(1, 64)
        made.dispatches[0] = dataclasses.replace(
            made.dispatches[0],
            kernel=dataclasses.replace(
                made.dispatches[0].kernel, spec=(local, 1, 1, *made.dispatches[0].kernel.spec[3:])
            ),
            groups=(64, 1, 1),
        )
        executable = compile_program(vulkan, made)
        floats(executable.input_words(0))[:] = local
        executable.run()
        assert (floats(executable.output_words(1)) == local + 1).all()
        executable.close()
    assert len(vulkan.pipelines._idle) <= 4


@pytest.mark.parametrize("dispatcher", ["vulkan", "kompute"])
def test_a_device_closes_its_executables(dispatcher: str) -> None:
    info = open_runtime(dispatcher).info
    device: Any = (KomputeDevice if dispatcher == "kompute" else VulkanDevice)(info)
    executables = [compile_program(device, chain(2, 64)) for _ in range(3)]
    view = executables[0].input_words(0)
    device.close()
    device.close()
    assert device.is_closed
    with pytest.raises(DeviceError, match="closed"):
        executables[1].run()
    with pytest.raises(DeviceError, match="closed; open it again"):
        compile_program(device, chain(1, 16))
    view[:] = 1
    assert (view == 1).all()
    for executable in executables:
        executable.close()
    assert (view == 1).all()


def test_an_executable_keeps_its_device() -> None:
    executable = compile_program(_another_device(), chain(2, 64))
    gc.collect()
    floats(executable.input_words(0))[:] = 1
    executable.run()
    assert (floats(executable.output_words(2)) == 3).all()


def test_devices_come_and_go() -> None:
    for i in range(5):
        device = _another_device()
        executable = compile_program(device, chain(2, 64))
        executable.run()
        if i % 2:
            executable.close()
        del executable
        device.close()
    gc.collect()


def _another_device() -> VulkanDevice:
    from tests.conformance.conftest import open_runtime

    return VulkanDevice(open_runtime("vulkan").info)


def test_a_failed_compile_leaves_nothing(vulkan: Device) -> None:
    before = _resident_bytes()
    too_many = vulkan.info.limits.max_workgroup_count[0] + 1
    for _ in range(20):
        made = chain(1, 1 << 18)
        made.dispatches[0] = dataclasses.replace(made.dispatches[0], groups=(too_many, 1, 1))
        with pytest.raises(DeviceError, match="workgroups"):
            compile_program(vulkan, made)
    assert _resident_bytes() - before < 4 << 20
    executable = compile_program(vulkan, chain(1, 64))
    floats(executable.input_words(0))[:] = np.float32(0.5)
    executable.run()
    assert (floats(executable.output_words(1)) == 1.5).all()
    executable.close()


def _kernel(number: int) -> Program:
    """A program of one kernel, a different one for each number."""
    made = chain(1, 64)
    first = made.dispatches[0]
    spec = (number, 1, 1, *first.kernel.spec[3:])
    made.dispatches[0] = dataclasses.replace(
        first, kernel=dataclasses.replace(first.kernel, spec=spec), groups=(64, 1, 1)
    )
    return made


def test_garbage_collected_while_pipelines_are_made(
    vulkan: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Collected by a thread that makes one: it neither waits nor takes away what is asked for."""
    assert isinstance(vulkan, VulkanDevice)
    monkeypatch.setattr("tflite_vk.runtime.vulkan.pipelines.MAX_IDLE", 2)
    compile_program(vulkan, _kernel(1)).close()
    loops = []
    for number in (2, 3, 4):
        loop: list[Any] = [compile_program(vulkan, _kernel(number))]
        loop.append(loop)
        loops.append(loop)
    assert len(vulkan.pipelines._idle) <= 2
    cook = vulkan.pipelines._cook

    def collect_and_cook(recipe: Any) -> Any:
        loops.clear()
        gc.collect()
        return cook(recipe)

    monkeypatch.setattr(vulkan.pipelines, "_cook", collect_and_cook)
    kernels = [_kernel(number).dispatches[0].kernel for number in (1, 5, 6, 7)]
    found = vulkan.pipelines.acquire(kernels)
    assert len({id(p) for p in found}) == 4
    assert all(p.users == 1 for p in found)
    for kernel in kernels:
        vulkan.pipelines.release(kernel)
    assert len(vulkan.pipelines._idle) <= 2
