"""Axes of reductions: what an axis tensor names, and the fewest dimensions that a kernel must walk."""

from __future__ import annotations

from dataclasses import dataclass

from tflite_vk.ir.graph import Tensor
from tflite_vk.shape import LANES, Shape, inner, normalize_axis, vectors_per_row


def read_axes(axes: Tensor, rank: int) -> tuple[int, ...] | None:
    """The axes a tensor names, counted from the front, each once; None where known only at run time.

    Raises:
        ValueError: an axis outside the shape.
    """
    if axes.data is None:
        return None
    if rank == 0:
        return ()  # TFLite ignores the axes of a scalar
    out: list[int] = []
    for value in axes.data.reshape(-1).tolist():
        axis = normalize_axis(int(value), rank)
        if axis is None:
            raise ValueError(f"axis {value} is outside a shape of rank {rank}")
        if axis not in out:
            out.append(axis)
    return tuple(sorted(out))


@dataclass(frozen=True)
class Walk:
    """Dimensions of a tensor, neighbours of one kind merged; strides count groups of four lanes.

    Attributes:
        kept: (size, stride) of the dimensions kept, the innermost one left out.
        reduced: the same of the dimensions reduced.
        is_inner_reduced: the innermost dimension is reduced.
        row_groups: groups in a row where the innermost dimension is reduced, else 1.
        tail: elements of a row's last group where that is reduced and the row is no whole number
            of groups, else 0.
    """

    kept: tuple[tuple[int, int], ...]
    reduced: tuple[tuple[int, int], ...]
    is_inner_reduced: bool
    row_groups: int
    tail: int

    @property
    def count(self) -> int:
        """Groups of the tensor that make up one reduction."""
        total = self.row_groups
        for size, _ in self.reduced:
            total *= size
        return total


def walk(shape: Shape, axes: tuple[int, ...]) -> Walk:
    """How a kernel walks a tensor of the shape that is reduced over the axes."""
    row_groups = vectors_per_row(shape)
    is_inner_reduced = bool(shape) and len(shape) - 1 in axes
    merged: list[tuple[bool, int, int]] = []
    stride = row_groups
    for axis in range(len(shape) - 2, -1, -1):
        size, is_reduced = shape[axis], axis in axes
        if size != 1:
            if merged and merged[-1][0] == is_reduced:
                merged[-1] = (is_reduced, merged[-1][1] * size, merged[-1][2])
            else:
                merged.append((is_reduced, size, stride))
        stride *= size
    merged.reverse()
    return Walk(
        kept=tuple((size, step) for is_reduced, size, step in merged if not is_reduced),
        reduced=tuple((size, step) for is_reduced, size, step in merged if is_reduced),
        is_inner_reduced=is_inner_reduced,
        row_groups=row_groups if is_inner_reduced else 1,
        tail=inner(shape) % LANES if is_inner_reduced else 0,
    )


def three(dims: tuple[tuple[int, int], ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Sizes and strides as kernels take them: three dimensions, ones in front."""
    padded = ((1, 0),) * (3 - len(dims)) + dims
    return tuple(size for size, _ in padded), tuple(step for _, step in padded)
