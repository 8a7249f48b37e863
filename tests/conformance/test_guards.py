"""Guard words show a write behind a buffer, whatever buffer it is."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.conformance.programs import (
    ProgramBuilder,
    chain,
    compile_program,
    floats,
    random_program,
)
from tflite_vk.memory import plan_memory
from tflite_vk.program import BufferKind
from tflite_vk.runtime.device import Device


def test_a_good_program_touches_no_guard(runtime: Device) -> None:
    for made in (chain(5, 100), random_program(3)):
        executable = compile_program(runtime, made, guard_words=16)
        for _ in range(2):
            executable.run()
            assert executable.check_guards() == []
        executable.close()


def test_guards_change_no_result(computing: Device) -> None:
    executable = compile_program(computing, chain(5, 100), guard_words=16)
    floats(executable.input_words(0))[:] = np.arange(100)
    executable.run()
    assert np.array_equal(floats(executable.output_words(5)), np.arange(100) + np.float32(5))
    executable.close()


@pytest.mark.parametrize("kind", ["output", "temporary", "state", "input", "constant"])
def test_a_write_behind_a_buffer_is_found(computing: Device, kind: BufferKind) -> None:
    made = ProgramBuilder()
    source = made.buffer("input", 128)
    data = np.zeros(64, np.float32) if kind in ("state", "constant") else None
    before, target, after = (made.buffer(kind, 64, data) for _ in range(3))
    for y in (before, target, after):
        made.add_number(source, y, 0.0)
    program = made.program()
    # One group of four values more than the buffer holds: what a wrong bound in a kernel does.
    wrong = program.dispatches[1]
    push = (*wrong.push[:4], 17, 17)
    dispatches = [*program.dispatches]
    dispatches[1] = dataclasses.replace(wrong, push=push)
    program = dataclasses.replace(program, dispatches=tuple(dispatches))
    executable = computing.compile(program, plan_memory(program), guard_words=16)
    floats(executable.input_words(source))[:] = 1
    assert executable.check_guards() == []
    executable.run()
    if kind == "temporary" and computing.dispatcher == "kompute":
        # Kompute has a guard behind each allocation, which the three temporaries share.
        assert len(executable.check_guards()) == 1
    else:
        assert executable.check_guards() == [program.buffers[target].name]
    executable.close()


def test_guards_hold_nan_before_the_first_run(vulkan: Device) -> None:
    # Reading what nobody has written must show, or tests pass on memory that happens to be zero.
    made = ProgramBuilder()
    unwritten, y = made.buffer("temporary", 64), made.buffer("output", 64)
    made.add_number(unwritten, y, 1.0)
    executable = compile_program(vulkan, made, guard_words=4)
    executable.run()
    assert np.isnan(floats(executable.output_words(y))).all()
    executable.close()


def test_without_guards_nothing_is_reported(runtime: Device) -> None:
    executable = compile_program(runtime, chain(1, 16))
    executable.run()
    assert executable.check_guards() == []
    executable.close()
