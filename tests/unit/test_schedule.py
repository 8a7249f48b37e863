"""Hazard-free runs: barriers where memory is shared, none where it isn't."""

from __future__ import annotations

from tflite_vk.memory import plan_memory
from tflite_vk.program import Binding, Buffer, Dispatch, Kernel, Program
from tflite_vk.runtime.schedule import hazard_free_runs


def _program(dispatches: list[tuple[list[int], list[int]]]) -> Program:
    count = 1 + max(b for reads, writes in dispatches for b in (*reads, *writes))
    # Outputs keep allocations of their own: what is tested is the schedule, not the plan.
    buffers = tuple(Buffer(i, f"b{i}", 8, "output") for i in range(count))
    return Program(
        "test",
        buffers,
        tuple(
            Dispatch(
                Kernel("none", ()),
                (*(Binding(b, "r") for b in reads), *(Binding(b, "w") for b in writes)),
                (),
                (1, 1, 1),
                "test",
                0,
            )
            for reads, writes in dispatches
        ),
    )


def _runs(dispatches: list[tuple[list[int], list[int]]]) -> list[list[int]]:
    program = _program(dispatches)
    return [list(run) for run in hazard_free_runs(program, plan_memory(program))]


def test_read_after_write() -> None:
    assert _runs([([0], [1]), ([1], [2])]) == [[0], [1]]


def test_write_after_read() -> None:
    assert _runs([([0], [1]), ([2], [0])]) == [[0], [1]]


def test_write_after_write() -> None:
    assert _runs([([0], [1]), ([2], [1])]) == [[0], [1]]


def test_independent_dispatches_stay_together() -> None:
    assert _runs([([0], [1]), ([0], [2]), ([0], [3]), ([1, 2, 3], [4])]) == [[0, 1, 2], [3]]


def test_reuse_of_an_allocation_is_a_hazard() -> None:
    chain = [
        Buffer(0, "in", 8, "input"),
        *(Buffer(i, f"t{i}", 8, "temporary") for i in range(1, 4)),
    ]
    buffers = (*chain, Buffer(4, "out", 8, "output"))
    reads_writes = [([0], [1]), ([1], [2]), ([0], [3]), ([2, 3], [4])]
    program = Program(
        "reuse",
        buffers,
        tuple(
            Dispatch(
                Kernel("none", ()),
                (*(Binding(b, "r") for b in r), *(Binding(b, "w") for b in w)),
                (),
                (1, 1, 1),
                "test",
                0,
            )
            for r, w in reads_writes
        ),
    )
    plan = plan_memory(program)
    assert plan.slot[3] == plan.slot[1]  # t1 is dead when t3 is written
    assert [list(r) for r in hazard_free_runs(program, plan)] == [[0], [1], [2], [3]]
