"""Copies whose source is linear in the coordinates of the target: one kernel for many operators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tflite_vk.ir.graph import Node
from tflite_vk.layout import Storage
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.division import division_words
from tflite_vk.ops.moving import lanes_variant
from tflite_vk.program import int_word
from tflite_vk.shape import LANES, Shape, inner, num_vectors, vectors_per_row

MAX_OUTER = 5

_MODES = {"groups": 0, "lanes": 1, "splat": 2, "blocks": 3}

Step = tuple[int, int]
"""Size of a dimension, and elements that one step along it moves in the source."""


@dataclass(frozen=True)
class View:
    """How the elements of a target are found in the padded layout of a source.

    Attributes:
        outer: dimensions whose product is the target's number of rows, the outermost first.
        lanes: dimensions whose product is the target's innermost size; up to three.
        base: element of the source that the target's first one comes from.
    """

    outer: tuple[Step, ...]
    lanes: tuple[Step, ...]
    base: int = 0


def merge(steps: Sequence[Step]) -> list[Step]:
    """The same walk in fewest dimensions: those of 1 go, neighbours in one stride become one."""
    out: list[Step] = []
    for size, stride in steps:
        if size == 1:
            continue
        if out and out[-1][1] == size * stride:
            out[-1] = (out[-1][0] * size, stride)
        else:
            out.append((size, stride))
    return out


def _in_groups(outer: list[Step], lanes: list[Step], base: int) -> list[Step] | None:
    """The walk in groups of four lanes, innermost last; None where groups don't stay together."""
    *blocks, (size, stride) = lanes
    if stride != 1 or (blocks and size % LANES):
        return None
    walk = [*outer, *blocks]
    if base % LANES or any(step % LANES for _, step in walk):
        return None
    per_row = -(-size // LANES)
    return merge([*((n, step // LANES) for n, step in walk), (per_row, 1)])


def strided_copy(
    ctx: LoweringContext,
    node: Node,
    source: int,
    target: int,
    shape: Shape,
    view: View,
    storage: Storage,
) -> None:
    """Add the dispatch that fills a buffer from another.

    Args:
        ctx: the program being made.
        node: the node it serves.
        source: buffer read.
        target: buffer written, whole.
        shape: shape of what the target holds; not empty.
        view: where its elements come from.
        storage: type of the elements on both sides.
    """
    outer, lanes = merge(view.outer), merge(view.lanes) or [(1, 1)]
    groups = _in_groups(outer, lanes, view.base)
    if groups is not None:
        mode, base, lane_stride = "groups", view.base // LANES, 0
        # Groups that lie one behind the other are the row; one group each where they don't.
        *outer, (per_row, step) = groups or [(1, 1)]
        if step != 1:
            outer, per_row = groups, 1
    else:
        mode, base, per_row = "lanes", view.base, vectors_per_row(shape)
        size, lane_stride = lanes[-1]
        if lane_stride == 0:
            mode = "splat"
    dims = [*outer, *[(1, 0)] * (MAX_OUTER - len(outer))]
    if groups is None and len(lanes) > 1:
        mode = "blocks"
        dims[3] = (size, lanes[-2][1])
        dims[4] = (lanes[-2][0], lanes[0][1] if len(lanes) > 2 else 0)
        assert len(outer) <= MAX_OUTER - 2, (node.op, outer)
    assert len(dims) == MAX_OUTER, (node.op, outer)
    sizes = [n for n, _ in dims]
    vectors = num_vectors(shape)
    ctx.dispatch_flat(
        node,
        lanes_variant("strided_copy", storage),
        [source, target],
        invocations=vectors,
        spec=(_MODES[mode],),
        push=(
            vectors,
            per_row,
            inner(shape),
            len(outer),
            *sizes,
            *(int_word(stride) for _, stride in dims),
            int_word(base),
            int_word(lane_stride),
            *division_words((*sizes, per_row), 6),
        ),
    )


def rows_view(shape: Shape, source_strides: Sequence[int], base: int = 0) -> View:
    """A view with one source stride for each dimension of the target."""
    if not shape:
        return View((), ((1, 1),), base)
    steps = tuple(zip(shape, source_strides, strict=True))
    return View(steps[:-1], steps[-1:], base)
