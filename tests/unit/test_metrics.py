from __future__ import annotations

import math

import numpy as np
import pytest

from tflite_vk.analysis.metrics import Tolerance, measure

TOLERANCE = Tolerance(rtol=1e-4, atol=1e-5)


def test_equal_arrays() -> None:
    x = np.array([[1.0, -2.0], [0.0, 4.0]], np.float32)
    d = measure(x, x.copy(), TOLERANCE)
    assert (d.count, d.num_different, d.max_abs, d.max_rel, d.max_rel_element) == (4, 0, 0, 0, 0)
    assert d.snr_db == math.inf
    assert d.scale == 4.0
    assert d.position == ()
    assert d.is_close


def test_numbers_of_a_difference() -> None:
    want = np.array([1.0, -10.0, 100.0])
    got = np.array([1.5, -10.0, 101.0])
    d = measure(got, want, TOLERANCE)
    assert d.num_different == 2
    assert d.max_abs == 1.0
    assert d.max_rel == pytest.approx(0.01)
    assert d.max_rel_element == pytest.approx(0.5)
    assert d.snr_db == pytest.approx(10 * math.log10((1 + 100 + 10000) / (0.25 + 1)))
    # |d| = 0.5, allowed 1e-4 * 1 + 1e-5 * 100
    assert d.of_tolerance == pytest.approx(0.5 / 1.1e-3)
    assert (d.position, d.got, d.want) == ((0,), 1.5, 1.0)
    assert not d.is_close


def test_the_tolerance_grows_with_the_scale_of_the_output() -> None:
    small = measure(np.array([1e-3, 0.0]), np.array([0.0, 1.0]), TOLERANCE)
    large = measure(np.array([1e-3, 1000.0]), np.array([0.0, 1000.0]), TOLERANCE)
    assert not small.is_close
    assert large.is_close


def test_the_bound_itself_is_close() -> None:
    want = np.array([0.0, 1.0])
    assert measure(want + np.array([1e-5, 0.0]), want, TOLERANCE).is_close


@pytest.mark.parametrize(
    ("got", "want", "is_close"),
    [
        (math.nan, math.nan, True),
        (math.inf, math.inf, True),
        (-math.inf, math.inf, False),
        (math.nan, 1.0, False),
        (1.0, math.nan, False),
        (math.inf, 3e38, False),
        (3e38, math.inf, False),
    ],
)
def test_special_values(got: float, want: float, is_close: bool) -> None:
    d = measure(np.array([got, 1.0]), np.array([want, 1.0]), TOLERANCE)
    assert d.is_close is is_close
    if not is_close:
        assert d.max_abs == math.inf
        assert d.to_dict()["max_abs"] is None


def test_a_reference_of_zeros_allows_no_more_than_a_denormal() -> None:
    zeros = np.zeros(3, np.float32)
    assert measure(np.full(3, 1e-39, np.float32), zeros, TOLERANCE).is_close
    d = measure(np.full(3, 1e-6, np.float32), zeros, TOLERANCE)
    assert not d.is_close
    assert d.max_rel == math.inf
    assert d.snr_db == -math.inf


def test_integers_have_to_be_equal() -> None:
    want = np.array([-128, 0, 127], np.int8)
    assert measure(want, want, TOLERANCE).is_close
    off_by_one = np.array([-128, 1, 127], np.int8)
    d = measure(off_by_one, want, TOLERANCE)
    assert (d.max_abs, d.is_close) == (1.0, False)


def test_booleans_and_text() -> None:
    assert not measure(np.array([True, False]), np.array([True, True]), TOLERANCE).is_close
    assert measure(np.array([b"a"], object), np.array([b"a"], object), TOLERANCE).is_close
    assert not measure(np.array([b"a"], object), np.array([b"b"], object), TOLERANCE).is_close


def test_empty_and_scalar_arrays() -> None:
    assert measure(np.zeros((0, 3)), np.zeros((0, 3)), TOLERANCE).is_close
    d = measure(np.array(2.0), np.array(1.0), TOLERANCE)
    assert (d.position, d.got, d.want) == ((), 2.0, 1.0)


def test_another_shape_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"^shape \[2\], the reference's is \[3\]$"):
        measure(np.zeros(2), np.zeros(3), TOLERANCE)


def test_default_tolerances() -> None:
    assert Tolerance.default("fp32") == Tolerance(1e-4, 1e-5)
    assert Tolerance.default("fp16") == Tolerance(1e-2, 1e-2)
