"""The memory plan: nothing alive together overlaps, and reuse is close to the bound."""

from __future__ import annotations

import time

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tflite_vk.memory import lives, plan_memory
from tflite_vk.program import Binding, Buffer, Dispatch, Kernel, Program


def _dispatch(reads: list[int], writes: list[int]) -> Dispatch:
    bindings = [*(Binding(b, "r") for b in reads), *(Binding(b, "w") for b in writes)]
    return Dispatch(Kernel("none", ()), tuple(bindings), (), (1, 1, 1), "test", 0)


def _chain(sizes: list[int]) -> Program:
    kinds = ["input", *["temporary"] * (len(sizes) - 2), "output"]
    buffers = tuple(
        Buffer(i, f"b{i}", words, kind)  # type: ignore[arg-type]
        for i, (words, kind) in enumerate(zip(sizes, kinds, strict=True))
    )
    return Program("chain", buffers, tuple(_dispatch([i], [i + 1]) for i in range(len(sizes) - 1)))


@st.composite
def programs(draw: st.DrawFn) -> Program:
    count = draw(st.integers(2, 14))
    buffers = [Buffer(0, "in", 8, "input")]
    dispatches = []
    for i in range(1, count):
        words = draw(st.integers(1, 500))
        kind = draw(st.sampled_from(["temporary", "temporary", "temporary", "output"]))
        buffers.append(Buffer(i, f"b{i}", words, kind))  # type: ignore[arg-type]
        reads = draw(st.lists(st.integers(0, i - 1), min_size=1, max_size=3, unique=True))
        dispatches.append(_dispatch(reads, [i]))
    return Program("random", tuple(buffers), tuple(dispatches))


@given(programs(), st.sampled_from([1, 4, 64]))
def test_live_buffers_never_overlap(program: Program, alignment: int) -> None:
    plan = plan_memory(program, alignment)
    alive = lives(program)
    for i, a in enumerate(alive):
        assert plan.offset[a.buffer] % alignment == 0
        assert plan.offset[a.buffer] + a.words <= plan.arena_words
        assert plan.slot_words[plan.slot[a.buffer]] >= a.words
        for b in alive[i + 1 :]:
            if a.overlaps(b):
                assert plan.slot[a.buffer] != plan.slot[b.buffer]
                first, second = sorted((a, b), key=lambda x: plan.offset[x.buffer])
                assert plan.offset[first.buffer] + first.words <= plan.offset[second.buffer]


@given(programs())
def test_only_temporaries_share(program: Program) -> None:
    plan = plan_memory(program)
    own = [plan.slot[b.id] for b in program.buffers if b.kind != "temporary"]
    assert len(set(own)) == len(own)
    shared = {plan.slot[life.buffer] for life in lives(program)}
    assert not shared & set(own)


@given(programs())
def test_the_plan_is_between_the_bound_and_no_reuse(program: Program) -> None:
    plan = plan_memory(program, 1)
    naive = sum(life.words for life in lives(program))
    assert plan.lower_bound_words <= plan.arena_words <= naive
    assert plan == plan_memory(program, 1)


def test_a_chain_needs_two_buffers() -> None:
    plan = plan_memory(_chain([8, 64, 64, 64, 64, 64, 8]))
    assert len({plan.slot[i] for i in range(1, 6)}) == 2
    assert plan.arena_words == plan.lower_bound_words == 128


def test_a_program_without_temporaries() -> None:
    plan = plan_memory(_chain([8, 8]))
    assert plan.arena_words == plan.lower_bound_words == 0
    assert plan.slot_words == (8, 8)


def test_thousands_of_long_lives_are_planned_quickly() -> None:
    # A loop over all pairs in Python took 9 s of processor time for these, and this takes one.
    rng = np.random.default_rng(0)
    buffers = [Buffer(0, "in", 8, "input")]
    dispatches = []
    for i in range(1, 2000):
        buffers.append(Buffer(i, f"b{i}", int(rng.integers(1, 5000)), "temporary"))
        dispatches.append(_dispatch(sorted({0, int(rng.integers(0, i))}), [i]))
    start = time.process_time()
    plan = plan_memory(Program("large", tuple(buffers), tuple(dispatches)))
    assert time.process_time() - start < 4
    assert plan.lower_bound_words <= plan.arena_words < 1.3 * plan.lower_bound_words
