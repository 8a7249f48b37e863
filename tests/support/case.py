"""A case of an operator: a small real model, inputs for it, and what the outputs must be."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tflite_vk.testing.model_writer import ModelWriter

Array = npt.NDArray[np.generic]

RTOL = 1e-4
"""Relative tolerance in fp32, of the reference value."""
ATOL_OF_SCALE = 1e-5
"""Absolute tolerance in fp32, of the largest magnitude in the reference output."""


@dataclass(frozen=True)
class Case:
    """One graph to run on a device and on an oracle.

    Attributes:
        name: unique; becomes the test's id.
        build: adds operators to a writer, inputs and outputs included.
        inputs: values by position among the inputs; random where absent. Called with a seeded
            generator.
        expected: outputs by NumPy, from the inputs, where LiteRT's reference kernels are wrong or
            refuse; None compares with them.
        declined: part of the reason why the device doesn't take the (only) operator; None where
            it must.
        exact: every bit must agree: copies and integers.
        low, high: range of random float inputs.
        rtol, atol_of_scale: tolerance; a case that departs from the defaults says why.
        why: the reason of another tolerance or oracle.
        nan_equal: NaN in the reference must be NaN in the result.
    """

    name: str
    build: Callable[[ModelWriter], object]
    inputs: Callable[[np.random.Generator], Mapping[int, Array]] | None = None
    expected: Callable[..., list[Array]] | None = None
    declined: str | None = None
    exact: bool = False
    low: float = -2.0
    high: float = 2.0
    rtol: float = RTOL
    atol_of_scale: float = ATOL_OF_SCALE
    why: str = ""
    nan_equal: bool = False

    def model(self) -> bytes:
        """The .tflite file."""
        writer = ModelWriter()
        self.build(writer)
        return writer.build()

    def rng(self) -> np.random.Generator:
        """The same generator in every run."""
        return np.random.default_rng(zlib.crc32(self.name.encode()))


def random_array(
    rng: np.random.Generator,
    shape: tuple[int, ...],
    dtype: np.dtype[np.generic],
    low: float,
    high: float,
) -> Array:
    """Random values of any type that a model's input may have."""
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(np.bool_)
    if np.issubdtype(dtype, np.floating):
        return rng.uniform(low, high, shape).astype(dtype)
    if dtype.itemsize == 1:
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max + 1, shape).astype(dtype)
    return rng.integers(-50, 50, shape).astype(dtype)
