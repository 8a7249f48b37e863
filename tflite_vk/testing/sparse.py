"""TFLite's sparse encoding of a constant, written from a dense array.

Source: TFLite's kernels/internal/utils/sparsity_format_converter and its schema's comments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Dimension:
    """One level of the encoding: dense with a size, or compressed with segments and indices."""

    size: int
    segments: tuple[int, ...] | None = None
    indices: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Sparsity:
    """SparsityParameters of a tensor."""

    traversal_order: tuple[int, ...]
    block_map: tuple[int, ...]
    dimensions: tuple[Dimension, ...]


def encode_sparse(
    value: npt.NDArray[np.generic], block: Mapping[int, int]
) -> tuple[Sparsity, npt.NDArray[np.generic]]:
    """The encoding with the last block-level dimension compressed, and the elements it keeps.

    Args:
        value: dense array of rank n, each blocked dimension divisible by its block size.
        block: block size by dimension.
    """
    rank = value.ndim
    sizes = [d // block.get(i, 1) for i, d in enumerate(value.shape)]
    blocked = sorted(block)
    # [d0, ..., dn-1] -> [d0/b0, b0, ...] -> all outer dimensions, then the blocks.
    split: list[int] = []
    outer: list[int] = []
    inner: list[int] = []
    for i, size in enumerate(sizes):
        outer.append(len(split))
        split.append(size)
        if i in block:
            inner.append(len(split))
            split.append(block[i])
    tiles = value.reshape(split).transpose(outer + inner)
    tiles = tiles.reshape(int(np.prod(sizes[:-1], dtype=np.int64)), sizes[-1], -1)
    segments, indices, kept = [0], [], []
    for row in tiles:
        for i, tile in enumerate(row):
            if np.any(tile != 0):
                indices.append(i)
                kept.append(tile)
        segments.append(len(indices))
    dimensions = [Dimension(size) for size in sizes[:-1]]
    dimensions.append(Dimension(0, tuple(segments), tuple(indices)))
    dimensions.extend(Dimension(block[i]) for i in blocked)
    sparsity = Sparsity(
        traversal_order=tuple(range(rank + len(blocked))),
        block_map=tuple(blocked),
        dimensions=tuple(dimensions),
    )
    stored = np.concatenate([k.ravel() for k in kept]) if kept else np.zeros(0, value.dtype)
    return sparsity, stored
