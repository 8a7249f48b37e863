"""Sizes of kernels: the first choice, what may be tried instead, and what lowering makes of both."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tflite_vk.device_info import DeviceInfo, DeviceLimits
from tflite_vk.frontend.flatbuffer import read_model
from tflite_vk.ir.attributes import (
    BinaryAttributes,
    Conv2DAttributes,
    DepthwiseConv2DAttributes,
    FullyConnectedAttributes,
)
from tflite_vk.ir.graph import Graph
from tflite_vk.lowering import lower
from tflite_vk.ops.conv_shared_tile import is_shared
from tflite_vk.ops.conv_tile import choose_tile, make_tile, tile_size, tile_sizes
from tflite_vk.ops.sizes import Effort, Offer, Size, near
from tflite_vk.runtime.null import NULL_DEVICE
from tflite_vk.testing.model_writer import ModelWriter

GPU = DeviceInfo(
    0,
    "gpu",
    "discrete",
    limits=DeviceLimits(
        max_workgroup_invocations=1024,
        max_workgroup_size=(1024, 1024, 64),
        shared_memory_bytes=48 << 10,
        max_storage_buffers=32,
    ),
)
SMALL = dataclasses.replace(NULL_DEVICE, type="integrated", name="small")
SOFTWARE = dataclasses.replace(GPU, type="cpu", name="software")
DEVICES = {d.name: d for d in (GPU, SMALL, SOFTWARE)}

SHAPES = [(1, 1, 1), (12544, 8, 8), (3136, 16, 32), (49, 256, 256), (196, 128, 3), (7, 3, 1)]
"""Pixels, output groups, input groups."""


def layers() -> Graph:
    """A convolution, a depthwise one and a matrix-vector product."""
    w, rng = ModelWriter(), np.random.default_rng(0)

    def weights(*shape: int) -> int:
        return w.const(rng.standard_normal(shape).astype(np.float32))

    x = w.input((1, 8, 8, 8), name="x")
    conv = Conv2DAttributes(fused_activation_function="RELU", stride_h=1, stride_w=1)
    x = w.op("CONV_2D", [x, weights(16, 3, 3, 8), weights(16)], [(1, 8, 8, 16)], conv)
    depthwise = DepthwiseConv2DAttributes(stride_h=1, stride_w=1, depth_multiplier=1)
    inputs = [x, weights(1, 3, 3, 16), weights(16)]
    x = w.op("DEPTHWISE_CONV_2D", inputs, [(1, 8, 8, 16)], depthwise)
    inputs = [x, weights(12, 1024), weights(12)]
    w.output(w.op("FULLY_CONNECTED", inputs, [(1, 12)], FullyConnectedAttributes()))
    return read_model(w.build()).subgraphs[0]


@pytest.mark.parametrize("device", DEVICES.values(), ids=DEVICES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("build", ["plain", "grouped", "sharing"])
def test_every_tile_fits_the_device(
    device: DeviceInfo, shape: tuple[int, int, int], build: str
) -> None:
    pixels, output_groups, input_groups = shape
    is_grouped, is_sharing = build == "grouped", build == "sharing"
    sizes = tile_sizes(
        pixels, output_groups, device, is_grouped, input_groups, is_sharing=is_sharing
    )
    assert not is_sharing or all(size[0] % 8 == 0 and size[2] == 8 for size in sizes)
    assert sizes or pixels * output_groups < 64, "only where nothing could be gained"
    assert len(set(sizes)) == len(sizes)
    for size in sizes:
        tile = make_tile(size, pixels, output_groups, device)
        assert tile_size(tile) == size
        x, y, z = tile.local
        assert x * y * z <= device.limits.max_workgroup_invocations
        shared = 16 * tile.pixels * tile.channel_groups * x * y * z
        assert z == 1 or shared <= device.limits.shared_memory_bytes
        assert tile.groups[0] * x * tile.channel_groups >= output_groups
        assert tile.groups[1] * tile.groups[2] * y * tile.pixels >= pixels
        assert not (is_grouped and tile.channel_groups > 1)


def test_a_software_driver_never_splits_the_sum() -> None:
    assert all(size[4] == 1 for size in tile_sizes(3136, 16, SOFTWARE, False, 32))
    assert any(size[4] > 1 for size in tile_sizes(3136, 16, GPU, False, 32))


def test_only_a_gpu_takes_steps_of_the_sum_together() -> None:
    assert all(size[5] == 1 for size in tile_sizes(3136, 16, SOFTWARE, False, 32))
    deep = [size for size in tile_sizes(3136, 16, GPU, False, 32) if size[5] > 1]
    assert deep
    assert all(size[4] * size[5] <= 32 for size in deep)


def test_near_sizes_differ_little() -> None:
    rule = tile_size(choose_tile(3136, 16, GPU, False, 32))
    few = near(rule, tile_sizes(3136, 16, GPU, False, 32))
    assert 0 < len(few) < len(tile_sizes(3136, 16, GPU, False, 32)) / 2
    assert rule not in few
    assert near((4, 1), [(4, 1), (8, 1), (8, 2), (16, 2), (1, 1)]) == ((8, 1), (8, 2))


def _never() -> list[Size]:
    raise AssertionError("asked for sizes though nothing is tuned")


def test_an_offer_costs_nothing_until_it_is_taken() -> None:
    offer = Offer("conv", (4, 1), _never)
    assert offer.pick({}) == (4, 1)
    assert offer.pick({"conv": (4, 1), "other": (8, 1)}) == (4, 1)
    assert not list(offer.others("off", (4, 1)))


def test_only_what_is_on_offer_is_picked() -> None:
    offer = Offer("conv", (4, 1), lambda: [(8, 1), (64, 64)])
    assert offer.pick({"conv": (8, 1)}) == (8, 1)
    assert offer.pick({"conv": (512, 1)}) == (4, 1), "another version's idea of a size"
    assert list(offer.others("fast", (4, 1))) == [(8, 1)]
    assert list(offer.others("exhaustive", (4, 1))) == [(8, 1), (64, 64)]
    assert list(offer.others("fast", (8, 1))) == [(4, 1)], "the rule's size is tried too"


@pytest.mark.parametrize("device", DEVICES.values(), ids=DEVICES)
def test_lowering_offers_sizes_when_asked(device: DeviceInfo) -> None:
    graph = layers()
    plain = lower(graph, device)
    assert not plain.choices
    offered = lower(graph, device, effort="exhaustive")
    assert offered.program.dispatches == plain.program.dispatches
    assert [b.words for b in offered.program.buffers] == [b.words for b in plain.program.buffers]
    shaders = [c.signature.split()[0] for c in offered.choices]
    assert shaders == ["conv_2d", "depthwise_conv_2d", "fully_connected"]
    forms = {is_shared(size) for choice in offered.choices for size in choice.others}
    assert forms == ({False} if device.is_software else {False, True})
    for choice in offered.choices:
        own = offered.program.dispatches[choice.dispatch]
        for size, other in choice.others.items():
            assert other.bindings == own.bindings
            assert other.kernel.shader.startswith(choice.signature.split()[0])
            assert ("_shared" in other.kernel.shader) == (
                choice.signature.startswith("conv_2d") and is_shared(size)
            )
            assert other != own, size


@pytest.mark.parametrize("effort", ["off", "exhaustive"])
def test_a_converted_operand_comes_before_the_kernel(effort: Effort) -> None:
    """The sum's other operand is float16, and the convolution that takes the sum in float32."""
    w, rng = ModelWriter(), np.random.default_rng(0)
    x, shape = w.input((1, 8, 8, 8), name="x"), (1, 8, 8, 8)
    other = w.op("ABS", [x], [shape])
    filters = w.const(rng.standard_normal((8, 1, 1, 8)).astype(np.float32))
    conv = Conv2DAttributes(stride_h=1, stride_w=1)
    y = w.op("CONV_2D", [x, filters, w.const(np.zeros(8, np.float32))], [shape], conv)
    w.output(w.op("ADD", [y, other], [shape], BinaryAttributes()), w.op("NEG", [other], [shape]))
    graph = read_model(w.build()).subgraphs[0]
    offered = lower(graph, GPU, half=True, fp32_ops=["CONV_2D"], effort=effort)
    shaders = [d.kernel.shader for d in offered.program.dispatches]
    assert shaders.index("cast_f16_f32") == shaders.index("conv_2d") - 1
    for choice in offered.choices:
        assert offered.program.dispatches[choice.dispatch].kernel.shader == "conv_2d"


def test_lowering_takes_what_tuning_found() -> None:
    graph = layers()
    offered = lower(graph, GPU, effort="exhaustive")
    tuned = {c.signature: next(iter(c.others)) for c in offered.choices}
    got = lower(graph, GPU, tuned=tuned)
    for choice in offered.choices:
        want = choice.others[tuned[choice.signature]]
        assert got.program.dispatches[choice.dispatch] == want
    nonsense = dict.fromkeys(tuned, (3, 3, 3, 3, 3))
    assert lower(graph, GPU, tuned=nonsense).program.dispatches == offered.program.dispatches


def test_signatures_tell_builds_apart() -> None:
    def signatures(half: bool) -> set[str]:
        return {c.signature for c in lower(layers(), GPU, half=half, effort="fast").choices}

    assert len(signatures(False)) == 3
    assert signatures(False).isdisjoint(signatures(True))
