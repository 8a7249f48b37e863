"""Blocks of the product through shared memory: within every device's limits, and by rule."""

from __future__ import annotations

import re
from dataclasses import replace
from math import prod
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.test_conv_tile import DESKTOP, LEAST, SOFTWARE
from tflite_vk.device_info import DeviceInfo
from tflite_vk.frontend.flatbuffer import read_model
from tflite_vk.ir.attributes import Conv2DAttributes
from tflite_vk.lowering import lower
from tflite_vk.ops.conv_shared_tile import (
    choose_shared,
    is_better,
    is_shared,
    make_shared_tile,
    shared_bytes,
    shared_sizes,
    with_shared,
)
from tflite_vk.ops.conv_tile import tile_offer
from tflite_vk.ops.sizes import Offer, Size
from tflite_vk.testing.model_writer import ModelWriter

SHADER = Path(__file__).resolve().parents[2] / "shaders" / "conv_2d_shared.comp"

LAYERS = {
    "3x3, 64 channels, 56x56": ((3136, 16, 144), True),
    "3x3, 128 channels, 28x28": ((784, 32, 288), True),
    "1x1, 256 to 64, 56x56": ((3136, 16, 64), True),
    "3x3, 512 channels, 7x7": ((49, 128, 1152), True),
    "short sum": ((3136, 64, 12), False),
    "few pixels": ((25, 128, 1152), False),
    "few outputs": ((100, 4, 288), False),
}
"""Pixels, output groups and groups in a sum; whether the rule takes shared memory for them."""


def _check(size: Size, shape: tuple[int, int, int], device: DeviceInfo) -> None:
    num_pixels, output_groups, sum_groups = shape
    assert is_shared(size)
    tile = make_shared_tile(size, num_pixels, output_groups, device)
    x, y, z = tile.local
    assert (tile.pixels, tile.channel_groups, x, y, z, tile.depth) == size[:6]
    assert prod(tile.local) <= device.limits.max_workgroup_invocations
    for n, most in zip(tile.local, device.limits.max_workgroup_size, strict=True):
        assert 1 <= n <= most
    for n, most in zip(tile.groups, device.limits.max_workgroup_count, strict=True):
        assert 1 <= n <= most
    assert tile.groups[0] * x * tile.channel_groups >= output_groups
    assert tile.groups[1] * tile.groups[2] * y * tile.pixels >= num_pixels
    assert shared_bytes(size) <= device.limits.shared_memory_bytes
    assert x * y % tile.depth == 0, "an invocation stages one input group of a step"
    assert 2 * tile.depth * z <= sum_groups, "one step is staged while another is multiplied"


@given(
    st.integers(1, 1 << 22),
    st.integers(1, 4096),
    st.integers(1, 1 << 16),
    st.sampled_from([LEAST, DESKTOP]),
)
def test_the_rule_keeps_to_the_limits(
    num_pixels: int, output_groups: int, sum_groups: int, device: DeviceInfo
) -> None:
    shape = (num_pixels, output_groups, sum_groups)
    size = choose_shared(*shape, device.limits)
    assert (size is None) == (sum_groups < 2)
    if size is not None:
        _check(size, shape, device)


@pytest.mark.parametrize("device", [LEAST, DESKTOP], ids=lambda d: d.type)
@pytest.mark.parametrize("shape", [shape for shape, _ in LAYERS.values()], ids=LAYERS)
def test_every_size_fits_the_device(shape: tuple[int, int, int], device: DeviceInfo) -> None:
    sizes = shared_sizes(*shape, device.limits)
    assert len(set(sizes)) == len(sizes) > 20
    assert choose_shared(*shape, device.limits) in sizes
    for size in sizes:
        _check(size, shape, device)


def _offer(shape: tuple[int, int, int], device: DeviceInfo) -> Offer:
    num_pixels, output_groups, sum_groups = shape
    plain = tile_offer("conv", num_pixels, output_groups, device, False, sum_groups)
    return with_shared(plain, num_pixels, output_groups, sum_groups, device)


@pytest.mark.parametrize(("shape", "is_taken"), LAYERS.values(), ids=LAYERS)
def test_the_rule(shape: tuple[int, int, int], is_taken: bool) -> None:
    offer = _offer(shape, DESKTOP)
    assert is_shared(offer.rule) == is_taken
    own = choose_shared(*shape, DESKTOP.limits)
    assert own is not None
    assert is_better(own, *shape) == is_taken
    for other in (SOFTWARE, replace(DESKTOP, type="integrated")):
        assert not is_shared(_offer(shape, other).rule)


@pytest.mark.parametrize(("shape", "is_taken"), LAYERS.values(), ids=LAYERS)
def test_both_forms_are_tried(shape: tuple[int, int, int], is_taken: bool) -> None:
    del is_taken
    offer = _offer(shape, DESKTOP)
    few, all_sizes = (set(offer.others(e, offer.rule)) for e in ("fast", "exhaustive"))
    assert {is_shared(size) for size in few} == {True, False}
    assert few < all_sizes
    for size in (*few, offer.rule):
        assert offer.pick({"conv": size}) == size
    assert not any(is_shared(s) for s in _offer(shape, SOFTWARE).others("exhaustive", offer.rule))


def _in_shader(size: Size) -> int:
    """What the shader's own constants make of a size: bytes of its pool."""
    names = ("TILE_P", "TILE_C", "gl_WorkGroupSize.x", "gl_WorkGroupSize.y", "gl_WorkGroupSize.z")
    known = dict(zip((*names, "DEPTH", "BUFFERS"), size, strict=True))
    source = SHADER.read_text(encoding="utf-8")

    def value(expression: str) -> int:
        text = re.sub(r"(\d)u\b", r"\1", expression).replace("/", "//")
        text = re.sub(r"([^()?]+) \? ([^()?]+) : ([^()?]+)", r"((\2) if (\1) else (\3))", text)
        text = re.sub(r"[A-Za-z_][\w.]*", lambda m: str(known.get(m[0], m[0])), text)
        return int(eval(text))  # arithmetic of the shader in this tree

    declared = r"^const uint (\w+) = ([^;]+);|^shared vec4 pool\[([^;]+)\];"
    for name, expression, pool in re.findall(declared, source, re.MULTILINE):
        if pool:
            return 16 * value(pool)
        known[name] = value(expression)
    raise AssertionError("no pool")


def test_the_shader_has_as_much_shared_memory() -> None:
    sizes = shared_sizes(3136, 16, 144, DESKTOP.limits)
    for size in (*sizes, (2, 1, 4, 1, 8, 4, 2), (4, 2, 2, 3, 1, 1, 1), (8, 1, 8, 16, 2, 1, 1)):
        assert _in_shader(size) == shared_bytes(size), size


@pytest.mark.parametrize("groups", [1, 2])
def test_groups_that_share_no_input_keep_register_tiles(groups: int) -> None:
    w = ModelWriter()
    shape = (1, 32, 32, 64)
    weights = w.const(np.ones((64, 3, 3, 64 // groups), np.float32))
    inputs = [w.input(shape), weights, w.const(np.ones(64, np.float32))]
    w.output(w.op("CONV_2D", inputs, [shape], Conv2DAttributes()))
    graph = read_model(w.build()).subgraphs[0]
    lowered = lower(graph, DESKTOP, effort="exhaustive")
    shaders = {d.kernel.shader for choice in lowered.choices for d in choice.others.values()}
    assert shaders == ({"conv_2d", "conv_2d_shared"} if groups == 1 else {"conv_2d"})
