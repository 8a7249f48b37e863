"""TFLite's fixed-point arithmetic on the host, held against its definition in exact fractions."""

from __future__ import annotations

import math
import struct
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tflite_vk.dtypes import DType
from tflite_vk.ir.graph import Quantization, Tensor
from tflite_vk.ops import fixed_point
from tflite_vk.ops.quantization import (
    activation_bounds,
    affine,
    channel_words,
    divide_by_pot,
    multiply_by_quantized,
    quantize_multiplier,
    round_half_away,
    split_double,
    to_int32,
)

INT32 = st.integers(-(2**31), 2**31 - 1)


def nearest(x: Fraction) -> int:
    """To nearest, ties away from zero."""
    return math.floor(abs(x) + Fraction(1, 2)) * (1 if x >= 0 else -1)


@given(INT32, st.integers(0, 31))
def test_divide_by_pot_rounds_ties_away_from_zero(x: int, exponent: int) -> None:
    assert divide_by_pot(x, exponent) == nearest(Fraction(x, 2**exponent))


@given(INT32, INT32)
def test_fixed_multiply_rounds_ties_up(a: int, b: int) -> None:
    want = math.floor(Fraction(a * b, 2**31) + Fraction(1, 2))
    assert fixed_point.multiply(a, b) == min(want, 2**31 - 1)


@given(st.floats(2.0**-40, 2.0**20))
def test_quantize_multiplier_keeps_31_bits(real: float) -> None:
    m = quantize_multiplier(real)
    if real < 2.0**-32:
        assert (m.value, m.shift) == (0, 0)
        return
    assert 2**30 <= m.value < 2**31
    error = abs(Fraction(m.value) * Fraction(2) ** (m.shift - 31) - Fraction(real))
    assert error <= Fraction(real) / 2**31


def test_quantize_multiplier_rounds_up_to_the_next_power() -> None:
    assert quantize_multiplier(1.0 - 2.0**-40) == quantize_multiplier(1.0)
    assert quantize_multiplier(1.0).value == 2**30
    assert quantize_multiplier(0.0).value == 0


@given(INT32, st.floats(2.0**-31, 0.999))
def test_multiply_by_quantized_is_within_its_two_roundings(x: int, real: float) -> None:
    m = quantize_multiplier(real)
    exact = Fraction(x) * Fraction(m.value) * Fraction(2) ** (m.shift - 31)
    assert abs(multiply_by_quantized(x, m) - exact) <= 1


@pytest.mark.parametrize(
    ("x", "want"), [(1, 1), (-1, 0), (2, 1), (-2, -1), (5, 2), (-5, -1), (-6, -2)]
)
def test_two_roundings_of_a_quarter(x: int, want: int) -> None:
    # What LiteRT 2.3.0 gives (CONV_2D): 0.25 becomes 0.5, ties up to 1, and 1/2 away from zero to 1.
    assert multiply_by_quantized(x, quantize_multiplier(0.25)) == want


@given(st.floats(0, 1e30, allow_subnormal=False))
def test_split_double_is_exact(real: float) -> None:
    d = split_double(real)
    assert Fraction(d.mantissa) * Fraction(2) ** -d.shift == Fraction(real)
    assert d.mantissa == 0 or 2**52 <= d.mantissa < 2**53


def test_round_half_away() -> None:
    assert [round_half_away(v) for v in (0.5, -0.5, 1.5, -2.5, 0.4, -0.6, 0.0)] == [
        1,
        -1,
        2,
        -3,
        0,
        -1,
        0,
    ]


def test_to_int32_wraps() -> None:
    assert [to_int32(v) for v in (2**31, -(2**31) - 1, 5, 2**33 + 7)] == [-(2**31), 2**31 - 1, 5, 7]


def _tensor(dtype: DType, scale: float, zero_point: int) -> Tensor:
    scale = struct.unpack("<f", struct.pack("<f", scale))[0]
    return Tensor(0, "t", (1,), dtype, quantization=Quantization((scale,), (zero_point,)))


def test_uint8_is_int8_with_its_numbers_128_less() -> None:
    signed, unsigned = affine(_tensor(DType.INT8, 0.5, -3)), affine(_tensor(DType.UINT8, 0.5, 125))
    assert (signed.zero_point, signed.lowest, signed.highest) == (-3, -128, 127)
    assert (unsigned.zero_point, unsigned.lowest, unsigned.highest) == (-3, -128, 127)
    assert (signed.flip, unsigned.flip) == (0, 0x80808080)


def test_activation_bounds() -> None:
    y = _tensor(DType.INT8, 0.1, -20)
    assert activation_bounds("NONE", y) == (-128, 127)
    assert activation_bounds("RELU", y) == (-20, 127)
    assert activation_bounds("RELU6", y) == (-20, 40)
    assert activation_bounds("RELU_N1_TO_1", y) == (-30, -10)
    assert activation_bounds("RELU6", _tensor(DType.UINT8, 0.1, 108)) == (-20, 40)
    assert activation_bounds("RELU6", _tensor(DType.INT8, 0.01, 0)) == (0, 127)


def test_channel_words_wrap_and_pad() -> None:
    words = channel_words(np.array([2**31, -5, 7, 1, 3]), [0.25], as_double=False)
    assert words.shape == (2, 4, 4)
    assert words[0, 0].tolist() == [-(2**31), -5, 7, 1]
    assert words[0, 1].tolist() == [2**30] * 4
    assert words[0, 2].tolist() == [-1] * 4
    assert words[1, 1].tolist() == [2**30, 0, 0, 0]
    doubles = channel_words(np.zeros(1, np.int64), [1.0], as_double=True)
    assert doubles[0, 1:, 0].tolist() == [0, 52, 2**20]


@pytest.mark.parametrize("x", [-0.001, -0.125, -0.25, -0.7, -3.0, -11.5, -15.9])
def test_exp_of_negative(x: float) -> None:
    raw = round_half_away(x * 2**26)
    assert fixed_point.exp_of_negative(raw, 5) / 2**31 == pytest.approx(
        math.exp(x), abs=3e-7
    )  # a Taylor series
