"""Words for shaders/include/divide.glsl: division by a known number as a product and a shift."""

from __future__ import annotations

from collections.abc import Sequence

MAX_DIVISORS = 6

_BITS = 31
"""Dividends are below 2**31: no buffer has as many groups of four lanes, or elements."""


def magic(divisor: int) -> tuple[int, int]:
    """Magic number and shift with n // divisor == (2 * n * magic >> 32) >> shift for n < 2**31.

    Source: Granlund and Montgomery, Division by Invariant Integers using Multiplication, 1994:
    the product is above the quotient by less than n / 2**31 of a divisor's part.
    """
    shift = (divisor - 1).bit_length()
    return -(-(1 << (_BITS + shift)) // divisor), shift


def division_words(divisors: Sequence[int], count: int) -> tuple[int, ...]:
    """Magic numbers of `count` divisors, those missing taken as 1, then their shifts in one word."""
    assert len(divisors) <= count <= MAX_DIVISORS
    pairs = [magic(d) for d in (*divisors, *[1] * (count - len(divisors)))]
    return (*(m for m, _ in pairs), sum(s << (5 * i) for i, (_, s) in enumerate(pairs)))
