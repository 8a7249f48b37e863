"""Copies between host arrays and device memory the host can't see, outside of a program's runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from tflite_vk.program import Words
from tflite_vk.runtime.vulkan.barriers import Barriers
from tflite_vk.runtime.vulkan.handle import DeviceHandle
from tflite_vk.runtime.vulkan.memory import HOST_CACHED, HOST_COHERENT, DeviceBuffer
from tflite_vk.runtime.vulkan.submission import Submission

_CHUNK_BYTES = 32 << 20
"""Size of the staging buffer: weights of any size pass through it."""


def _once(handle: DeviceHandle, record: Callable[[Any], None], what: str) -> None:
    submission = Submission(handle, record, what)
    try:
        submission.run()
    finally:
        submission.destroy()


def fill(handle: DeviceHandle, target: DeviceBuffer, word: int) -> None:
    """Set every word of a buffer.

    Raises:
        DeviceError: the device failed.
    """

    def record(commands: Any) -> None:
        handle.api.lib.vkCmdFillBuffer(commands, target.buffer, 0, target.size, word)
        Barriers(handle.api).after_upload(commands)

    _once(handle, record, "a fill")


def write(target: DeviceBuffer, parts: Iterable[tuple[int, Words]], what: str) -> None:
    """Write arrays to places in a visible buffer, for every later dispatch to see.

    Args:
        target: where to.
        parts: offset in bytes, and words.
        what: what is written, for messages.

    Raises:
        DeviceError: it can't be mapped.
    """
    pieces = list(parts)
    if not pieces:
        return
    with target.mapped(what) as content:
        for offset, words in pieces:
            content[offset // 4 : offset // 4 + words.size] = words


def upload(
    handle: DeviceHandle, target: DeviceBuffer, parts: Iterable[tuple[int, Words]], what: str
) -> None:
    """As `write`, through memory of the host's that the device copies from.

    Args:
        handle: the device.
        target: where to.
        parts: offset in bytes, and words.
        what: what is uploaded, for messages.

    Raises:
        DeviceError: no memory is left, or the device failed.
    """
    pieces = list(parts)
    size = min(_CHUNK_BYTES, sum(4 * words.size for _, words in pieces))
    if not size:
        return
    staging = DeviceBuffer(
        handle, size, (HOST_COHERENT,), is_mapped=True, what=f"staging memory for {what}"
    )
    try:
        assert staging.words is not None
        for batch in _batches(pieces, size):
            copies = []
            at = 0
            for offset, words in batch:
                staging.words[at // 4 : at // 4 + words.size] = words
                copies.append((at, offset, 4 * words.size))
                at += 4 * words.size
            _copy(handle, staging, target, copies, what, to_device=True)
    finally:
        staging.destroy()


def _batches(pieces: list[tuple[int, Words]], size: int) -> Iterator[list[tuple[int, Words]]]:
    """Pieces cut and grouped so that each group fits the staging buffer."""
    batch: list[tuple[int, Words]] = []
    room = size // 4
    for piece_offset, piece in pieces:
        offset, words = piece_offset, piece
        while words.size:
            taken = words[:room]
            batch.append((offset, taken))
            offset += 4 * taken.size
            words = words[taken.size :]
            room -= taken.size
            if not room:
                yield batch
                batch, room = [], size // 4
    if batch:
        yield batch


def download(handle: DeviceHandle, source: DeviceBuffer, what: str) -> Words:
    """Everything a buffer holds.

    Raises:
        DeviceError: no memory is left, or the device failed.
    """
    if source.words is not None:
        return source.words.copy()
    staging = DeviceBuffer(
        handle,
        source.size,
        (HOST_COHERENT | HOST_CACHED, HOST_COHERENT),
        is_mapped=True,
        what=f"staging memory for {what}",
    )
    try:
        assert staging.words is not None
        _copy(handle, source, staging, [(0, 0, source.size)], what, to_device=False)
        return np.array(staging.words)
    finally:
        staging.destroy()


def _copy(
    handle: DeviceHandle,
    source: DeviceBuffer,
    target: DeviceBuffer,
    copies: list[tuple[int, int, int]],
    what: str,
    *,
    to_device: bool,
) -> None:
    regions = copy_regions(handle, copies)

    def record(commands: Any) -> None:
        barriers = Barriers(handle.api)
        if not to_device:
            barriers.before_download(commands)
        handle.api.lib.vkCmdCopyBuffer(commands, source.buffer, target.buffer, len(copies), regions)
        if to_device:
            barriers.after_upload(commands)
        else:
            barriers.to_host(commands)

    _once(handle, record, what)


def copy_regions(handle: DeviceHandle, copies: list[tuple[int, int, int]]) -> Any:
    """A VkBufferCopy array of (source offset, target offset, bytes)."""
    regions = handle.api.ffi.new("VkBufferCopy[]", len(copies))
    for region, (start, to, size) in zip(regions, copies, strict=True):
        region.srcOffset, region.dstOffset, region.size = start, to, size
    return regions
