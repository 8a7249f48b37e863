"""Profiling gives one time for each dispatch, in the program's order."""

from __future__ import annotations

import pytest

from tests.conformance.programs import (
    ProgramBuilder,
    chain,
    compile_program,
    floats,
    random_program,
)
from tflite_vk.errors import DeviceError
from tflite_vk.runtime.device import Device


def test_one_number_for_each_dispatch(runtime: Device) -> None:
    made = random_program(5)
    executable = compile_program(runtime, made, profiling=True)
    for _ in range(3):
        executable.run()
        times = executable.dispatch_us()
        assert len(times) == len(made.dispatches)
        assert all(0 <= t < 1e7 for t in times)
    executable.close()


def test_the_large_dispatch_takes_longest(computing: Device) -> None:
    made = ProgramBuilder()
    x = made.buffer("input", 1 << 22)
    sizes = [64, 64, 1 << 22, 64, 64]
    for words in sizes:
        made.add_number(x, made.buffer("output", words), 1.0)
    executable = compile_program(computing, made, profiling=True)
    executable.run()  # compiles
    best = [min(times) for times in zip(*(_times(executable) for _ in range(5)), strict=True)]
    assert best.index(max(best)) == sizes.index(1 << 22), best
    executable.close()


def _times(executable: object) -> list[float]:
    executable.run()  # type: ignore[attr-defined]
    times: list[float] = executable.dispatch_us()  # type: ignore[attr-defined]
    return times


def test_profiling_changes_no_result(computing: Device) -> None:
    executable = compile_program(computing, chain(6, 256), profiling=True)
    floats(executable.input_words(0))[:] = 1
    executable.run()
    assert (floats(executable.output_words(6)) == 7).all()
    executable.close()


def test_times_need_profiling(computing: Device) -> None:
    executable = compile_program(computing, chain(1, 16))
    executable.run()
    with pytest.raises(DeviceError, match="profiling=True"):
        executable.dispatch_us()
    executable.close()


def test_times_need_a_run(vulkan: Device) -> None:
    # The query would wait forever for timestamps that no run has written.
    executable = compile_program(vulkan, chain(1, 16), profiling=True)
    with pytest.raises(DeviceError, match="run the program first"):
        executable.dispatch_us()
    executable.close()


def test_an_empty_program_has_no_times(computing: Device) -> None:
    executable = compile_program(computing, ProgramBuilder(), profiling=True)
    executable.run()
    assert executable.dispatch_us() == []
    executable.close()
