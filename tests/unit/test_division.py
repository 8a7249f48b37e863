"""Division as a product and a shift, on the numbers where rounding could go wrong."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from tflite_vk.ops.division import division_words, magic

LARGEST = (1 << 31) - 1


def quotient(n: int, number: int, shift: int) -> int:
    """What shaders/include/divide.glsl computes."""
    return (2 * n * number >> 32) >> shift


@given(st.integers(1, LARGEST), st.integers(0, LARGEST))
@example(1, LARGEST)
@example(3, LARGEST)
@example(7, LARGEST)
@example(LARGEST, LARGEST)
@example(1 << 30, LARGEST)
@example((1 << 30) + 1, LARGEST)
def test_magic_divides(divisor: int, n: int) -> None:
    number, shift = magic(divisor)
    assert number < 1 << 32
    assert shift < 32
    multiple = n // divisor * divisor
    for dividend in {n, multiple, max(0, multiple - 1)}:
        assert quotient(dividend, number, shift) == dividend // divisor


def test_words_hold_magic_numbers_then_shifts() -> None:
    words = division_words((7, 1, 1 << 20), 4)
    assert len(words) == 5
    for i, divisor in enumerate((7, 1, 1 << 20, 1)):
        number, shift = magic(divisor)
        assert words[i] == number
        assert words[-1] >> 5 * i & 31 == shift
