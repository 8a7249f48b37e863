"""State buffers keep their content from run to run, until they are reset."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conformance.programs import ProgramBuilder, compile_program, floats
from tflite_vk.runtime.device import Device, Executable


def _counter(first: float | None) -> tuple[ProgramBuilder, int, int]:
    """A state that grows by the input at each run, and an output that is ten times the state."""
    made = ProgramBuilder("counter")
    x = made.buffer("input", 64)
    data = None if first is None else np.full(64, first, np.float32)
    state = made.buffer("state", 64, data)
    grown = made.buffer("temporary", 64)
    y = made.buffer("output", 64)
    made.add(state, x, grown)
    made.add_number(grown, state, 0.0)
    made.multiply_number(state, y, 10.0)
    return made, state, y


def _run(executable: Executable, y: int, value: float) -> float:
    floats(executable.input_words(0))[:] = value
    executable.run()
    got = floats(executable.output_words(y))
    assert (got == got[0]).all()
    return float(got[0])


@pytest.mark.parametrize("first", [None, 0.0, 5.0])
def test_a_state_is_kept_and_reset(computing: Device, first: float | None) -> None:
    made, _, y = _counter(first)
    executable = compile_program(computing, made)
    start = first or 0.0
    for _ in range(2):
        assert _run(executable, y, 1) == 10 * (start + 1)
        assert _run(executable, y, 2) == 10 * (start + 3)
        assert _run(executable, y, 0) == 10 * (start + 3)
        executable.reset_states()
    executable.close()


def test_two_executables_have_states_of_their_own(computing: Device) -> None:
    made, _, y = _counter(0.0)
    one, two = compile_program(computing, made), compile_program(computing, made)
    assert _run(one, y, 1) == 10
    assert _run(two, y, 5) == 50
    assert _run(one, y, 1) == 20
    one.close()
    assert _run(two, y, 5) == 100
    two.close()


def test_a_state_is_seen_after_a_run(computing: Device) -> None:
    made, state, y = _counter(5.0)
    executable = compile_program(computing, made)
    assert (floats(executable.output_words(state)) == 5).all()
    _run(executable, y, 2)
    assert (floats(executable.output_words(state)) == 7).all()
    executable.reset_states()
    assert (floats(executable.output_words(state)) == 5).all()
    executable.close()


def test_a_state_written_by_the_host_counts_in_the_next_run(
    computing: Device, request: pytest.FixtureRequest
) -> None:
    made, state, y = _counter(5.0)
    executable = compile_program(computing, made)
    _run(executable, y, 2)
    floats(executable.input_words(state))[:] = 100
    assert _run(executable, y, 1) == 1010
    executable.close()


def test_reset_of_the_null_device(runtime: Device) -> None:
    made, state, _ = _counter(5.0)
    executable = compile_program(runtime, made)
    executable.input_words(state)[:] = 0
    executable.reset_states()
    assert (floats(executable.input_words(state)) == 5).all()
    executable.close()
