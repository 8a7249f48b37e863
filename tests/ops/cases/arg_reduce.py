"""ARG_MAX and ARG_MIN over every axis, with ties, infinities and NaN."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.support.case import Array, Case
from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import ArgAttributes
from tflite_vk.testing.model_writer import ModelWriter

_SHAPES: tuple[tuple[int, ...], ...] = (
    (1,),
    (113,),
    (3, 5),
    (2, 7, 37),
    (2, 3, 5, 7),
    (2, 3, 2, 3, 2, 5),
)


def _arg(
    op: str,
    shape: tuple[int, ...],
    axis: int,
    *,
    dtype: DType = DType.FLOAT32,
    out: DType = DType.INT32,
) -> Callable[[ModelWriter], None]:
    def build(w: ModelWriter) -> None:
        result = tuple(d for i, d in enumerate(shape) if i != axis % len(shape))
        inputs = [w.input(shape, dtype=dtype), w.const(np.array([axis], np.int32))]
        w.output(w.op(op, inputs, [(result, out)], ArgAttributes(output_type=out)))

    return build


def _few_values(shape: tuple[int, ...]) -> Callable[[np.random.Generator], dict[int, Array]]:
    return lambda rng: {0: rng.integers(0, 3, shape).astype(np.float32)}


def _special(rng: np.random.Generator) -> dict[int, Array]:
    x = rng.uniform(-1, 1, (8, 9)).astype(np.float32)
    x[6] = np.nan
    x[7] = [np.nan, *[-np.inf] * 8]
    x[0, 0] = np.nan
    x[1, 4] = np.nan
    x[2] = -np.inf
    x[3] = np.inf
    x[4, [2, 7]] = np.inf
    x[5] = np.array([0.0, -0.0] * 5)[:9]
    return {0: x}


CASES = [
    Case(f"{op}_{'x'.join(map(str, shape))}_axis{axis}", _arg(op, shape, axis), exact=True)
    for op in ("ARG_MAX", "ARG_MIN")
    for shape in _SHAPES
    for axis in range(len(shape))
]
CASES += [
    Case(
        f"{op}_ties_axis{axis}",
        _arg(op, (3, 37, 6), axis),
        inputs=_few_values((3, 37, 6)),
        exact=True,
    )
    for op in ("ARG_MAX", "ARG_MIN")
    for axis in (-1, -2, -3)
]
CASES += [
    Case(f"{op}_special_axis{axis}", _arg(op, (8, 9), axis), inputs=_special, exact=True)
    for op in ("ARG_MAX", "ARG_MIN")
    for axis in (0, 1)
]
CASES += [
    Case(f"{op}_INT32_axis{axis}", _arg(op, (3, 5, 6), axis, dtype=DType.INT32), exact=True)
    for op in ("ARG_MAX", "ARG_MIN")
    for axis in (0, 2)
]
CASES += [
    Case("D3_ARG_MAX_channels", _arg("ARG_MAX", (1, 6, 6, 5), 3), exact=True),
    Case(
        "ARG_MAX_all_negative_padding", _arg("ARG_MAX", (5, 3), 1), low=-9.0, high=-1.0, exact=True
    ),
    Case("ARG_MIN_all_positive_padding", _arg("ARG_MIN", (5, 3), 1), low=1.0, high=9.0, exact=True),
    Case("I2_ARG_MAX_70000_rows", _arg("ARG_MAX", (70000, 5), 1), exact=True),
    Case("I3_ARG_MIN_70000_columns", _arg("ARG_MIN", (3, 70000, 2), 1), exact=True),
    Case(
        "ARG_MAX_long_row",
        _arg("ARG_MAX", (2, 100_003), 1),
        inputs=_few_values((2, 100_003)),
        exact=True,
    ),
    Case("ARG_MAX_segmentation", _arg("ARG_MAX", (1, 33, 33, 21), -1), exact=True),
    Case(
        "ARG_MAX_of_INT64",
        _arg("ARG_MAX", (3, 5), 1, dtype=DType.INT64),
        declined="input 0 is INT64",
    ),
]
