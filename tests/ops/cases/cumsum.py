"""CUMSUM: every axis, exclusive, reverse."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.support.case import Case
from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import CumsumAttributes
from tflite_vk.testing.model_writer import ModelWriter


def _cumsum(
    shape: tuple[int, ...], axis: int, a: CumsumAttributes, dtype: DType = DType.FLOAT32
) -> Callable[[ModelWriter], None]:
    def build(w: ModelWriter) -> None:
        inputs = [w.input(shape, dtype=dtype), w.const(np.array(axis, np.int32))]
        w.output(w.op("CUMSUM", inputs, [(shape, dtype)], a))

    return build


def _modes() -> list[tuple[str, CumsumAttributes]]:
    return [
        (
            f"{'_exclusive' if e else ''}{'_reverse' if r else ''}",
            CumsumAttributes(exclusive=e, reverse=r),
        )
        for e in (False, True)
        for r in (False, True)
    ]


CASES = [
    Case(f"CUMSUM_{'x'.join(map(str, shape))}_axis{axis}{mode}", _cumsum(shape, axis, a))
    for shape in ((1,), (7,), (3, 5), (2, 37, 6), (2, 3, 4, 113))
    for axis in range(len(shape))
    for mode, a in _modes()
]
CASES += [
    Case(f"CUMSUM_INT32_axis{axis}{mode}", _cumsum((3, 5, 6), axis, a, DType.INT32), exact=True)
    for axis in (-1, -2)
    for mode, a in _modes()
]
CASES += [
    Case("CUMSUM_long_row", _cumsum((2, 10_001), 1, CumsumAttributes())),
    Case("CUMSUM_long_column_reverse", _cumsum((10_001, 3), 0, CumsumAttributes(reverse=True))),
    Case("I2_CUMSUM_70000_rows", _cumsum((70000, 5), 1, CumsumAttributes())),
    Case("I3_CUMSUM_70000_deep", _cumsum((70000, 2), 0, CumsumAttributes()), low=0.0),
    Case("CUMSUM_rank6", _cumsum((2, 1, 3, 2, 2, 5), 2, CumsumAttributes())),
    Case("CUMSUM_empty", _cumsum((0, 5), 1, CumsumAttributes())),
]
