"""Kompute's timestamps: the device's unit, and no time that an earlier run has left."""

from __future__ import annotations

import pytest

from tflite_vk.errors import DeviceError
from tflite_vk.runtime.kompute_times import KomputeTimes

UPLOAD_TWO_DOWNLOAD = [(False, True, True, False)]


def test_ticks_have_the_length_the_device_says() -> None:
    times = KomputeTimes(UPLOAD_TWO_DOWNLOAD, tick_ns=52.08)
    times.note_run()
    assert times.spans_us([[1000, 1100, 1300, 1400, 9000]]) == pytest.approx([10.416, 5.208])


def test_each_submit_counts_from_its_own_start() -> None:
    times = KomputeTimes([(False,), (True,), (True, False)], tick_ns=1000.0)
    times.note_run()
    assert times.spans_us([[0, 5], [100, 107], [200, 203, 300]]) == [7.0, 3.0]


def test_before_a_run_there_is_nothing() -> None:
    times = KomputeTimes(UPLOAD_TWO_DOWNLOAD, tick_ns=1.0)
    with pytest.raises(DeviceError, match="no run to have timed yet"):
        times.check_run()
    times.note_run()
    times.check_run()


def test_times_of_an_earlier_run_are_refused() -> None:
    times = KomputeTimes([(True,)], tick_ns=1.0)
    times.note_run()
    first = times.spans_us([[10, 30]])
    assert times.spans_us([[10, 30]]) == first, "asked twice about one run"
    times.note_run()
    with pytest.raises(DeviceError, match='dispatcher="vulkan"'):
        times.spans_us([[10, 30]])


def test_times_that_run_backwards_are_refused() -> None:
    times = KomputeTimes([(True, True)], tick_ns=1.0)
    times.note_run()
    with pytest.raises(DeviceError, match='dispatcher="vulkan"'):
        times.spans_us([[10, 30, 20]])
