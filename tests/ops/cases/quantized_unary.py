"""Functions of one integer, conversions, resizes, positions of extremes, against LiteRT bit for bit."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator

import numpy as np

from tests.support.case import Array, Case
from tests.support.quantized import (
    Scale,
    every_value,
    per_tensor,
    quantized,
    quantized_input,
    whole_range,
)
from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import (
    ArgAttributes,
    Attributes,
    CastAttributes,
    GeluAttributes,
    LeakyReluAttributes,
    ResizeAttributes,
)
from tflite_vk.testing.model_writer import ModelWriter, TensorSpec

INT8, UINT8, INT16, INT32 = DType.INT8, DType.UINT8, DType.INT16, DType.INT32
FLOAT32, BOOL = DType.FLOAT32, DType.BOOL

_ALL = (1, 8, 8, 4)
"""Holds each 8-bit value once."""

_FUNCTIONS: dict[str, tuple[str, Attributes | None]] = {
    name: (name, None)
    for name in (
        "ABS", "ELU", "EXP", "HARD_SWISH", "LOG", "LOGISTIC", "NEG", "RELU", "RELU6", "RELU_0_TO_1",
        "RELU_N1_TO_1", "RSQRT", "SQRT", "TANH",
    )
}  # fmt: skip
_FUNCTIONS |= {
    "GELU": ("GELU", GeluAttributes()),
    "GELU_tanh": ("GELU", GeluAttributes(approximate=True)),
    "LEAKY_RELU": ("LEAKY_RELU", LeakyReluAttributes(alpha=0.3)),
    "LEAKY_RELU_steep": ("LEAKY_RELU", LeakyReluAttributes(alpha=1.7)),
    "LEAKY_RELU_falling": ("LEAKY_RELU", LeakyReluAttributes(alpha=-0.2)),
}
_ONLY_INT8 = {"ABS", "ELU", "EXP", "LOG", "NEG", "RSQRT", "SQRT"}
_POSITIVE = {"RSQRT", "SQRT"}


def _function(
    op: str, attributes: Attributes | None, dtype: DType, x: Scale, y: Scale
) -> Callable[[ModelWriter], None]:
    def build(w: ModelWriter) -> None:
        source = quantized_input(w, _ALL, dtype, x)
        w.output(w.op(op, [source], [quantized(_ALL, dtype, y)], attributes))

    return build


def _scales(name: str, dtype: DType) -> Iterator[tuple[Scale, Scale]]:
    """Scales small and large, zero points anywhere."""
    rng = np.random.default_rng(zlib.crc32(f"{name} {dtype.name}".encode()))
    for _ in range(4):
        x = float(10 ** rng.uniform(-2.5, 0.5))
        zero = 0 if name in _POSITIVE else int(rng.integers(0, 256))
        y = (x * float(10 ** rng.uniform(-0.2, 0.6)), int(rng.integers(0, 256)))
        if name == "EXP":
            x = float(10 ** rng.uniform(-2.5, 0.2))
        if name == "LOGISTIC":
            y = (1 / 256, 0)
        if name == "TANH":
            y = (1 / 128, 128)
        yield (x, zero), y


CASES = [
    Case(
        f"quantized_{name}_{dtype.name}_{i}",
        _function(op, attributes, dtype, x, y),
        inputs=lambda rng, d=dtype: every_value(_ALL, d),
        exact=True,
    )
    for name, (op, attributes) in _FUNCTIONS.items()
    for dtype in (INT8, UINT8)
    if dtype is INT8 or name not in _ONLY_INT8
    for i, (x, y) in enumerate(_scales(name, dtype))
]


def _quantize(dtype: DType, scale: Scale) -> Case:
    """Values on all edges between two results, a float below them and a float above them."""
    shape = (9, 171)

    def build(w: ModelWriter) -> None:
        w.output(w.op("QUANTIZE", [w.input(shape)], [quantized(shape, dtype, scale)]))

    def inputs(rng: np.random.Generator) -> dict[int, Array]:
        info = np.iinfo(dtype.numpy)
        zero = per_tensor(dtype, scale).zero_point[0]
        halves = rng.integers(2 * (info.min - zero) - 9, 2 * (info.max - zero) + 9, shape)
        values = (halves * 0.5 * np.float32(scale[0])).astype(np.float32)
        values[3:6] = np.nextafter(values[3:6], np.float32(-np.inf))
        values[6:] = np.nextafter(values[6:], np.float32(np.inf))
        values[0, :3] = 0.0, -0.0, scale[0]
        return {0: values}

    return Case(f"F5_QUANTIZE_{dtype.name}_{scale[0]}_{scale[1]}", build, inputs=inputs, exact=True)


def _convert(op: str, x: DType, y: DType, scale_x: Scale, scale_y: Scale) -> Case:
    shape = (7, 37)

    def build(w: ModelWriter) -> None:
        source = quantized_input(w, shape, x, scale_x)
        out = TensorSpec(shape) if y is FLOAT32 else quantized(shape, y, scale_y)
        w.output(w.op(op, [source], [out]))

    def inputs(rng: np.random.Generator) -> dict[int, Array]:
        if x is INT32:
            return {0: rng.integers(-100000, 100000, shape).astype(np.int32)}
        return {0: whole_range(rng, shape, x)}

    name = f"F5_{op}_{x.name}_{y.name}_{scale_x[0]}_{scale_y[0]}"
    return Case(name, build, inputs=inputs, exact=True)


CASES += [
    _quantize(dtype, (scale, zero))
    for dtype in (INT8, UINT8, INT16)
    for scale, zero in ((0.0123, 77), (1.0, 128), (0.5, 0), (3.7e-4, 255), (33.3, 100))
]
CASES += [
    _convert("DEQUANTIZE", dtype, FLOAT32, (0.0123, 77), (0.0, 0)) for dtype in (INT8, UINT8, INT16)
]
CASES += [
    _convert("QUANTIZE", x, y, (0.02, 100 if x is not INT32 else 2**31), (scale, 90))
    for x, y in (
        (INT8, INT8),
        (INT8, UINT8),
        (INT8, INT16),
        (UINT8, INT8),
        (UINT8, UINT8),
        (UINT8, INT16),
        (INT16, INT8),
        (INT16, INT16),
        (INT32, INT8),
        (INT32, INT16),
    )
    for scale in (0.02, 0.031, 0.007, 0.04)
]


def _cast(x: DType, y: DType) -> Case:
    shape = (5, 37)

    def build(w: ModelWriter) -> None:
        w.output(
            w.op("CAST", [w.input(shape, dtype=x)], [TensorSpec(shape, y)], CastAttributes(x, y))
        )

    def inputs(rng: np.random.Generator) -> dict[int, Array]:
        if x is FLOAT32:
            values = rng.uniform(-300, 300, shape).astype(np.float32)
            values[0, :3] = 1e9, -1e9, np.nan
            return {0: values}
        if x is BOOL:
            return {0: rng.integers(0, 2, shape).astype(np.bool_)}
        if x is INT32:
            return {0: rng.integers(-70000, 70000, shape).astype(np.int32)}
        return {0: whole_range(rng, shape, x)}

    return Case(f"quantized_CAST_{x.name}_{y.name}", build, inputs=inputs, exact=True)


_NARROW = (INT8, UINT8, INT16)
CASES += [
    _cast(x, y)
    for x in (*_NARROW, FLOAT32, INT32, BOOL)
    for y in (*_NARROW, FLOAT32, INT32, BOOL)
    if x in _NARROW or y in _NARROW
]


def _resize(
    op: str, dtype: DType, grid: str, x: tuple[int, int, int, int], y: tuple[int, int]
) -> Case:
    def build(w: ModelWriter) -> None:
        out = quantized((x[0], *y, x[3]), dtype, (0.1, 100))
        attributes = ResizeAttributes(grid == "align_corners", grid == "half_pixel_centers")
        size = w.const(np.array(y, np.int32))
        w.output(w.op(op, [quantized_input(w, x, dtype, (0.1, 100)), size], [out], attributes))

    name = f"F5_{op}_{dtype.name}_{x[1]}x{x[2]}_{y[0]}x{y[1]}_{grid}"
    return Case(name, build, inputs=lambda rng: {0: whole_range(rng, x, dtype)}, exact=True)


_GRIDS = ("plain", "align_corners", "half_pixel_centers")
CASES += [
    _resize(op, dtype, grid, x, y)
    for op in ("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")
    for dtype in _NARROW
    for grid in _GRIDS
    for x, y in (
        ((1, 6, 6, 5), (12, 12)),
        ((2, 5, 7, 3), (9, 4)),
        ((1, 17, 13, 2), (5, 6)),
        ((1, 1, 1, 3), (5, 5)),
    )
]


def _arg(op: str, dtype: DType, axis: int) -> Case:
    shape = (3, 5, 7, 9)

    def build(w: ModelWriter) -> None:
        x = quantized_input(w, shape, dtype, (0.1, 100))
        out = TensorSpec(tuple(d for i, d in enumerate(shape) if i != axis), INT32)
        axis_id = w.const(np.array(axis, np.int32))
        w.output(w.op(op, [x, axis_id], [out], ArgAttributes(INT32)))

    # Few values, so that there are ties.
    def inputs(rng: np.random.Generator) -> dict[int, Array]:
        return {0: (whole_range(rng, shape, dtype) // 64 * 64).astype(dtype.numpy)}

    return Case(f"quantized_{op}_{dtype.name}_axis{axis}", build, inputs=inputs, exact=True)


CASES += [
    _arg(op, dtype, axis)
    for op in ("ARG_MAX", "ARG_MIN")
    for dtype in (INT8, UINT8)
    for axis in (1, 3)
]


def _chain(w: ModelWriter) -> None:
    """Integers to floats, fused float operators, and back."""
    x = quantized_input(w, (1, 5, 6, 7), INT8, (0.05, 100))
    real = w.op("DEQUANTIZE", [x], [(1, 5, 6, 7)])
    root = w.op("SQRT", [w.op("ABS", [real], [(1, 5, 6, 7)])], [(1, 5, 6, 7)])
    w.output(w.op("QUANTIZE", [root], [quantized((1, 5, 6, 7), INT8, (0.011, 10))]), root)


# The float output may differ in its last bit on a device that contracts multiply and add; the
# tolerance is below one step of the quantized one.
CASES += [Case("F5_DEQUANTIZE_chain_QUANTIZE", _chain)]
