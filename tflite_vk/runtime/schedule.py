"""Which dispatches depend on which, by the memory they touch."""

from __future__ import annotations

from tflite_vk.program import MemoryPlan, Program


def hazard_free_runs(program: Program, plan: MemoryPlan) -> list[range]:
    """Split the dispatches, in order, into runs without a hazard inside.

    A run ends before a dispatch that reads what the run wrote, or writes what it read or wrote
    (allocations count, not buffers: reuse makes hazards too). Between two runs stands a barrier,
    or a submit of its own.
    """
    runs: list[range] = []
    start = 0
    read: set[int] = set()
    written: set[int] = set()
    for i, dispatch in enumerate(program.dispatches):
        reads = {plan.slot[b] for b in dispatch.buffers("r")}
        writes = {plan.slot[b] for b in dispatch.buffers("w")}
        if reads & written or writes & (read | written):
            runs.append(range(start, i))
            start, read, written = i, set(), set()
        read |= reads
        written |= writes
    if start < len(program.dispatches):
        runs.append(range(start, len(program.dispatches)))
    return runs
