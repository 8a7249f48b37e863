"""The tile rule keeps to every device's limits and covers every output."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from hypothesis import given
from hypothesis import strategies as st

from tflite_vk.device_info import DeviceInfo, DeviceLimits
from tflite_vk.ops.conv_tile import SUBGROUP, choose_tile, shares_loads

LEAST = DeviceInfo(0, "least", "integrated", limits=DeviceLimits())
DESKTOP = replace(
    LEAST,
    type="discrete",
    limits=DeviceLimits(
        max_workgroup_invocations=1024,
        max_workgroup_size=(1024, 1024, 64),
        shared_memory_bytes=49152,
    ),
)
SOFTWARE = replace(DESKTOP, type="cpu")
LAVAPIPE = replace(
    SOFTWARE,
    limits=replace(DESKTOP.limits, subgroup_size=SUBGROUP),
    features=frozenset({"subgroupBallot"}),
)


@given(
    st.integers(1, 1 << 22),
    st.integers(1, 4096),
    st.sampled_from([LEAST, DESKTOP, SOFTWARE, LAVAPIPE]),
    st.booleans(),
    st.integers(0, 4096),
)
def test_tile(
    num_pixels: int, output_groups: int, device: DeviceInfo, is_grouped: bool, input_groups: int
) -> None:
    is_sharing = shares_loads(output_groups, device, is_grouped)
    tile = choose_tile(
        num_pixels, output_groups, device, is_grouped, input_groups, is_sharing=is_sharing
    )
    if is_sharing:
        assert tile.local[0] == SUBGROUP
        assert tile.pixels % SUBGROUP == 0
    limits = device.limits
    assert prod(tile.local) <= limits.max_workgroup_invocations
    for size, most in zip(tile.local, limits.max_workgroup_size, strict=True):
        assert 1 <= size <= most
    for count, most in zip(tile.groups, limits.max_workgroup_count, strict=True):
        assert 1 <= count <= most
    x, y, z = tile.local
    assert tile.groups[0] * x * tile.channel_groups >= output_groups
    assert tile.groups[1] * tile.groups[2] * y * tile.pixels >= num_pixels
    if z > 1:
        shared_bytes = 16 * tile.pixels * tile.channel_groups * prod(tile.local)
        assert shared_bytes <= limits.shared_memory_bytes
        assert z <= input_groups
    if is_grouped:
        assert tile.channel_groups == 1


def test_loads_are_shared_where_a_subgroup_reads_the_same() -> None:
    assert shares_loads(3, LAVAPIPE, is_grouped=False)
    assert not shares_loads(2, LAVAPIPE, is_grouped=False)
    assert not shares_loads(64, LAVAPIPE, is_grouped=True)
    assert not shares_loads(64, replace(LAVAPIPE, type="discrete"), is_grouped=False)
    assert not shares_loads(64, replace(LAVAPIPE, features=frozenset()), is_grouped=False)
    assert not shares_loads(64, SOFTWARE, is_grouped=False)
