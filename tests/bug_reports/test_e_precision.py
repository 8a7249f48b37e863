"""Section E: float32 unless asked otherwise, sums in float32 always."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tflite_vk
from tests.bug_reports.doors import DOORS, load, oracle, random, run
from tests.support.compare import assert_close
from tflite_vk.frontend.flatbuffer import read_model
from tflite_vk.ir.attributes import BinaryAttributes, Conv2DAttributes, ReducerAttributes
from tflite_vk.lowering import lower
from tflite_vk.runtime.device import Device
from tflite_vk.session import Session
from tflite_vk.testing import ModelWriter

pytestmark = pytest.mark.usefixtures("device")


def conv() -> bytes:
    w = ModelWriter()
    kernel = w.const(random(5, 3, 3, 4, low=-0.3, high=0.3))
    x = w.input((1, 6, 7, 4))
    w.output(w.op("CONV_2D", [x, kernel, w.const(random(5))], [(1, 6, 7, 5)], Conv2DAttributes()))
    return w.build()


def test_e5_e6_a_feature_bit_switches_no_float16_on(device: Device) -> None:
    """Whatever a device says it can, the default computes in float32."""
    everything = frozenset({"shaderFloat16", "storageBuffer16BitAccess", "shaderInt8"})
    info = replace(device.info, features=device.info.features | everything)
    program = lower(read_model(conv()).subgraphs[0], info).program
    assert not [d.kernel.shader for d in program.dispatches if "f16" in d.kernel.shader]
    assert tflite_vk.DelegateOptions().precision == "fp32"


@pytest.mark.parametrize("door", DOORS)
def test_e1_e2_float16_mode_sums_in_float32(door: str) -> None:
    """50,000 tens and their squares: beyond 65504, while storage keeps the mean and its root."""
    w = ModelWriter()
    x = w.input((1, 112, 112, 4))
    axes = w.const(np.array([1, 2], np.int32))
    w.output(w.op("MEAN", [x, axes], [(1, 4)], ReducerAttributes()))
    tens = np.full((1, 112, 112, 4), 10, np.float32)
    interpreter, _ = load(w.build(), door, precision="fp16")
    np.testing.assert_allclose(run(interpreter, [tens])[0], 10, rtol=1e-3)


@pytest.mark.parametrize("door", DOORS)
def test_e6_float16_mode_computes_what_the_cpu_does(door: str) -> None:
    x = random(1, 6, 7, 4)
    interpreter, _ = load(conv(), door, precision="fp16")
    assert_close(run(interpreter, [x])[0], run(oracle(conv()), [x])[0], 1e-2, 1e-2, door)


def test_e7_precision_is_chosen_for_each_model(device: Device) -> None:
    """float16 storage loses what float32 keeps, and only where it was asked for."""
    w = ModelWriter()
    y = w.input((3, 37))
    for factor in (1000.0, 0.001):
        y = w.op("MUL", [y, w.const(np.float32(factor))], [(3, 37)], BinaryAttributes())
    w.output(y)
    graph = read_model(w.build()).subgraphs[0]
    x = random(3, 37, low=90, high=110)
    found = {}
    for precision in ("fp32", "fp16"):
        session = Session(graph, device, precision=precision, fusion=False)
        outputs = session.allocate_outputs(graph.outputs)
        session.run({graph.inputs[0]: x}, outputs)
        found[precision] = outputs[graph.outputs[0]].copy()
        session.close()
    np.testing.assert_allclose(found["fp32"], x, rtol=1e-6)
    assert not np.allclose(found["fp16"], x, rtol=0.1), "70,000 does not fit float16"
