"""When a transpose runs tile by tile through shared memory, and the numbers for its kernel."""

from __future__ import annotations

from dataclasses import dataclass

from tflite_vk.device_info import DeviceInfo
from tflite_vk.shape import LANES, Shape, ceil_div, num_elements, round_up, strides

MAX_DIMS = 4

SIDE = 32
"""Elements along either side of a tile, where both have so many."""
AREA = 1024
"""Elements of a tile."""
LOCAL_SIZE = 128
"""Invocations of a tile: two groups of four lanes each way for each. 64 and 256 are slower on an H200."""
LEAST = 5
"""Rows and columns below which reading element by element wastes nothing."""


@dataclass(frozen=True)
class Plane:
    """A transpose as planes of rows and columns. Strides count groups of four lanes.

    Attributes:
        rows: size of the dimension that is innermost in the target.
        columns: size of the one that is innermost in the source.
        source_row: from row to row of the source.
        target_column: from column to column of the target.
        dims: size, stride in the source and in the target of each other dimension.
    """

    rows: int
    columns: int
    source_row: int
    target_column: int
    dims: tuple[tuple[int, int, int], ...]

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns of a tile: square, or as long as it must be where one side is short."""
        rows, columns = (min(SIDE, round_up(n, LANES)) for n in (self.rows, self.columns))
        while 2 * rows * columns <= AREA and rows < self.rows:
            rows *= 2
        while 2 * rows * columns <= AREA and columns < self.columns:
            columns *= 2
        return rows, columns

    @property
    def row_tiles(self) -> int:
        """Tiles along the rows."""
        return ceil_div(self.rows, self.tile[0])

    @property
    def column_tiles(self) -> int:
        """Tiles along the columns."""
        return ceil_div(self.columns, self.tile[1])

    @property
    def num_tiles(self) -> int:
        """Tiles in all planes."""
        return self.row_tiles * self.column_tiles * num_elements([size for size, _, _ in self.dims])


def _merge(source: Shape, order: tuple[int, ...]) -> tuple[Shape, tuple[int, ...]]:
    """The same transpose in fewest dimensions, none of them 1.

    Dimensions that stay neighbours become one, except where padding stands between their rows:
    the innermost one of the source or target joins only with a size in whole groups.
    """
    kept = [axis for axis in order if source[axis] != 1]
    runs: list[list[int]] = []
    for axis in kept:
        after_last = runs and all(source[a] == 1 for a in range(runs[-1][-1] + 1, axis))
        joins_inner = axis == len(source) - 1 or axis == order[-1]
        if (
            runs
            and runs[-1][-1] < axis
            and after_last
            and not (joins_inner and source[axis] % LANES)
        ):
            runs[-1].append(axis)
        else:
            runs.append([axis])
    by_place = sorted(runs)
    shape = tuple(num_elements([source[axis] for axis in run]) for run in by_place)
    return shape, tuple(by_place.index(run) for run in runs)


def gains_from_tiles(device: DeviceInfo) -> bool:
    """False for a software driver: its caches serve single elements as well."""
    return not device.is_software


def tiled_plane(source: Shape, order: tuple[int, ...]) -> Plane | None:
    """The planes of a transpose that gains from tiles, else None.

    Args:
        source: shape of the source.
        order: for each dimension of the target, the one of the source it is.
    """
    if source[-1] == 1 or source[order[-1]] == 1:
        return None
    shape, merged = _merge(source, order)
    rows_axis, columns_axis = merged[-1], len(shape) - 1
    if rows_axis == columns_axis or min(shape[rows_axis], shape[columns_axis]) < LEAST:
        return None
    target = tuple(shape[axis] for axis in merged)
    source_steps = [s // LANES for s in strides(shape)]
    target_steps = dict(zip(merged, (s // LANES for s in strides(target)), strict=True))
    others = [axis for axis in merged if axis not in {rows_axis, columns_axis}]
    return Plane(
        shape[rows_axis],
        shape[columns_axis],
        source_steps[rows_axis],
        target_steps[columns_axis],
        tuple((shape[axis], source_steps[axis], target_steps[axis]) for axis in others),
    )
