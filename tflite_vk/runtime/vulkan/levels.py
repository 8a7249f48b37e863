"""Which dispatches may overlap: hazards by the bytes they touch. Pure functions."""

from __future__ import annotations

from tflite_vk.program import Program
from tflite_vk.runtime.vulkan.placement import Placement


def neighbours(placement: Placement) -> dict[int, tuple[int, ...]]:
    """For each buffer, the buffers that share memory with it, itself included."""
    by_region: dict[int, list[int]] = {}
    for buffer, place in sorted(placement.places.items(), key=lambda item: item[1].offset):
        by_region.setdefault(place.region, []).append(buffer)
    found: dict[int, list[int]] = {buffer: [buffer] for buffer in placement.places}
    for buffers in by_region.values():
        for i, buffer in enumerate(buffers):
            end = placement.places[buffer].end
            for other in buffers[i + 1 :]:
                if placement.places[other].offset >= end:
                    break  # sorted by offset: nobody further on can overlap
                found[buffer].append(other)
                found[other].append(buffer)
    return {buffer: tuple(others) for buffer, others in found.items()}


def dispatch_levels(program: Program, placement: Placement) -> list[list[int]]:
    """Group dispatches into levels: a barrier between levels, none inside.

    A dispatch comes one level behind the last one that it must wait for, which is one that wrote
    what it reads (read after write), or read or wrote what it writes (write after read, write
    after write). Bytes count, not buffers: the plan lets buffers share memory, and that makes
    hazards too. Independent branches of a graph thus run side by side, wherever they stand in it.

    Returns:
        Indices of dispatches, each level ascending.
    """
    sharing = neighbours(placement)
    read_level: dict[int, int] = {}
    write_level: dict[int, int] = {}
    levels: list[list[int]] = []
    for index, dispatch in enumerate(program.dispatches):
        level = 0
        for binding in dispatch.bindings:
            for other in sharing[binding.buffer]:
                level = max(level, write_level.get(other, -1) + 1)
                if "w" in binding.access:
                    level = max(level, read_level.get(other, -1) + 1)
        for binding in dispatch.bindings:
            seen = write_level if "w" in binding.access else read_level
            seen[binding.buffer] = max(level, seen.get(binding.buffer, -1))
        if level == len(levels):
            levels.append([])
        levels[level].append(index)
    return levels
