"""Comparing outputs, with a message that says where and by how much they differ."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.generic]


def describe_difference(got: Array, want: Array) -> str:
    """Largest difference, with index and both values."""
    got64, want64 = got.astype(np.float64), want.astype(np.float64)
    difference = np.abs(got64 - want64)
    difference = np.where(np.isnan(difference), np.inf, difference)
    difference = np.where((got64 == want64) | (np.isnan(got64) & np.isnan(want64)), 0, difference)
    worst = np.unravel_index(int(np.argmax(difference)), difference.shape)
    count = int(np.count_nonzero(difference))
    position = [int(i) for i in worst]
    return (
        f"{count} of {difference.size} values differ; worst at {position}: "
        f"got {got[worst]!r}, want {want[worst]!r}"
    )


def assert_close(got: Array, want: Array, rtol: float, atol_of_scale: float, what: str) -> None:
    """Fail unless |got - want| <= atol_of_scale * max|want| + rtol * |want|; infinities must match."""
    assert got.shape == want.shape, f"{what}: shape {got.shape}, want {want.shape}"
    assert got.dtype == want.dtype, f"{what}: type {got.dtype}, want {want.dtype}"
    if not want.size:
        return
    finite = np.abs(want[np.isfinite(want)].astype(np.float64))
    scale = float(finite.max()) if finite.size else 0.0
    is_close = np.isclose(
        got.astype(np.float64),
        want.astype(np.float64),
        rtol=rtol,
        atol=atol_of_scale * scale,
        equal_nan=True,
    )
    assert is_close.all(), f"{what}: {describe_difference(got, want)}"


def assert_equal(got: Array, want: Array, what: str) -> None:
    """Fail unless shape, type and every value are the same."""
    assert got.shape == want.shape, f"{what}: shape {got.shape}, want {want.shape}"
    assert got.dtype == want.dtype, f"{what}: type {got.dtype}, want {want.dtype}"
    same = (got == want) | ((got != got) & (want != want))
    assert same.all(), f"{what}: {describe_difference(got, want)}"
