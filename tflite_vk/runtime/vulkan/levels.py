"""Which dispatches may overlap: hazards by the bytes they touch. Pure functions."""

from __future__ import annotations

from bisect import bisect_left

from tflite_vk.program import Program
from tflite_vk.runtime.vulkan.placement import Place, Placement

_NEVER = -1


class _History:
    """When each byte of one region was last written and read, in pieces of equal history."""

    def __init__(self) -> None:
        self._starts = [0]
        self._written = [_NEVER]
        self._read = [_NEVER]

    def _pieces(self, place: Place) -> slice:
        """The pieces of a place, cut so that they begin and end with it."""
        return slice(self._cut(place.offset), self._cut(place.end))

    def _cut(self, at: int) -> int:
        i = bisect_left(self._starts, at)
        if i == len(self._starts) or self._starts[i] != at:
            self._starts.insert(i, at)
            self._written.insert(i, self._written[i - 1])
            self._read.insert(i, self._read[i - 1])
        return i

    def last_write(self, place: Place) -> int:
        """Level of the last write to any of its bytes."""
        return max(self._written[self._pieces(place)])

    def last_use(self, place: Place) -> int:
        """Level of the last write or read of any of its bytes."""
        pieces = self._pieces(place)
        return max(*self._written[pieces], *self._read[pieces])

    def read(self, place: Place, level: int) -> None:
        """Note a read."""
        pieces = self._pieces(place)
        self._read[pieces] = [max(level, before) for before in self._read[pieces]]

    def write(self, place: Place, level: int) -> None:
        """Note a write, behind everything before it: what those bytes were no longer counts."""
        pieces = self._pieces(place)
        self._starts[pieces], self._written[pieces] = [place.offset], [level]
        self._read[pieces] = [_NEVER]


def dispatch_levels(program: Program, placement: Placement) -> list[list[int]]:
    """Group dispatches into levels: a barrier between levels, none inside.

    A dispatch comes one level behind the last one that it must wait for, which is one that wrote
    what it reads (read after write), or read or wrote what it writes (write after read, write
    after write). Bytes count, not buffers: the plan lets buffers share memory, and that makes
    hazards too. Independent branches of a graph thus run side by side, wherever they stand in it.

    Returns:
        Indices of dispatches, each level ascending.
    """
    histories = [_History() for _ in placement.regions]
    levels: list[list[int]] = []
    for index, dispatch in enumerate(program.dispatches):
        reads = [placement.places[b] for b in dispatch.buffers("r")]
        writes = [placement.places[b] for b in dispatch.buffers("w")]
        before = [histories[p.region].last_write(p) for p in reads]
        before += [histories[p.region].last_use(p) for p in writes]
        level = 1 + max(before, default=_NEVER)
        for place in reads:
            histories[place.region].read(place, level)
        for place in writes:
            histories[place.region].write(place, level)
        if level == len(levels):
            levels.append([])
        levels[level].append(index)
    return levels
