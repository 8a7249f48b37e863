"""Host arrays to device words and back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tflite_vk import layout
from tflite_vk.dtypes import DType

TYPES = [t for t in DType if layout.storage_of(t) is not None]


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.name)
@given(shape=st.lists(st.integers(0, 7), max_size=5).map(tuple), seed=st.integers(0, 99))
def test_round_trip(dtype: DType, shape: tuple[int, ...], seed: int) -> None:
    storage = layout.storage_of(dtype)
    assert storage is not None
    rng = np.random.default_rng(seed)
    value = rng.integers(0, 2 if dtype is DType.BOOL else 100, shape).astype(dtype.numpy)
    words = np.full(layout.words_for(shape, storage), 0xFFFFFFFF, np.uint32)
    if value.size:
        layout.store(words, value, storage)
    out = np.empty(shape, dtype.numpy)
    layout.load(words, out, storage)
    assert np.array_equal(out, value)


def test_pack_pads_with_zero() -> None:
    words = layout.pack(np.array([[1, 2, 3], [4, 5, 6]], np.float32), "f32")
    assert words.view(np.float32).tolist() == [1, 2, 3, 0, 4, 5, 6, 0]


def test_float16_saturates_but_keeps_infinities() -> None:
    value = np.array([1e6, -1e6, np.inf, -np.inf, np.nan, 1.5], np.float32)
    half = layout.pack(value, "f16").view(np.float16)[:6]
    assert half[:4].tolist() == [65504, -65504, np.inf, -np.inf]
    assert np.isnan(half[4])
    assert half[5] == 1.5


def test_a_scalar_takes_a_whole_group() -> None:
    assert layout.words_for((), "f32") == 4
    assert layout.words_for((0, 5), "f32") == 4
