"""RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR on the three grids, up and down."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.support.case import Case
from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import ResizeAttributes
from tflite_vk.testing.model_writer import ModelWriter

_GRIDS = {
    "legacy": ResizeAttributes(),
    "align": ResizeAttributes(align_corners=True),
    "half": ResizeAttributes(half_pixel_centers=True),
}

_SIZES: tuple[tuple[tuple[int, ...], tuple[int, int]], ...] = (
    ((1, 2, 2, 1), (10, 10)),
    ((1, 5, 7, 3), (3, 4)),
    ((2, 3, 5, 6), (7, 13)),
    ((3, 1, 1, 5), (4, 6)),
    ((1, 6, 8, 37), (1, 1)),
    ((1, 37, 5, 4), (113, 1)),
    ((2, 7, 9, 5), (7, 9)),
    ((1, 17, 17, 3), (33, 65)),
)


def _resize(
    op: str,
    shape: tuple[int, ...],
    size: tuple[int, int],
    a: ResizeAttributes,
    *,
    runtime: bool = False,
) -> Callable[[ModelWriter], None]:
    def build(w: ModelWriter) -> None:
        x = w.input(shape)
        target = w.input((2,), dtype=DType.INT32) if runtime else w.const(np.array(size, np.int32))
        w.output(w.op(op, [x, target], [(shape[0], *size, shape[3])], a))

    return build


def _fused(w: ModelWriter) -> None:
    x = w.input((1, 4, 5, 6))
    y = w.op(
        "RESIZE_BILINEAR",
        [x, w.const(np.array([8, 10], np.int32))],
        [(1, 8, 10, 6)],
        ResizeAttributes(),
    )
    z = w.op("ADD", [y, w.input((1, 8, 10, 6))], [(1, 8, 10, 6)])
    w.output(w.op("RELU6", [z], [(1, 8, 10, 6)]))


CASES = [
    Case(
        f"D20_{op}_{grid}_{'x'.join(map(str, shape))}_to_{size[0]}x{size[1]}",
        _resize(op, shape, size, a),
        exact=op == "RESIZE_NEAREST_NEIGHBOR",
    )
    for op in ("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")
    for grid, a in _GRIDS.items()
    for shape, size in _SIZES
]
CASES += [
    Case(
        f"D21_{op}_both_flags",
        _resize(
            op, (1, 4, 4, 3), (8, 8), ResizeAttributes(align_corners=True, half_pixel_centers=True)
        ),
        declined="half_pixel_centers",
    )
    for op in ("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")
]
CASES += [
    Case(
        "RESIZE_size_at_run_time",
        _resize("RESIZE_BILINEAR", (1, 4, 4, 3), (8, 8), ResizeAttributes(), runtime=True),
        declined="input 1 is INT32",
    ),
    Case(
        "I9_RESIZE_BILINEAR_to_width_2405",
        _resize(
            "RESIZE_BILINEAR", (1, 3, 65, 5), (4, 2405), ResizeAttributes(half_pixel_centers=True)
        ),
    ),
    Case("RESIZE_BILINEAR_fused", _fused),
]
CASES += [
    Case(
        f"RESIZE_NEAREST_NEIGHBOR_{grid}_all_sizes_from_{source}",
        _resize("RESIZE_NEAREST_NEIGHBOR", (1, source, source, 1), (target, 2 * target), a),
        exact=True,
    )
    for grid, a in _GRIDS.items()
    for source, target in ((7, 49), (113, 37), (20, 30), (30, 20), (3, 100))
]
