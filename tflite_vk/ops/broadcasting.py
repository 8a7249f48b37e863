"""How several operands that broadcast are walked together, in as few dimensions as they allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tflite_vk.shape import LANES, Shape, inner, pad_rank, strides, vectors_per_row

MAX_OUTER = 5

Steps = tuple[int, ...]
"""Elements that one step along each dimension of the result moves in an operand; 0 repeats."""


@dataclass(frozen=True)
class Walk:
    """Numbers for the push constants of a kernel.

    Attributes:
        groups_per_row: groups of four lanes that follow each other in all operands.
        dims: the other dimensions, the outermost first, MAX_OUTER of them.
        num_dims: those in use; they stand in front.
        strides: for each operand, elements to step along each of `dims`.
        splat: bit i is set where operand i has one element for a whole row.
    """

    groups_per_row: int
    dims: tuple[int, ...]
    num_dims: int
    strides: tuple[tuple[int, ...], ...]
    splat: int


def broadcast_steps(operand: Shape, result: Shape) -> Steps:
    """Steps of an operand that broadcasts to a result."""
    full = pad_rank(operand, len(result))
    steps = strides(full)
    # A row of one element is read whole where the result's row is one element as well.
    return tuple(
        0 if d == 1 and (i < len(full) - 1 or inner(result) != 1) else s
        for i, (d, s) in enumerate(zip(full, steps, strict=True))
    )


def broadcast_walk(result: Shape, operands: Sequence[Steps]) -> Walk:
    """Walk a result row by row.

    Args:
        result: its shape.
        operands: steps of each operand; in the innermost dimension 1, or 0 for one element a row.
    """
    splat = sum(1 << i for i, steps in enumerate(operands) if steps and steps[-1] == 0)
    row = tuple(0 if splat >> i & 1 else LANES for i in range(len(operands)))
    merged: list[tuple[int, tuple[int, ...]]] = [(vectors_per_row(result), row)]
    for axis in reversed(range(len(result) - 1)):
        size, step = result[axis], tuple(steps[axis] for steps in operands)
        count, small = merged[0]
        if size == 1:
            continue
        if step == tuple(count * s for s in small):
            merged[0] = (size * count, small)
        else:
            merged.insert(0, (size, step))
    *outer, (groups_per_row, _) = merged
    spare = MAX_OUTER - len(outer)
    return Walk(
        groups_per_row,
        (*(size for size, _ in outer), *[1] * spare),
        len(outer),
        tuple((*(step[i] for _, step in outer), *[0] * spare) for i in range(len(operands))),
        splat,
    )
