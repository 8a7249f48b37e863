"""The pad kernel, for PAD, PADV2, MIRROR_PAD and TILE: a tensor set into a larger one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tflite_vk.ir.graph import Node
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.division import division_words
from tflite_vk.ops.moving import lanes_variant
from tflite_vk.shape import LANES, num_vectors, vectors_per_row

Outside = Literal["fill", "mirror", "wrap"]

MAX_OUTER = 5

_OUTSIDE: dict[Outside, int] = {"fill": 0, "mirror": 1, "wrap": 2}


@dataclass(frozen=True)
class Extent:
    """One dimension.

    Attributes:
        result: size in the result.
        source: size in the source.
        before: elements of the result before the source begins.
    """

    result: int
    source: int
    before: int

    @property
    def is_whole(self) -> bool:
        """True where nothing is added."""
        return self.result == self.source


def merge(extents: Sequence[Extent], outside: Outside) -> list[Extent]:
    """The same in fewest dimensions: ones go, and where nothing is added joins what stands before.

    What mirrors must stay apart: a dimension reflects in steps of what stands behind it.
    """
    out: list[Extent] = []
    for e in extents:
        if e.result == e.source == 1:
            continue
        if out and e.is_whole and (outside != "mirror" or out[-1].is_whole):
            last = out[-1]
            out[-1] = Extent(last.result * e.result, last.source * e.source, last.before * e.source)
        else:
            out.append(e)
    return out


def surround(
    ctx: LoweringContext,
    node: Node,
    extents: Sequence[Extent],
    outside: Outside,
    *,
    fill: int | None = None,
    is_symmetric: bool = False,
) -> None:
    """Add the dispatch that sets input 0 into output 0.

    Args:
        ctx: the program being made.
        node: its output 0 is not empty.
        extents: one for each dimension.
        outside: what surrounds the source.
        fill: buffer whose first element fills; zero where None.
        is_symmetric: a mirror repeats the border.
    """
    source, target = ctx.graph.input(node, 0), ctx.graph.output(node)
    *outer, last = extents or [Extent(1, 1, 0)]
    in_groups = last.is_whole or (
        last.source % LANES == 0
        if outside == "wrap"
        else outside == "fill" and last.before % LANES == 0
    )
    x_groups = vectors_per_row(source.shape)
    y_groups, x_lanes, before = vectors_per_row(target.shape), last.source, last.before
    if in_groups:
        groups = Extent(y_groups, x_groups, before // LANES)
        merged = (
            merge([*outer, groups], outside) if last.is_whole else [*merge(outer, outside), groups]
        )
        *outer, groups = merged or [groups]
        if groups.source != x_groups:
            x_lanes = groups.source * LANES
        y_groups, x_groups, before = groups.result, groups.source, groups.before * LANES
    else:
        outer = merge(outer, outside)
    assert len(outer) <= MAX_OUTER
    spare = MAX_OUTER - len(outer)
    results = (*(e.result for e in outer), *[1] * spare)
    vectors = num_vectors(target.shape)
    ctx.dispatch_flat(
        node,
        lanes_variant("pad", ctx.storage(target)),
        [
            ctx.buffer(source.id),
            ctx.unused() if fill is None else fill,
            ctx.buffer(target.id),
        ],
        invocations=vectors,
        spec=(_OUTSIDE[outside], int(not in_groups)),
        push=(
            vectors,
            y_groups,
            x_groups,
            last.result,
            x_lanes,
            before,
            len(outer),
            *results,
            *(e.source for e in outer),
            *[1] * spare,
            *(e.before for e in outer),
            *[0] * spare,
            int(is_symmetric),
            *division_words((*results, y_groups), 6),
        ),
    )
