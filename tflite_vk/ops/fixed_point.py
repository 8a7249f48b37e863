"""Fixed-point arithmetic of gemmlowp in Python integers, for tables and factors that the host makes.

A number is its raw int32; its format Qm.n has m integer bits and n = 31 - m fractional ones.

Source: gemmlowp's fixedpoint/fixedpoint.h.
"""

from __future__ import annotations

from tflite_vk.ops.quantization import Multiplier, divide_by_pot

INT32_MIN = -(1 << 31)
INT32_MAX = (1 << 31) - 1

ONE = INT32_MAX
"""1 in Q0.31, as near as it can be."""


def multiply(a: int, b: int) -> int:
    """A * b, rounded: SaturatingRoundingDoublingHighMul. Integer bits add up."""
    if a == b == INT32_MIN:
        return INT32_MAX
    product = a * b
    nudged = product + ((1 << 30) if product >= 0 else 1 - (1 << 30))
    # C++ divides toward zero.
    return nudged >> 31 if nudged >= 0 else -(-nudged >> 31)


def multiply_by_pot(x: int, exponent: int) -> int:
    """X * 2^exponent: saturating to the left, rounding to the right."""
    if exponent <= 0:
        return divide_by_pot(x, -exponent)
    return max(INT32_MIN, min(INT32_MAX, x << exponent))


def rescale(x: int, integer_bits: int, to_integer_bits: int) -> int:
    """The same number in another format."""
    return multiply_by_pot(x, integer_bits - to_integer_bits)


def _exp_near_zero(a: int) -> int:
    """exp(a) for -1/4 <= a < 0, in Q0.31: a Taylor series around -1/8."""
    constant, third = 1895147668, 715827883
    x = a + (1 << 28)
    x2 = multiply(x, x)
    x3, x4 = multiply(x2, x), multiply(x2, x2)
    sum_of_powers = multiply_by_pot(multiply(multiply_by_pot(x4, -2) + x3, third) + x2, -1)
    return constant + multiply(constant, x + sum_of_powers)


_EXP_OF_POWERS = (
    (-2, 1672461947),
    (-1, 1302514674),
    (0, 790015084),
    (1, 290630308),
    (2, 39332535),
    (3, 720401),
    (4, 242),
)
"""exp(-2^n) in Q0.31."""


def exp_of_negative(a: int, integer_bits: int) -> int:
    """exp(a) in Q0.31 for a <= 0 with up to five integer bits."""
    if a == 0:
        return ONE
    fraction_bits = 31 - integer_bits
    quarter = 1 << (fraction_bits - 2)
    fraction = (a & (quarter - 1)) - quarter
    result = _exp_near_zero(rescale(fraction, integer_bits, 0))
    rest = fraction - a
    for exponent, factor in _EXP_OF_POWERS:
        if integer_bits > exponent and rest >> (fraction_bits + exponent) & 1:
            result = multiply(result, factor)
    return result


def inverse_sqrt(x: int) -> Multiplier:
    """1 / sqrt(x) for an integer x > 0: five steps of Newton and Raphson in Q3.28.

    Source: GetInvSqrtQuantizedMultiplierExp of tflite/kernels/internal/common.h.
    """
    if x <= 1:
        return Multiplier(INT32_MAX, 0)
    right_shift = 11
    while x >= 1 << 29:
        x //= 4
        right_shift += 1
    pairs = (32 - x.bit_length() - 1) // 2 - 1
    right_shift -= pairs
    x <<= 2 * pairs
    half_x = multiply_by_pot(x >> 1, -1)
    half_three = (1 << 28) + (1 << 27)
    y = 1 << 28
    for _ in range(5):
        cube = rescale(multiply(multiply(y, y), y), 9, 3)
        y = rescale(multiply(half_three, y) - multiply(half_x, cube), 6, 3)
    y = multiply(y, 1518500250)
    if right_shift < 0:
        return Multiplier(y << -right_shift, 0)
    return Multiplier(y, -right_shift)
