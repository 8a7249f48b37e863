"""Memory planning: buffers whose lives don't overlap share memory. Pure functions.

Two plans come from the same lives: shared allocations (for Kompute, which binds an allocation
whole) and offsets in one arena (for the Vulkan dispatcher). Both place one buffer after another at
the best fitting free place. Allocations take the largest first: "greedy by size" of Pisarchyk and
Lee, "Efficient Memory Management for Deep Neural Net Inference" (2020). The arena tries that
order, their "greedy by breadth" and two more, and keeps the smallest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tflite_vk.program import MemoryPlan, Program
from tflite_vk.shape import round_up

Array = npt.NDArray[np.int64]


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


def _words_alive(all_lives: list[Life]) -> Array:
    """Sum of the temporaries alive at each dispatch."""
    steps = max((x.last for x in all_lives), default=-1) + 2
    change = np.zeros(steps, np.int64)
    np.add.at(change, [x.first for x in all_lives], [x.words for x in all_lives])
    np.add.at(change, [x.last + 1 for x in all_lives], [-x.words for x in all_lives])
    return np.cumsum(change)


def lower_bound_words(all_lives: list[Life]) -> int:
    """Largest sum of the temporaries alive at one dispatch."""
    return int(_words_alive(all_lives).max()) if all_lives else 0


class _Placed:
    """Lives that have a place, in arrays: what one overlaps is found among all of them at once."""

    def __init__(self, count: int) -> None:
        self._first, self._last = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self._places = np.zeros((count, 2), np.int64)
        self._count = 0

    def add(self, life: Life, *place: int) -> None:
        """Note where a life was put."""
        at = self._count
        self._first[at], self._last[at] = life.first, life.last
        self._places[at, : len(place)] = place
        self._count += 1

    def overlapping(self, life: Life) -> Array:
        """Places of those alive together with a life."""
        n = self._count
        together = (self._first[:n] <= life.last) & (self._last[:n] >= life.first)
        found: Array = self._places[:n][together]
        return found


def _by_size(all_lives: list[Life]) -> list[Life]:
    return sorted(all_lives, key=lambda x: (-x.words, x.first, x.buffer))


def _share_slots(all_lives: list[Life]) -> tuple[dict[int, int], list[int]]:
    """Assign each life to a shared allocation; returns slot by buffer, and slot sizes."""
    placed = _Placed(len(all_lives))
    sizes: list[int] = []
    where: dict[int, int] = {}
    for life in _by_size(all_lives):
        is_free = np.ones(len(sizes), np.bool_)
        is_free[placed.overlapping(life)[:, 0]] = False
        # Largest first, so every free slot is large enough: take the tightest.
        free = np.flatnonzero(is_free).tolist()
        slot = min(free, key=lambda i: (sizes[i], i), default=len(sizes))
        if slot == len(sizes):
            sizes.append(life.words)
        placed.add(life, slot)
        where[life.buffer] = slot
    return where, sizes


def _by_breadth(all_lives: list[Life]) -> list[Life]:
    """Buffers of the dispatch with most memory alive first, its largest first."""
    sums = _words_alive(all_lives).tolist()
    waiting = _by_size(all_lives)
    order: list[Life] = []
    for step in sorted({x.first for x in all_lives}, key=lambda s: (-sums[s], s)):
        order += [x for x in waiting if x.first <= step <= x.last]
        waiting = [x for x in waiting if not x.first <= step <= x.last]
    return order


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
    placed = _Placed(len(order))
    offsets: dict[int, int] = {}
    size = 0
    for life in order:
        offset = _tightest_gap(placed.overlapping(life), life.words)
        offsets[life.buffer] = offset
        placed.add(life, offset, round_up(offset + life.words, alignment_words))
        size = max(size, offset + life.words)
    return offsets, size


def _tightest_gap(taken: Array, words: int) -> int:
    """Start of the smallest gap that is large enough; else the end of everything.

    Args:
        taken: start and aligned end of each range.
        words: how many are wanted.
    """
    taken = taken[np.lexsort((taken[:, 1], taken[:, 0]))]
    # Where everything up to a range has ended: where the gap before the next one starts.
    ends = np.maximum.accumulate(np.concatenate(([0], taken[:, 1])))
    gaps = taken[:, 0] - ends[:-1]
    fits = np.flatnonzero(gaps >= words)
    return int(ends[fits[np.argmin(gaps[fits])]] if fits.size else ends[-1])


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
