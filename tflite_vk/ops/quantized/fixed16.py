"""gemmlowp's fixed-point logistic and tanh of int16, for arrays.

A number is its raw int16; its format Qm.n has m integer bits and n = 15 - m fractional ones.

Source: gemmlowp's fixedpoint/fixedpoint.h.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

_LOWEST, _HIGHEST = -(1 << 15), (1 << 15) - 1


def _constant(raw32: int) -> int:
    """A constant of gemmlowp's, written for int32, as int16."""
    return min(_HIGHEST, (raw32 + (1 << 15)) >> 16)


def _wrap(x: Ints) -> Ints:
    wrapped: Ints = x.astype(np.int16).astype(np.int64)
    return wrapped


def _saturate(x: Ints) -> Ints:
    return np.clip(x, _LOWEST, _HIGHEST)


def _multiply(a: Ints, b: Ints | int) -> Ints:
    """SaturatingRoundingDoublingHighMul."""
    return _saturate((a * b + (1 << 14)) >> 15)


def _shift_right(x: Ints, exponent: int) -> Ints:
    """RoundingDivideByPOT."""
    mask = (1 << exponent) - 1
    shifted: Ints = (x >> exponent) + ((x & mask) > (mask >> 1) + (x < 0))
    return shifted


def _rescale(x: Ints, integer_bits: int, to_integer_bits: int) -> Ints:
    exponent = integer_bits - to_integer_bits
    return _saturate(x << exponent) if exponent >= 0 else _shift_right(x, -exponent)


def _exp_near_zero(a: Ints) -> Ints:
    """exp(a) for -1/4 <= a < 0 in Q0.15."""
    constant = _constant(1895147668)
    x = a + (1 << 12)
    x2 = _multiply(x, x)
    x3, x4 = _multiply(x2, x), _multiply(x2, x2)
    powers = _shift_right(
        _wrap(_multiply(_wrap(_shift_right(x4, 2) + x3), _constant(715827883)) + x2), 1
    )
    return _saturate(constant + _multiply(_wrap(x + powers), constant))


_EXP_OF_POWERS = (
    (-2, 1672461947),
    (-1, 1302514674),
    (0, 790015084),
    (1, 290630308),
    (2, 39332535),
    (3, 720401),
    (4, 242),
)
"""exp(-2^n)."""


def _exp_of_negative(a: Ints, integer_bits: int) -> Ints:
    """exp(a) in Q0.15 for a <= 0."""
    fraction_bits = 15 - integer_bits
    quarter = 1 << (fraction_bits - 2)
    fraction = (a & (quarter - 1)) - quarter
    result = _exp_near_zero(_rescale(fraction, integer_bits, 0))
    rest = _wrap(fraction - a)
    for exponent, factor in _EXP_OF_POWERS:
        if integer_bits > exponent:
            has_power = (rest >> (fraction_bits + exponent) & 1) != 0
            result = np.where(has_power, _multiply(result, _constant(factor)), result)
    if integer_bits > 5:
        result = np.where(a < -(1 << (fraction_bits + 5)), 0, result)
    return np.where(a == 0, _HIGHEST, result)


def _inverse(a: Ints) -> Ints:
    """2 / (1 + a) in Q2.13 for 0 <= a < 1 in Q0.15, by three steps of Newton and Raphson."""
    half_denominator = (a + _HIGHEST + 1) >> 1  # rounded; both are positive
    x = _wrap(_constant(1515870810) + _multiply(half_denominator, _constant(-1010580540)))
    for _ in range(3):
        rest = _wrap((1 << 13) - _multiply(half_denominator, x))
        x = _wrap(x + _rescale(_multiply(x, rest), 4, 2))
    return x


def logistic(a: Ints, integer_bits: int) -> Ints:
    """The logistic function in Q0.15."""
    inverse = _inverse(_exp_of_negative(-np.abs(a), integer_bits))
    positive = _rescale(inverse, 1, 0)
    return np.where(a == 0, 1 << 14, np.where(a > 0, positive, _HIGHEST - positive))


def tanh(a: Ints, integer_bits: int) -> Ints:
    """The hyperbolic tangent in Q0.15."""
    inverse = _inverse(_exp_of_negative(-np.abs(a), integer_bits + 1))
    positive = _rescale(_wrap(inverse - (1 << 13)), 2, 0)
    return np.where(a == 0, 0, np.where(a > 0, positive, -positive))
