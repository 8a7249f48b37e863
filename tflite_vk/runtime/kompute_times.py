"""Times of dispatches out of Kompute's timestamps.

Kompute 0.9 never resets the queries that hold them, as Vulkan demands between two uses. Drivers
were all seen to write them anew all the same; one that doesn't must not pass old times for new ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from tflite_vk.errors import DeviceError


class KomputeTimes:
    """What one executable's sequences took."""

    def __init__(self, is_dispatch: Sequence[Sequence[bool]], tick_ns: float) -> None:
        """Know what was recorded.

        Args:
            is_dispatch: for each submit, which of its operations are dispatches.
            tick_ns: nanoseconds of one tick.
        """
        self._is_dispatch = is_dispatch
        self._tick_us = tick_ns / 1000.0
        self._ticks: list[list[int]] | None = None
        self._is_new = False

    def note_run(self) -> None:
        """There was another run."""
        self._is_new = True

    def check_run(self) -> None:
        """DeviceError where there was no run yet: waiting for its timestamps would never end."""
        if not self._is_new and self._ticks is None:
            raise DeviceError("no run to have timed yet; run the program first")

    def spans_us(self, ticks: list[list[int]]) -> list[float]:
        """Microseconds of each dispatch of the last run.

        Args:
            ticks: of each submit: one before its first operation, one behind each.

        Raises:
            DeviceError: these can't be of the last run.
        """
        is_old = self._is_new and ticks == self._ticks
        if is_old or any(later < t for submit in ticks for t, later in pairwise(submit)):
            raise DeviceError(
                "the driver does not write timestamps that Kompute has not reset; profile with "
                'dispatcher="vulkan"'
            )
        self._ticks, self._is_new = ticks, False
        return [
            (later - t) * self._tick_us
            for submit, kinds in zip(ticks, self._is_dispatch, strict=True)
            for (t, later), is_dispatch in zip(pairwise(submit), kinds, strict=True)
            if is_dispatch
        ]
