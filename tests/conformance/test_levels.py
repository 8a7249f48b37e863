"""Barriers where a hazard is, and nowhere else; and memory laid out as planned. No device needed."""

from __future__ import annotations

import itertools

import pytest

from tests.conformance.programs import ProgramBuilder, chain, random_program
from tflite_vk.device_info import DeviceLimits
from tflite_vk.errors import OptionError
from tflite_vk.memory import plan_memory
from tflite_vk.program import MemoryPlan, Program
from tflite_vk.runtime.vulkan.levels import dispatch_levels
from tflite_vk.runtime.vulkan.memory import (
    DEVICE_LOCAL,
    HOST_CACHED,
    HOST_COHERENT,
    choose_host_access,
    staged_kinds,
)
from tflite_vk.runtime.vulkan.placement import Place, Placement, Region, place_buffers

LIMITS = DeviceLimits(storage_buffer_offset_alignment=64)


def _placed(program: Program, **limits: object) -> Placement:
    chosen = DeviceLimits(**{"storage_buffer_offset_alignment": 64, **limits})  # type: ignore[arg-type]
    return place_buffers(program, plan_memory(program), chosen)


def _bytes(program: Program, placement: Placement, index: int, access: str) -> set[tuple[int, int]]:
    """Every (region, 16-byte piece) a dispatch touches, by brute force."""
    found = set()
    for binding in program.dispatches[index].bindings:
        if access in binding.access:
            place = placement.places[binding.buffer]
            pieces = range(place.offset // 16, -(-place.end // 16))
            found |= {(place.region, piece) for piece in pieces}
    return found


@pytest.mark.parametrize("seed", range(20))
def test_every_hazard_has_a_barrier_and_order_is_kept(seed: int) -> None:
    program = random_program(seed, 64).program()
    placement = _placed(program)
    levels = dispatch_levels(program, placement)
    level_of = {index: n for n, level in enumerate(levels) for index in level}
    assert sorted(level_of) == list(range(len(program.dispatches)))
    for i, j in itertools.combinations(range(len(program.dispatches)), 2):
        writes_i = _bytes(program, placement, i, "w")
        writes_j = _bytes(program, placement, j, "w")
        reads_i = _bytes(program, placement, i, "r")
        reads_j = _bytes(program, placement, j, "r")
        if writes_i & reads_j or reads_i & writes_j or writes_i & writes_j:
            assert level_of[i] < level_of[j], (i, j)


def test_a_chain_has_a_barrier_at_each_step() -> None:
    program = chain(5).program()
    assert dispatch_levels(program, _placed(program)) == [[0], [1], [2], [3], [4]]


def _branches(kind: str) -> Program:
    made = ProgramBuilder()
    x = made.buffer("input", 64)
    ends = []
    for _ in range(3):  # one branch behind the other, as a graph lists them
        last = x
        for _ in range(2):
            after = made.buffer(kind, 64)  # type: ignore[arg-type]
            made.add_number(last, after, 1.0)
            last = after
        ends.append(last)
    y, z = made.buffer("temporary", 64), made.buffer("output", 64)
    made.add(ends[0], ends[1], y)
    made.add(y, ends[2], z)
    return made.program()


def test_branches_run_side_by_side() -> None:
    program = _branches("output")
    assert dispatch_levels(program, _placed(program)) == [[0, 2, 4], [1, 3, 5], [6], [7]]


def test_shared_memory_keeps_branches_apart() -> None:
    program = _branches("temporary")
    placement = _placed(program)
    sharing = [
        (a, b)
        for a, b in itertools.combinations(placement.places, 2)
        if placement.places[a].overlaps(placement.places[b])
    ]
    assert sharing, "the test needs temporaries that share memory"
    levels = dispatch_levels(program, placement)
    for a, b in sharing:
        users = [
            {n for n, level in enumerate(levels) for i in level if x in _buffers(program, i)}
            for x in (a, b)
        ]
        assert not users[0] & users[1]


def _buffers(program: Program, index: int) -> set[int]:
    return {b.buffer for b in program.dispatches[index].bindings}


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("guard_words", [0, 4])
def test_places_are_aligned_inside_and_apart(seed: int, guard_words: int) -> None:
    program = random_program(seed, 4 * (seed + 1)).program()
    plan = plan_memory(program)
    placement = place_buffers(program, plan, LIMITS, guard_words)
    for buffer, place in placement.places.items():
        assert place.offset % 64 == 0
        assert place.size == 4 * program.buffers[buffer].words
        assert place.end + 4 * guard_words <= placement.regions[place.region].size
        assert placement.regions[place.region].kind == program.buffers[buffer].kind
    for a, b in itertools.combinations(placement.places, 2):
        kinds = {program.buffers[a].kind, program.buffers[b].kind}
        if placement.places[a].overlaps(placement.places[b]):
            assert kinds == {"temporary"}
            assert not guard_words
    assert len(placement.regions) == len({r.kind for r in placement.regions})


def test_the_arena_is_the_plan() -> None:
    program = random_program(3, 400).program()
    plan = plan_memory(program)
    placement = place_buffers(program, plan, LIMITS)
    for buffer, offset in plan.offset.items():
        assert placement.places[buffer].offset == 4 * offset
    arena = next(r for r in placement.regions if r.kind == "temporary")
    assert arena.size == 4 * plan.arena_words


@pytest.mark.parametrize("reason", ["too large", "misaligned", "no offsets"])
def test_slots_stand_in_for_an_arena(reason: str) -> None:
    program = random_program(3, 400).program()
    plan = plan_memory(program)
    limits = LIMITS
    if reason == "too large":
        limits = DeviceLimits(max_memory_allocation_bytes=2000, storage_buffer_offset_alignment=64)
    elif reason == "misaligned":
        limits = DeviceLimits(storage_buffer_offset_alignment=512)
        assert any(4 * o % 512 for o in plan.offset.values())
    else:
        plan = MemoryPlan(plan.slot, plan.slot_words, {}, 0, 0)
    placement = place_buffers(program, plan, limits)
    assert all(r.size <= limits.max_memory_allocation_bytes for r in placement.regions)
    for a, b in itertools.combinations(plan_memory(program).offset, 2):
        is_shared = placement.places[a].overlaps(placement.places[b])
        assert is_shared == (plan.slot[a] == plan.slot[b])
        assert placement.places[a].offset % limits.storage_buffer_offset_alignment == 0


def test_long_programs_are_no_burden() -> None:
    # Thousands of temporaries in the same few places: looking at all pairs would take minutes.
    made = ProgramBuilder()
    last = made.buffer("input", 512)
    for i in range(4000):
        after = made.buffer("temporary", 64 * (1 + i % 8))
        made.add_number(last, after, 1.0)
        last = after
    program = made.program()
    half = 2048
    places = {b.id: Place(0, half * (b.id % 2), 4 * b.words) for b in program.buffers}
    region = Region("temporary", 2 * half, program.buffers[0])
    levels = dispatch_levels(program, Placement((region,), places))
    assert levels == [[i] for i in range(4000)]


_BAR = DEVICE_LOCAL | HOST_COHERENT
_CACHED = HOST_COHERENT | HOST_CACHED


@pytest.mark.parametrize(
    ("flags", "inputs", "outputs"),
    [
        # lavapipe and other shared memory
        ([DEVICE_LOCAL | _CACHED], _BAR, DEVICE_LOCAL | _CACHED),
        # NVIDIA: reading device memory across PCIe is slow, so outputs are copied
        ([0, DEVICE_LOCAL, HOST_COHERENT, _CACHED, _BAR], _BAR, None),
        # a discrete GPU that shows the host none of its memory
        ([DEVICE_LOCAL, HOST_COHERENT, _CACHED], None, None),
        # a phone without cached memory: a copy would not help
        ([DEVICE_LOCAL, _BAR], _BAR, _BAR),
    ],
)
def test_host_access(flags: list[int], inputs: int | None, outputs: int | None) -> None:
    assert choose_host_access(flags, "input").direct == inputs
    assert choose_host_access(flags, "state").direct == inputs
    assert choose_host_access(flags, "output").direct == outputs
    for kind in ("input", "output", "state"):
        access = choose_host_access(flags, kind, is_staged=True)  # type: ignore[arg-type]
        assert access.direct is None
        assert access.staging


def test_staging_by_the_environment() -> None:
    assert staged_kinds(None) == staged_kinds("0") == staged_kinds("") == frozenset()
    assert staged_kinds("1") == {"input", "output", "state", "constant"}
    assert staged_kinds("output,state") == {"output", "state"}
    for text in ("yes", "temporary", "input output", ","):
        with pytest.raises(OptionError, match="TFLITE_VK_FORCE_STAGING"):
            staged_kinds(text)
