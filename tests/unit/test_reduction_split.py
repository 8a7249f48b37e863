"""How reductions are shared: within every device's limits, and nothing left out."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tflite_vk.device_info import DeviceInfo, DeviceLimits
from tflite_vk.ops.reduction import split, split_once

LEAST = DeviceInfo(0, "least", "integrated", limits=DeviceLimits())
DESKTOP = replace(
    LEAST,
    type="discrete",
    limits=DeviceLimits(max_workgroup_invocations=1024, max_workgroup_size=(1024, 1024, 64)),
)
SOFTWARE = replace(DESKTOP, type="cpu")


@given(
    st.integers(1, 1 << 20), st.integers(1, 1 << 20), st.sampled_from([LEAST, DESKTOP, SOFTWARE])
)
def test_limits(outputs: int, count: int, device: DeviceInfo) -> None:
    limits = device.limits
    for how in (split(outputs, count, device), split_once(outputs, count, device)):
        assert how.sharers & (how.sharers - 1) == 0, "they meet in a tree"
        assert 1 <= how.sharers <= count
        assert how.sharers * how.outputs <= limits.max_workgroup_invocations
        # Either may be the one that lies along x.
        assert max(how.sharers, how.outputs) <= min(limits.max_workgroup_size[:2])
        assert 1 <= how.slices <= 256
        assert how.slices * how.sharers <= count
    assert split_once(outputs, count, device).slices == 1


def test_a_gpu_reads_rows_and_is_kept_busy() -> None:
    """A mean over 96x96 pixels of 128 channels: 32 groups of outputs."""
    how = split(32, 96 * 96, DESKTOP)
    assert (how.outputs, how.sharers) == (8, 32)
    assert how.slices * 4 >= 128


def test_a_short_reduction_takes_one_dispatch() -> None:
    """A mean over 7x7 pixels of 1024 channels."""
    assert split(256, 49, DESKTOP).slices == 1
