"""How far two arrays are apart, and whether that is close enough. NumPy only."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

_TINY = float(np.finfo(np.float32).tiny)
"""Keeps the tolerance of an output that is all zeros from being nothing: denormals may flush."""


@dataclass(frozen=True)
class Tolerance:
    """What counts as close: |got - want| <= rtol * |want| + atol * (largest |want| of the output).

    Attributes:
        rtol: of the value itself.
        atol: of the scale of its output, so that one number serves outputs of any size.
    """

    rtol: float = 1e-4
    atol: float = 1e-5

    @classmethod
    def default(cls, precision: str) -> Tolerance:
        """The tolerance for a precision.

        float16 keeps 11 bits, 5e-4 at each rounding; over the layers of a model that grows.
        """
        return cls(1e-2, 1e-2) if precision == "fp16" else cls()


@dataclass(frozen=True)
class Difference:
    """How far an output is from what it should be.

    Attributes:
        count: values compared.
        num_different: values that are not the same.
        max_abs: largest |got - want|; infinite where only one of them is a NaN or an infinity.
        max_rel: max_abs over `scale`, the share of the output's range that is wrong.
        max_rel_element: largest |got - want| / |want| where want is not zero.
        snr_db: 10 log10 of the mean square of want over that of the difference; infinite where
            nothing differs.
        of_tolerance: largest |got - want| over its tolerance; 1 and less is close.
        scale: largest finite |want|.
        position: index of the value that is furthest from its tolerance, empty where none differs.
        got: its value.
        want: what it should be.
    """

    count: int
    num_different: int
    max_abs: float
    max_rel: float
    max_rel_element: float
    snr_db: float
    of_tolerance: float
    scale: float
    position: tuple[int, ...] = ()
    got: float = 0.0
    want: float = 0.0

    @property
    def is_close(self) -> bool:
        """True where every value lies within the tolerance."""
        return self.of_tolerance <= 1.0

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, which has no infinity: None there."""
        return {k: _finite(v) for k, v in asdict(self).items()} | {"is_close": self.is_close}


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def measure(got: Array, want: Array, tolerance: Tolerance) -> Difference:
    """Compare arrays of one shape.

    Two NaN are the same, and so are two infinities of one sign.

    Raises:
        ValueError: the shapes differ.
    """
    if got.shape != want.shape:
        raise ValueError(f"shape {list(got.shape)}, the reference's is {list(want.shape)}")
    if got.dtype.kind in "OSU":
        return _measure_text(got, want)
    a, b = got.astype(np.float64), want.astype(np.float64)
    if not b.size:
        return Difference(0, 0, 0.0, 0.0, 0.0, math.inf, 0.0, 0.0)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore", over="ignore"):
        distance = np.where(same, 0.0, np.abs(a - b))
    distance = np.where(np.isnan(distance), np.inf, distance)
    magnitude = np.where(np.isfinite(b), np.abs(b), 0.0)
    scale = float(magnitude.max())
    allowed = tolerance.rtol * magnitude + tolerance.atol * scale + _TINY
    share = distance / allowed
    worst = np.unravel_index(int(np.argmax(share)), b.shape)
    max_abs = float(distance.max())
    return Difference(
        count=b.size,
        num_different=int(b.size - np.count_nonzero(same)),
        max_abs=max_abs,
        max_rel=_ratio(max_abs, scale),
        max_rel_element=float(
            np.max(distance[magnitude > 0] / magnitude[magnitude > 0], initial=0)
        ),
        snr_db=_snr_db(distance, magnitude),
        of_tolerance=float(share[worst]),
        scale=scale,
        position=() if same.all() else tuple(int(i) for i in worst),
        got=float(a[worst]),
        want=float(b[worst]),
    )


def _measure_text(got: Array, want: Array) -> Difference:
    """Strings are the same or not."""
    count = int(np.count_nonzero(got != want))
    wrong = math.inf if count else 0.0
    return Difference(
        want.size, count, wrong, wrong, wrong, -wrong if count else math.inf, wrong, 0.0
    )


def _ratio(value: float, of: float) -> float:
    if value == 0.0:
        return 0.0
    return value / of if of > 0.0 else math.inf


def _snr_db(distance: Floats, magnitude: Floats) -> float:
    noise = float(np.mean(np.square(distance)))
    signal = float(np.mean(np.square(magnitude)))
    if noise == 0.0:
        return math.inf
    if signal == 0.0 or not math.isfinite(noise):
        return -math.inf
    return 10.0 * math.log10(signal / noise)
