"""Dispatches see what earlier ones wrote, whatever memory they share."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conformance.programs import (
    Floats,
    ProgramBuilder,
    chain,
    compile_program,
    floats,
    random_program,
)
from tflite_vk.memory import plan_memory
from tflite_vk.runtime.device import Device


@pytest.mark.parametrize("length", [2, 17, 100])
def test_a_chain_of_dependent_dispatches(computing: Device, length: int) -> None:
    executable = compile_program(computing, chain(length, 1 << 14))
    given = np.arange(1 << 14, dtype=np.float32)
    floats(executable.input_words(0))[:] = given
    executable.run()
    assert np.array_equal(floats(executable.output_words(length)), given + length)
    executable.close()


def test_branches_join(computing: Device) -> None:
    made = ProgramBuilder()
    x = made.buffer("input", 1 << 14)
    ends = []
    for branch in range(5):
        last = x
        for _ in range(branch + 1):
            after = made.buffer("temporary", 1 << 14)
            made.add_number(last, after, 1.0)
            last = after
        ends.append(last)
    total = ends[0]
    for i, end in enumerate(ends[1:]):
        after = made.buffer("output" if i == 3 else "temporary", 1 << 14)
        made.add(total, end, after)
        total = after
    executable = compile_program(computing, made)
    for value in (0, 10):
        floats(executable.input_words(x))[:] = value
        executable.run()
        assert (floats(executable.output_words(total)) == 5 * value + 15).all()
    executable.close()


def test_shared_memory_is_not_overwritten_too_early(computing: Device) -> None:
    # The plan gives a temporary's memory to another as soon as its last reader is placed: that
    # reader and the new owner make a write-after-read hazard, and two owners a write-after-write.
    made = ProgramBuilder()
    x = made.buffer("input", 1 << 16)
    outputs = []
    for i in range(12):
        t, y = made.buffer("temporary", 1 << 16), made.buffer("output", 1 << 16)
        made.add_number(x, t, float(i))
        made.multiply_number(t, y, 2.0)
        outputs.append(y)
    plan = plan_memory(made.program())
    assert plan.arena_words == 1 << 16, "the test needs temporaries that share memory"
    executable = compile_program(computing, made)
    floats(executable.input_words(x))[:] = np.arange(1 << 16) % 1000
    executable.run()
    for i, y in enumerate(outputs):
        want = (np.arange(1 << 16) % 1000 + i) * 2
        assert np.array_equal(floats(executable.output_words(y)), want.astype(np.float32)), i
    executable.close()


@pytest.mark.parametrize("seed", range(8))
def test_any_order_of_reads_and_writes(computing: Device, seed: int) -> None:
    made = random_program(seed)
    executable = compile_program(computing, made)
    rng = np.random.default_rng(seed)
    memory: dict[int, Floats] = {}
    for _ in range(2):  # the second run finds what the first one left
        for x in (0, 1):
            memory[x] = rng.integers(-9, 9, made.buffers[x].words).astype(np.float32)
            floats(executable.input_words(x))[:] = memory[x]
        made.compute(memory)
        executable.run()
        for b in made.buffers:
            if b.kind == "output":
                assert np.array_equal(floats(executable.output_words(b.id)), memory[b.id]), b.name
    executable.close()


def test_repeated_runs_give_the_same_bits(computing: Device) -> None:
    made = random_program(99, 4096)
    executable = compile_program(computing, made)
    for x in (0, 1):
        floats(executable.input_words(x))[:] = np.arange(4096) % 17
    seen = set()
    for _ in range(100):
        executable.run()
        seen.add(
            b"".join(
                executable.output_words(b.id).tobytes() for b in made.buffers if b.kind == "output"
            )
        )
    assert len(seen) == 1
    executable.close()
