"""Times of many runs in a few numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np


@dataclass(frozen=True)
class Statistics:
    """Summary of times, in milliseconds.

    Attributes:
        count: how many there were.
        median: half of them are below.
        p90: nine of ten are below.
        mean: arithmetic mean.
        std: standard deviation of all of them.
        min: shortest.
        max: longest.
    """

    count: int
    median: float
    p90: float
    mean: float
    std: float
    min: float
    max: float

    @classmethod
    def of(cls, times_ms: Sequence[float]) -> Statistics:
        """The summary of at least one time."""
        times = np.asarray(times_ms, np.float64)
        return cls(
            count=times.size,
            median=float(np.median(times)),
            p90=float(np.percentile(times, 90)),
            mean=float(times.mean()),
            std=float(times.std()),
            min=float(times.min()),
            max=float(times.max()),
        )

    def to_dict(self) -> dict[str, float]:
        """Plain data for JSON."""
        return asdict(self)
