"""What precision="fp16" may cost an operator, stated once, and cases whose values float16 holds.

The inputs and constants of a case are rounded to float16 before either side sees them, so that what
is left is what fp16 mode does: it computes in float32 and rounds each value it stores.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tests.support.case import Array, Case
from tests.support.compare import describe_difference
from tflite_vk.dtypes import DType
from tflite_vk.ir.graph import Quantization
from tflite_vk.testing.model_writer import ModelWriter

FLOAT16_MAX = 65504.0
ROUNDING = 2.0**-11
"""Of a value: the most that rounding it to float16 moves it, half of the last of its 11 bits."""
SUBNORMAL_ROUNDING = 2.0**-25
"""The same below 2^-14, where float16's steps stay 2^-24."""


def to_half(value: npt.ArrayLike) -> Array:
    """float32 as fp16 mode stores it: to nearest, ties to even, 65504 at the most; no longer float16."""
    x = np.asarray(value, np.float32)
    finite = np.where(np.isfinite(x), np.clip(x, -FLOAT16_MAX, FLOAT16_MAX), x)
    return finite.astype(np.float16).astype(np.float32)


class HalfWriter(ModelWriter):
    """Writes models whose float constants float16 holds."""

    def const(
        self,
        value: npt.ArrayLike,
        name: str = "",
        dtype: DType | None = None,
        quantization: Quantization | None = None,
    ) -> int:
        """As ModelWriter's, rounded."""
        array = np.asarray(value)
        if array.dtype in (np.float32, np.float64) and dtype in (None, DType.FLOAT32):
            value = to_half(array)
        return super().const(value, name, dtype, quantization)


def half_model(case: Case) -> bytes:
    """The case's .tflite file with rounded constants."""
    writer = HalfWriter()
    case.build(writer)
    return writer.build()


def assert_close_half(got: Array, want: Array, case: Case, roundings: int, what: str) -> None:
    """Fail unless an output of fp16 mode is as close to the fp32 reference as its roundings allow.

    Each rounding on the way to an output may move it by ROUNDING of the value rounded: the last one
    of the output's own, earlier ones of the output's scale, since values may cancel. What the case
    allows float32 comes on top.

    Args:
        got: of the device.
        want: of the reference, float32.
        case: whose tolerance for float32 counts too.
        roundings: values stored one after the other on the way to the output.
        what: for the message.
    """
    want = np.asarray(want)
    assert got.shape == want.shape, f"{what}: shape {got.shape}, want {want.shape}"
    assert got.dtype == want.dtype, f"{what}: type {got.dtype}, want {want.dtype}"
    if not want.size:
        return
    if want.dtype == np.float32:
        want = np.where(np.isfinite(want), np.clip(want, -FLOAT16_MAX, FLOAT16_MAX), want)
    right = want.astype(np.float64)
    # A rounded value may fall on the other side of a boundary between two integers.
    of_integers = 0.0 if want.dtype == np.float32 else 1.0
    scale = float(np.max(np.abs(right[np.isfinite(right)]), initial=0.0))
    is_close = np.isclose(
        got.astype(np.float64),
        right,
        rtol=case.rtol + ROUNDING,
        atol=scale * (case.atol_of_scale + (roundings - 1) * ROUNDING)
        + roundings * SUBNORMAL_ROUNDING
        + of_integers,
        equal_nan=True,
    )
    assert is_close.all(), f"{what}: {describe_difference(got, want)}"
