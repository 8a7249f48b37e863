"""CONCATENATION of inputs in other scales than the output's, and what stays on the CPU."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.support.case import Array, Case
from tests.support.quantized import Scale, quantized, quantized_input, whole_range
from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import ConcatenationAttributes
from tflite_vk.testing.model_writer import ModelWriter

INT8, UINT8 = DType.INT8, DType.UINT8

_SCALES: tuple[Scale, ...] = (
    (0.04824, 230),
    (0.04122, 216),
    (0.02721, 226),
    (0.1, 3),
    (0.04974, 223),
)
_OUTPUT: Scale = (0.04974, 223)


def _concat(
    shapes: tuple[tuple[int, ...], ...], axis: int, dtype: DType = UINT8
) -> Callable[[ModelWriter], None]:
    def build(w: ModelWriter) -> None:
        inputs = [
            quantized_input(w, shape, dtype, scale)
            for shape, scale in zip(shapes, _SCALES, strict=False)
        ]
        result = np.concatenate([np.zeros(s, np.bool_) for s in shapes], axis).shape
        out = quantized(result, dtype, _OUTPUT)
        w.output(w.op("CONCATENATION", inputs, [out], ConcatenationAttributes(axis=axis)))

    return build


def _inputs(
    shapes: tuple[tuple[int, ...], ...],
) -> Callable[[np.random.Generator], dict[int, Array]]:
    return lambda rng: {i: whole_range(rng, shape, UINT8) for i, shape in enumerate(shapes)}


_SHAPES: dict[str, tuple[tuple[tuple[int, ...], ...], int]] = {
    "rows": (((1, 13, 7), (1, 5, 7), (1, 1, 7)), 1),
    "lanes": (((2, 3, 5), (2, 3, 2), (2, 3, 7), (2, 3, 4), (2, 3, 1)), 2),
    "whole_groups": (((3, 8), (3, 4), (3, 16)), 1),
    "one": (((3, 5),), 0),
}
CASES = [
    Case(
        f"F5_CONCATENATION_scales_{name}", _concat(shapes, axis), inputs=_inputs(shapes), exact=True
    )
    for name, (shapes, axis) in _SHAPES.items()
]
CASES += [
    Case(
        "F5_CONCATENATION_INT8_scales",
        _concat(((2, 3), (2, 3)), 1, INT8),
        declined="differ in scale",
    )
]
