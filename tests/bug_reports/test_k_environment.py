"""Section K: repeatable results, fusion on and off, devices that lack something."""

from __future__ import annotations

import numpy as np
import pytest

from tests.bug_reports.doors import random
from tests.support.compare import assert_close
from tflite_vk.errors import DeviceError
from tflite_vk.frontend.flatbuffer import read_model
from tflite_vk.ir.attributes import BinaryAttributes, Conv2DAttributes, FullyConnectedAttributes
from tflite_vk.ir.graph import Graph
from tflite_vk.runtime.device import Device
from tflite_vk.runtime.open import devices
from tflite_vk.runtime.vulkan import probe
from tflite_vk.session import Session
from tflite_vk.testing import ModelWriter

pytestmark = pytest.mark.usefixtures("device")


def residual(blocks: int) -> Graph:
    """Convolutions with residual additions, as ResNet's."""
    w = ModelWriter()
    shape = (1, 12, 11, 8)
    y = w.input(shape)
    for i in range(blocks):
        z = y
        for j in range(2):
            kernel = w.const(random(8, 3, 3, 8, seed=10 * i + j, low=-0.2, high=0.2))
            bias = w.const(random(8, seed=i))
            z = w.op("CONV_2D", [z, kernel, bias], [shape], Conv2DAttributes("RELU"))
        y = w.op("ADD", [y, z], [shape], BinaryAttributes("RELU6"))
    w.output(y)
    return read_model(w.build()).subgraphs[0]


def results(graph: Graph, device: Device, runs: int, *, fusion: bool = True) -> list[bytes]:
    shape = graph.tensors[graph.inputs[0]].shape
    session = Session(graph, device, fusion=fusion)
    try:
        found = []
        for _ in range(runs):
            outputs = session.allocate_outputs(graph.outputs)
            session.run({graph.inputs[0]: random(*shape)}, outputs)
            found.append(outputs[graph.outputs[0]].tobytes())
        return found
    finally:
        session.close()


def test_k9_a_large_fully_connected_is_repeatable(device: Device) -> None:
    w = ModelWriter()
    x = w.input((1, 300, 384))
    kernel = w.const(random(384, 384, low=-0.1, high=0.1))
    a = FullyConnectedAttributes(keep_num_dims=True)
    w.output(w.op("FULLY_CONNECTED", [x, kernel], [(1, 300, 384)], a, version=6))
    assert len(set(results(read_model(w.build()).subgraphs[0], device, 40))) == 1


def test_k10_a_residual_network_is_repeatable(device: Device) -> None:
    assert len(set(results(residual(4), device, 20))) == 1


def test_k12_fusion_changes_no_value(device: Device) -> None:
    fused, plain = (
        np.frombuffer(results(residual(3), device, 1, fusion=fusion)[0], np.float32)
        for fusion in (True, False)
    )
    assert_close(fused, plain, 1e-5, 1e-6, "fusion")


def test_k6_a_driver_that_does_not_start_is_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    def incompatible() -> object:
        raise DeviceError("vkCreateInstance: VK_ERROR_INCOMPATIBLE_DRIVER")

    monkeypatch.setattr(probe, "load_vulkan", incompatible)
    assert devices() == []


def test_k2_names_and_kinds_tell_devices_apart() -> None:
    for info in devices():
        assert info.name
        assert info.type in ("discrete", "integrated", "virtual", "cpu", "other")
        assert info.is_software == (info.type == "cpu")
