"""Memory planning: buffers whose lives don't overlap share memory. Pure functions.

Two plans come from the same lives: shared allocations (for Kompute, which binds an allocation
whole) and offsets in one arena (for the Vulkan dispatcher). Both place one buffer after another at
the best fitting free place. Allocations take the largest first: "greedy by size" of Pisarchyk and
Lee, "Efficient Memory Management for Deep Neural Net Inference" (2020). The arena tries that
order, their "greedy by breadth" and two more, and keeps the smallest.
"""

from __future__ import annotations

from dataclasses import dataclass

from tflite_vk.program import MemoryPlan, Program
from tflite_vk.shape import round_up


@dataclass(frozen=True)
class Life:
    """A temporary buffer is alive from its first to its last dispatch, both included."""

    buffer: int
    words: int
    first: int
    last: int

    def overlaps(self, other: Life) -> bool:
        """True where both are alive at some dispatch."""
        return self.first <= other.last and other.first <= self.last


def lives(program: Program) -> list[Life]:
    """Lives of the temporaries, by buffer id."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for i, dispatch in enumerate(program.dispatches):
        for binding in dispatch.bindings:
            first.setdefault(binding.buffer, i)
            last[binding.buffer] = i
    return [
        Life(b.id, b.words, first[b.id], last[b.id])
        for b in program.buffers
        if b.kind == "temporary" and b.id in first
    ]


def lower_bound_words(all_lives: list[Life]) -> int:
    """Largest sum of the temporaries alive at one dispatch."""
    steps = {life.first for life in all_lives}
    return max(
        (sum(x.words for x in all_lives if x.first <= step <= x.last) for step in steps), default=0
    )


def _by_size(all_lives: list[Life]) -> list[Life]:
    return sorted(all_lives, key=lambda x: (-x.words, x.first, x.buffer))


def _share_slots(all_lives: list[Life]) -> tuple[dict[int, int], list[int]]:
    """Assign each life to a shared allocation; returns slot by buffer, and slot sizes."""
    slots: list[list[Life]] = []
    sizes: list[int] = []
    where: dict[int, int] = {}
    for life in _by_size(all_lives):
        free = [
            i for i, users in enumerate(slots) if not any(life.overlaps(user) for user in users)
        ]
        # Largest first, so every free slot is large enough: take the tightest.
        slot = min(free, key=lambda i: (sizes[i], i), default=len(slots))
        if slot == len(slots):
            slots.append([])
            sizes.append(life.words)
        slots[slot].append(life)
        where[life.buffer] = slot
    return where, sizes


def _by_breadth(all_lives: list[Life]) -> list[Life]:
    """Buffers of the dispatch with most memory alive first, its largest first."""

    def alive(step: int) -> list[Life]:
        return [x for x in all_lives if x.first <= step <= x.last]

    steps = sorted({x.first for x in all_lives}, key=lambda s: (-sum(x.words for x in alive(s)), s))
    return list(dict.fromkeys(x for step in steps for x in _by_size(alive(step))))


def _pack_arena(all_lives: list[Life], alignment_words: int) -> tuple[dict[int, int], int]:
    """Give each life an offset in one arena; returns offset by buffer, and the arena's size."""
    orders = [
        _by_size(all_lives),
        _by_breadth(all_lives),
        sorted(all_lives, key=lambda x: (x.first - x.last, -x.words, x.buffer)),
        sorted(all_lives, key=lambda x: (x.first, -x.words, x.buffer)),
    ]
    packed = [_pack_in_order(order, alignment_words) for order in orders]
    return min(packed, key=lambda offsets_and_size: offsets_and_size[1])


def _pack_in_order(order: list[Life], alignment_words: int) -> tuple[dict[int, int], int]:
    """Place lives one after another, each in the tightest gap, or behind all it overlaps."""
    placed: list[tuple[int, int, Life]] = []
    offsets: dict[int, int] = {}
    for life in order:
        taken = sorted((start, end) for start, end, x in placed if life.overlaps(x))
        best: tuple[int, int] | None = None
        cursor = 0
        for start, end in taken:
            gap = start - cursor
            if gap >= life.words and (best is None or gap < best[0]):
                best = (gap, cursor)
            cursor = max(cursor, round_up(end, alignment_words))
        offset = cursor if best is None else best[1]
        offsets[life.buffer] = offset
        placed.append((offset, offset + life.words, life))
    return offsets, max((end for _, end, _ in placed), default=0)


def plan_memory(program: Program, alignment_words: int = 64) -> MemoryPlan:
    """Plan a program's memory.

    Inputs, outputs, states and constants keep an allocation of their own; temporaries share.

    Args:
        program: verified program.
        alignment_words: alignment of arena offsets in words (Vulkan's
            minStorageBufferOffsetAlignment is at most 256 bytes).

    Returns:
        The plan; the same program always gives the same plan.
    """
    temporaries = lives(program)
    shared, sizes = _share_slots(temporaries)
    offsets, arena_words = _pack_arena(temporaries, alignment_words)
    slot: list[int] = []
    slot_words = list(sizes)
    for buffer in program.buffers:
        if buffer.id in shared:
            slot.append(shared[buffer.id])
        else:
            slot.append(len(slot_words))
            slot_words.append(buffer.words)
    return MemoryPlan(
        slot=tuple(slot),
        slot_words=tuple(slot_words),
        offset=offsets,
        arena_words=arena_words,
        lower_bound_words=lower_bound_words(temporaries),
    )
