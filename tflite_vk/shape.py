"""Shapes, and the one device layout: row-major with the innermost dimension padded to four.

A tensor of shape [d0, ..., dn-1] is `rows = d0 * ... * dn-2` rows of `padded(dn-1)` elements.
Rank 0 is one row of one logical element. Lanes past dn-1 hold anything; no kernel lets them
reach a result.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

Shape = tuple[int, ...]

LANES = 4


def ceil_div(value: int, divisor: int) -> int:
    """Smallest integer >= value / divisor."""
    return -(-value // divisor)


def round_up(value: int, multiple: int) -> int:
    """Smallest multiple of `multiple` that is >= value."""
    return ceil_div(value, multiple) * multiple


def num_elements(shape: Sequence[int]) -> int:
    """Logical elements of a shape; 1 for rank 0."""
    return math.prod(shape)


def inner(shape: Sequence[int]) -> int:
    """Logical size of the innermost dimension; 1 for rank 0."""
    return shape[-1] if shape else 1


def rows(shape: Sequence[int]) -> int:
    """Number of innermost rows."""
    return math.prod(shape[:-1]) if shape else 1


def vectors_per_row(shape: Sequence[int]) -> int:
    """Groups of four lanes in one padded row."""
    return ceil_div(inner(shape), LANES)


def num_vectors(shape: Sequence[int]) -> int:
    """Groups of four lanes of the whole padded tensor."""
    return rows(shape) * vectors_per_row(shape)


def padded_elements(shape: Sequence[int]) -> int:
    """Elements of the padded tensor, padding lanes included."""
    return num_vectors(shape) * LANES


def is_layout_preserving(source: Sequence[int], target: Sequence[int]) -> bool:
    """True where reshaping source to target moves no element of the padded layout.

    Either the rows are the same, or neither shape has padding lanes.
    """
    if num_elements(source) != num_elements(target):
        return False
    if inner(source) == inner(target):
        return True
    return inner(source) % LANES == 0 and inner(target) % LANES == 0


def broadcast(shapes: Iterable[Sequence[int]]) -> Shape | None:
    """Shape that the given ones broadcast to by NumPy's rule, or None where they don't."""
    out: list[int] = []
    for shape in shapes:
        reversed_shape = list(reversed(shape))
        for i, d in enumerate(reversed_shape):
            if i >= len(out):
                out.append(d)
            elif out[i] != d:
                if out[i] == 1:
                    out[i] = d
                elif d != 1:
                    return None
    return tuple(reversed(out))


def pad_rank(shape: Sequence[int], rank: int) -> Shape:
    """The shape with ones in front up to `rank` dimensions."""
    return (1,) * (rank - len(shape)) + tuple(shape)


def normalize_axis(axis: int, rank: int) -> int | None:
    """The axis counted from the front, or None where it lies outside [-rank, rank)."""
    if not -rank <= axis < rank:
        return None
    return axis + rank if axis < 0 else axis


def strides(shape: Sequence[int]) -> Shape:
    """Elements to step for each dimension in the padded layout."""
    out = [1] * len(shape)
    step = vectors_per_row(shape) * LANES
    for i in range(len(shape) - 2, -1, -1):
        out[i] = step
        step *= shape[i]
    return tuple(out)
