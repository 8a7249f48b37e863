"""TFLite's sparse constants, expanded to dense arrays.

The encoding is a tree: one level per entry of traversal_order, each dense (every child present) or
compressed (segments say where a parent's children start, indices which they are). Stored values
are the leaves in order. Entries of traversal_order from the rank on are blocks, and block_map says
which dimension each one cuts.

Source: TFLite's kernels/internal/utils/sparsity_format_converter and its schema's comments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import tflite

from tflite_vk.shape import Shape, num_elements

if TYPE_CHECKING:
    from tflite_vk.frontend.checked import View

Array = npt.NDArray[Any]


def expand(sparsity: View, values: Array, shape: Shape, *, is_packed: bool) -> Array:
    """The dense array of a sparse constant.

    Args:
        sparsity: SparsityParameters table.
        values: stored elements.
        shape: dense shape.
        is_packed: True where the last byte of the buffer may hold elements past the end.

    Raises:
        ModelError: the parameters contradict each other, the shape or the number of values.
    """
    order = sparsity.numbers("TraversalOrder") or ()
    block_map = sparsity.numbers("BlockMap") or ()
    levels = list(sparsity.tables("DimMetadata"))
    rank = len(shape)
    if sorted(order) != list(range(rank + len(block_map))):
        raise sparsity.error(
            "TraversalOrder",
            f"{order} is no permutation of {rank} dimensions and {len(block_map)} blocks",
        )
    if len(levels) != len(order):
        raise sparsity.error("DimMetadata", f"{len(levels)} levels, {len(order)} expected")
    if len(set(block_map)) != len(block_map) or not set(block_map) <= set(range(rank)):
        raise sparsity.error("BlockMap", f"{block_map} does not name dimensions of {shape} once")
    blocks = {dim: _block_size(levels[order.index(rank + i)]) for i, dim in enumerate(block_map)}
    extents = []
    for dim, size in enumerate(shape):
        if size % blocks.get(dim, 1):
            raise sparsity.error("BlockMap", f"blocks of {blocks[dim]} do not divide {size}")
        extents.append(size // blocks.get(dim, 1))
    extents.extend(blocks[dim] for dim in block_map)

    coordinates = _leaves(levels, order, extents, limit=num_elements(shape))
    stored = len(coordinates[0]) if order else 1
    if not stored <= values.size <= stored + (3 if is_packed else 0):
        raise sparsity.error("", f"{values.size} values stored, {stored} places for them")
    by_entry = dict(zip(order, coordinates, strict=True))
    index = []
    for dim in range(rank):
        place = by_entry[dim]
        if dim in blocks:
            place = place * blocks[dim] + by_entry[rank + block_map.index(dim)]
        index.append(place)
    dense = np.zeros(shape, values.dtype)
    dense[tuple(index)] = values[:stored] if order else values[0]
    return dense


def _block_size(level: View) -> int:
    size: int = level.number("DenseSize")
    if level.number("Format") != tflite.DimensionType.DENSE or size < 1:
        raise level.error("DenseSize", f"a block has to be dense with a size over 0 (is {size})")
    return size


def _leaves(
    levels: list[View], order: tuple[int, ...], extents: list[int], *, limit: int
) -> list[Array]:
    """Coordinate of each leaf along every level, in the order the values are stored."""
    coordinates: list[Array] = []
    parents = 1
    for level, entry in zip(levels, order, strict=True):
        extent = extents[entry]
        if level.number("Format") == tflite.DimensionType.DENSE:
            if level.number("DenseSize") != extent:
                raise level.error(
                    "DenseSize", f"{level.number('DenseSize')}, the shape says {extent}"
                )
            if parents * extent > limit:
                raise level.error("DenseSize", f"more places than the {limit} elements")
            counts = np.full(parents, extent, np.int64)
            own = np.tile(np.arange(extent, dtype=np.int64), parents)
        else:
            segments = _index_vector(level, "ArraySegments")
            own = _index_vector(level, "ArrayIndices")
            if segments.size != parents + 1:
                raise level.error(
                    "ArraySegments", f"{segments.size} entries, {parents + 1} expected"
                )
            counts = np.diff(segments)
            if segments[0] != 0 or segments[-1] != own.size or np.any(counts < 0):
                raise level.error(
                    "ArraySegments", f"do not run from 0 up to the {own.size} indices"
                )
            if own.size > limit or (own.size and not 0 <= own.min() <= own.max() < extent):
                raise level.error("ArrayIndices", f"outside 0 to {extent - 1}")
        coordinates = [np.repeat(c, counts) for c in coordinates]
        coordinates.append(own)
        parents = own.size
    return coordinates


def _index_vector(level: View, field: str) -> Array:
    for kind in ("Int32Vector", "Uint16Vector", "Uint8Vector"):
        if level.number(field + "Type") == getattr(tflite.SparseIndexVector, kind):
            vector = level.table_of(field, kind)
            values = None if vector is None else vector.array("Values")
            return np.zeros(0, np.int64) if values is None else values.astype(np.int64)
    raise level.error(field, "is missing or of an unknown kind")
