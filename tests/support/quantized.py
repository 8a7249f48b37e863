"""Building small quantized models for cases."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tests.support.case import Array
from tflite_vk.dtypes import DType
from tflite_vk.ir.graph import Quantization
from tflite_vk.testing.model_writer import ModelWriter, TensorSpec

Scale = tuple[float, int]
"""Scale and zero point; the zero point counts from the lowest value of an 8-bit type."""


def per_tensor(dtype: DType, scale: Scale) -> Quantization:
    """One scale; zero points of int16 are 0."""
    zero = 0 if dtype is DType.INT16 else int(np.iinfo(dtype.numpy).min) + scale[1]
    return Quantization((float(np.float32(scale[0])),), (zero,))


def per_channel(scales: Array, axis: int) -> Quantization:
    """One scale for each channel, symmetric."""
    values = tuple(float(s) for s in scales.astype(np.float32))
    return Quantization(values, (0,) * len(values), axis)


def quantized_input(w: ModelWriter, shape: tuple[int, ...], dtype: DType, scale: Scale) -> int:
    """A graph input."""
    return w.input(shape, dtype=dtype, quantization=per_tensor(dtype, scale))


def quantized(shape: tuple[int, ...], dtype: DType, scale: Scale) -> TensorSpec:
    """What an operator writes."""
    return TensorSpec(tuple(shape), dtype, per_tensor(dtype, scale))


def whole_range(rng: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Random values of any size, the lowest and the highest among them."""
    info = np.iinfo(dtype.numpy)
    values = rng.integers(info.min, info.max + 1, shape).astype(dtype.numpy)
    if values.size > 2:
        values.reshape(-1)[:2] = info.min, info.max
    return values


def every_value(shape: tuple[int, ...], dtype: DType) -> Mapping[int, Array]:
    """All values of an 8-bit type in order, for input 0."""
    info = np.iinfo(dtype.numpy)
    values = np.arange(info.min, info.max + 1).astype(dtype.numpy)
    return {0: np.resize(values, shape)}
