"""Placement: every buffer of a program at an offset in one of a few allocations. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tflite_vk.device_info import DeviceLimits
from tflite_vk.errors import DeviceError
from tflite_vk.program import Buffer, BufferKind, MemoryPlan, Program
from tflite_vk.shape import round_up


@dataclass(frozen=True)
class Place:
    """Where a buffer lies.

    Attributes:
        region: position in `Placement.regions`.
        offset: first byte.
        size: in bytes, without guard words.
    """

    region: int
    offset: int
    size: int

    @property
    def end(self) -> int:
        """First byte behind it."""
        return self.offset + self.size

    def overlaps(self, other: Place) -> bool:
        """True where both share a byte."""
        return self.region == other.region and self.offset < other.end and other.offset < self.end


@dataclass(frozen=True)
class Region:
    """One allocation for buffers of one kind.

    Attributes:
        kind: of its buffers.
        size: in bytes.
        largest: its largest buffer, which a message about memory names.
    """

    kind: BufferKind
    size: int
    largest: Buffer

    def __str__(self) -> str:
        return (
            f"memory for {self.kind} buffers (the largest is {self.largest.name!r} of "
            f"{4 * self.largest.words} bytes)"
        )


@dataclass(frozen=True)
class Placement:
    """A program's memory.

    Attributes:
        regions: allocations to make.
        places: by buffer; a buffer that nothing uses has none.
    """

    regions: tuple[Region, ...]
    places: dict[int, Place]


class _Regions:
    """Regions while they are being filled, one behind the other for each kind."""

    def __init__(self, limit: int, alignment: int) -> None:
        self._limit = limit
        self._alignment = alignment
        self._kinds: list[BufferKind] = []
        self._sizes: list[int] = []
        self._largest: list[Buffer] = []
        self._open: dict[BufferKind, int] = {}
        self.places: dict[int, Place] = {}

    def add(self, kind: BufferKind, size: int, buffer: Buffer) -> tuple[int, int]:
        """Region and offset of `size` more bytes of a kind, in whose name `buffer` stands."""
        if size > self._limit:
            raise DeviceError(
                f"{kind} buffer {buffer.name!r} has {size} bytes (the device allocates at most "
                f"{self._limit} at once); leave its operator on the CPU (excluded_ops)"
            )
        region = self._open.get(kind)
        offset = 0
        if region is not None:
            offset = round_up(self._sizes[region], self._alignment)
        if region is None or offset + size > self._limit:
            region, offset = len(self._kinds), 0
            self._open[kind] = region
            self._kinds.append(kind)
            self._sizes.append(0)
            self._largest.append(buffer)
        self._sizes[region] = offset + size
        if buffer.words > self._largest[region].words:
            self._largest[region] = buffer
        return region, offset

    def put(self, buffer: Buffer, guard_bytes: int) -> None:
        """Give a buffer a place of its own."""
        size = 4 * buffer.words
        region, offset = self.add(buffer.kind, size + guard_bytes, buffer)
        self.places[buffer.id] = Place(region, offset, size)

    def finish(self) -> tuple[Region, ...]:
        """The regions."""
        return tuple(map(Region, self._kinds, self._sizes, self._largest))


def place_buffers(
    program: Program, plan: MemoryPlan, limits: DeviceLimits, guard_words: int = 0
) -> Placement:
    """Lay a program's buffers out.

    Temporaries share one arena by the plan's offsets, or the plan's shared slots where the device
    can't allocate the arena whole. Everything else has a place of its own, and so have the
    temporaries where guard words stand behind every buffer: a neighbour would overwrite them.

    Args:
        program: verified program.
        plan: its memory plan.
        limits: alignment and sizes the device asks for.
        guard_words: words kept free behind each buffer.

    Raises:
        DeviceError: a buffer is larger than the device binds or allocates.
    """
    used = {b.buffer for d in program.dispatches for b in d.bindings}
    for buffer in program.buffers:
        size, most = 4 * buffer.words, limits.max_storage_buffer_bytes
        if buffer.id in used and size > most:
            raise DeviceError(
                f"buffer {buffer.name!r} has {size} bytes (the device binds at most {most}, "
                "maxStorageBufferRange); leave its operator on the CPU (excluded_ops)"
            )
    regions = _Regions(limits.max_memory_allocation_bytes, limits.storage_buffer_offset_alignment)
    temporaries = [b for b in program.buffers if b.kind == "temporary" and b.id in used]
    for buffer in program.buffers:
        is_wanted = buffer.id in used or buffer.kind in ("input", "output", "state")
        if buffer.kind != "temporary" and is_wanted:
            regions.put(buffer, 4 * guard_words)
    if guard_words:
        for buffer in temporaries:
            regions.put(buffer, 4 * guard_words)
    elif temporaries:
        _place_temporaries(temporaries, plan, limits, regions)
    return Placement(regions.finish(), regions.places)


def _place_temporaries(
    temporaries: list[Buffer], plan: MemoryPlan, limits: DeviceLimits, regions: _Regions
) -> None:
    alignment = limits.storage_buffer_offset_alignment
    has_arena = 4 * plan.arena_words <= limits.max_memory_allocation_bytes and all(
        b.id in plan.offset and 4 * plan.offset[b.id] % alignment == 0 for b in temporaries
    )
    largest = max(temporaries, key=lambda b: b.words)
    if has_arena:
        region, _ = regions.add("temporary", 4 * plan.arena_words, largest)
        for buffer in temporaries:
            place = Place(region, 4 * plan.offset[buffer.id], 4 * buffer.words)
            regions.places[buffer.id] = place
        return
    slots: dict[int, tuple[int, int]] = {}
    for buffer in _largest_first(temporaries):
        slot = plan.slot[buffer.id]
        if slot not in slots:
            slots[slot] = regions.add("temporary", 4 * plan.slot_words[slot], buffer)
        region, offset = slots[slot]
        regions.places[buffer.id] = Place(region, offset, 4 * buffer.words)


def _largest_first(buffers: Iterable[Buffer]) -> list[Buffer]:
    return sorted(buffers, key=lambda b: (-b.words, b.id))
