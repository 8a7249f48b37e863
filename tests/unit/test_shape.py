"""Shapes and the padded layout."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tflite_vk import shape as s

shapes = st.lists(st.integers(1, 5), max_size=6).map(tuple)


@pytest.mark.parametrize(
    ("shape", "rows", "vectors", "padded"),
    [((), 1, 1, 4), ((5,), 1, 2, 8), ((2, 3), 2, 2, 8), ((2, 3, 8), 6, 12, 48), ((0, 3), 0, 0, 0)],
)
def test_padded_sizes(shape: tuple[int, ...], rows: int, vectors: int, padded: int) -> None:
    assert s.rows(shape) == rows
    assert s.num_vectors(shape) == vectors
    assert s.padded_elements(shape) == padded


@given(st.lists(shapes, min_size=1, max_size=4))
def test_broadcast_is_numpys(several: list[tuple[int, ...]]) -> None:
    try:
        want: tuple[int, ...] | None = np.broadcast_shapes(*several)
    except ValueError:
        want = None
    assert s.broadcast(several) == want


def test_broadcast_with_an_empty_dimension() -> None:
    assert s.broadcast([(0, 3), (1, 3)]) == (0, 3)
    assert s.broadcast([(0, 3), (2, 3)]) is None


@given(shapes)
def test_strides_find_every_element(shape: tuple[int, ...]) -> None:
    # The padded layout as NumPy makes it: pad the innermost dimension, then count.
    inner = s.inner(shape)
    positions = np.full((s.rows(shape), s.vectors_per_row(shape) * 4), -1)
    positions[:, :inner] = np.arange(s.num_elements(shape)).reshape(-1, inner)
    at = np.zeros(shape, np.int64)
    for axis, step in enumerate(s.strides(shape)):
        at += (
            np.arange(shape[axis]).reshape([-1 if i == axis else 1 for i in range(len(shape))])
            * step
        )
    assert positions.reshape(-1)[at.reshape(-1)].tolist() == list(range(s.num_elements(shape)))


@pytest.mark.parametrize(
    ("source", "target", "want"),
    [
        ((1, 8), (8,), True),
        ((2, 8), (4, 4), True),
        ((2, 6), (3, 4), False),
        ((2, 3), (6,), False),
        ((2, 3), (2, 1, 3), True),
        ((5,), (5, 1), False),
        ((2, 4), (2, 5), False),
    ],
)
def test_is_layout_preserving(source: tuple[int, ...], target: tuple[int, ...], want: bool) -> None:
    assert s.is_layout_preserving(source, target) is want


def test_normalize_axis() -> None:
    assert [s.normalize_axis(a, 3) for a in (-4, -3, -1, 0, 2, 3)] == [None, 0, 2, 0, 2, None]
