"""Section I: limits of devices, simulated: lowering is told smaller ones than the driver has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from tests.bug_reports.doors import DOORS, load, oracle, random, run, taken
from tests.fuzz.devices import open_as, variants
from tests.ops.test_ops import all_cases
from tests.support.case import Array, Case
from tflite_vk.device_info import DeviceInfo, DeviceLimits
from tflite_vk.dtypes import DType
from tflite_vk.frontend.flatbuffer import read_model
from tflite_vk.ir.attributes import BinaryAttributes, ReducerAttributes, SoftmaxAttributes
from tflite_vk.ir.graph import Quantization
from tflite_vk.lowering import lower
from tflite_vk.ops.registry import unsupported_reason
from tflite_vk.passes.fold_constants import fold_constants
from tflite_vk.program import MAX_PUSH_WORDS, Dispatch
from tflite_vk.runtime.device import Device
from tflite_vk.session import Session
from tflite_vk.shader_library import shader_info
from tflite_vk.testing import ModelWriter, TensorSpec

LEAST = DeviceLimits()


def least(info: DeviceInfo, **limits: object) -> DeviceInfo:
    """A device with the least that Vulkan 1.1 promises for workgroups."""
    workgroups = {
        "max_workgroup_invocations": LEAST.max_workgroup_invocations,
        "max_workgroup_size": LEAST.max_workgroup_size,
        "shared_memory_bytes": LEAST.shared_memory_bytes,
        "max_push_constant_bytes": LEAST.max_push_constant_bytes,
    }
    return replace(info, limits=replace(info.limits, **(workgroups | limits)))


def local_size(d: Dispatch) -> tuple[int, int, int]:
    """Workgroup size: specialization constants 0 to 2."""
    x, y, z = d.kernel.spec[:3]
    return x, y, z


@pytest.mark.parametrize("kind", ["cpu", "discrete"])
def test_i6_i7_i8_every_operator_fits_the_least_device(kind: str, device: Device) -> None:
    """No case of any operator asks for more than 128 invocations or 128 bytes of constants."""
    info = replace(least(device.info), type=kind)  # type: ignore[arg-type]
    seen: set[str] = set()
    for case in _small_cases():
        graph = fold_constants(read_model(case.model()).subgraphs[0])
        for d in lower(graph, info).program.dispatches:
            size = local_size(d)
            assert int(np.prod(size)) <= LEAST.max_workgroup_invocations, (case.name, d.label)
            assert all(a <= b for a, b in zip(size, LEAST.max_workgroup_size, strict=True)), (
                case.name,
                d.label,
            )
            assert len(d.push) <= MAX_PUSH_WORDS, (case.name, d.label)
            shared = shader_info(d.kernel.shader).shared_bytes
            assert (shared or 0) <= LEAST.shared_memory_bytes, (case.name, d.label)
            seen.add(d.kernel.shader)
    assert len(seen) > 40


def _small_cases() -> Iterator[Case]:
    """Cases that lower without a device; many of a kind only now and then."""
    for position, case in enumerate(all_cases()):
        if case.declined is None and position % 4 == 0:
            yield case


@pytest.mark.parametrize("count", [(3, 65535, 65535), (5, 40, 65535)])
def test_i1_i2_i3_groups_are_folded_over_the_axes(
    device: Device, count: tuple[int, int, int]
) -> None:
    """More workgroups than x, or x and y, may have: nothing is left out, nothing done twice."""
    shape = (1, 61, 19, 3)
    w = ModelWriter()
    x = w.input(shape)
    y = w.op("EXP", [w.op("ADD", [x, x], [shape], BinaryAttributes())], [shape])
    w.output(y, w.op("SOFTMAX", [y], [shape], SoftmaxAttributes(1.0)))
    info = least(device.info, max_workgroup_count=count)
    graph = read_model(w.build()).subgraphs[0]
    lowered = lower(graph, info)
    used = [d.groups for d in lowered.program.dispatches]
    assert all(n <= limit for g in used for n, limit in zip(g, count, strict=True))
    assert any(g[1] > 1 for g in used)
    value = random(*shape, low=-1, high=1)
    got = _run_limited(device, info, graph, value)
    want = np.exp(2 * value.astype(np.float64))
    np.testing.assert_allclose(got[0], want, rtol=1e-5)
    e = np.exp(want - want.max(-1, keepdims=True))
    np.testing.assert_allclose(got[1], e / e.sum(-1, keepdims=True), rtol=1e-4, atol=1e-6)


class _Told:
    """A device that says it is another one."""

    def __init__(self, device: Device, info: DeviceInfo) -> None:
        self._device = device
        self.info = info
        self.dispatcher = device.dispatcher

    def compile(self, *arguments: object, **keywords: object) -> object:
        return self._device.compile(*arguments, **keywords)  # type: ignore[arg-type]


def _run_limited(device: Device, info: DeviceInfo, graph: object, value: Array) -> list[Array]:
    session = Session(graph, _Told(device, info), guard_words=16)  # type: ignore[arg-type]
    try:
        outputs = session.allocate_outputs(graph.outputs)  # type: ignore[attr-defined]
        session.run({graph.inputs[0]: value}, outputs)  # type: ignore[attr-defined]
        assert session.executable.check_guards() == []
        return [outputs[t].copy() for t in graph.outputs]  # type: ignore[attr-defined]
    finally:
        session.close()


def test_i6_it_runs_on_the_least_device(device: Device) -> None:
    assert variants(device)["least limits"].info.limits.max_workgroup_invocations == 128
    w = ModelWriter()
    x = w.input((2, 33, 37))
    w.output(w.op("SOFTMAX", [x], [(2, 33, 37)], SoftmaxAttributes(1.0)))
    value = random(2, 33, 37)
    got = _run_limited(device, least(device.info), read_model(w.build()).subgraphs[0], value)[0]
    e = np.exp(value - value.max(-1, keepdims=True))
    np.testing.assert_allclose(got, e / e.sum(-1, keepdims=True), rtol=1e-5)


def test_i4_a_tensor_beyond_the_largest_binding_is_declined() -> None:
    """151 MB at the 128 MiB that Vulkan promises; a device that binds more takes it."""
    w = ModelWriter()
    shape = (1, 2048, 2048, 9)
    w.output(w.op("RELU", [w.input(shape)], [shape]))
    graph = read_model(w.build()).subgraphs[0]
    reason = unsupported_reason(graph.nodes[0], graph, LEAST)
    assert reason is not None
    assert "takes 201326592 bytes, the device binds at most 134217728" in reason
    more = replace(LEAST, max_storage_buffer_bytes=1 << 30)
    assert unsupported_reason(graph.nodes[0], graph, more) is None


def test_i4_a_weight_beyond_the_largest_binding_is_declined() -> None:
    w = ModelWriter()
    kernel = np.zeros((4096, 9000), np.float32)
    y = w.op("FULLY_CONNECTED", [w.input((1, 9000)), w.const(kernel)], [(1, 4096)])
    w.output(y)
    graph = read_model(w.build()).subgraphs[0]
    assert unsupported_reason(graph.nodes[0], graph, LEAST) is not None
    more = replace(LEAST, max_storage_buffer_bytes=1 << 30)
    assert unsupported_reason(graph.nodes[0], graph, more) is None


def test_i5_a_gigantic_result_is_declined_by_name() -> None:
    w = ModelWriter()
    shape = (1, 32, 3, 8294400)
    x = w.input((1, 32, 3, 1))
    w.output(w.op("TILE", [x, w.const(np.array([1, 1, 1, 8294400], np.int32))], [shape]))
    graph = read_model(w.build()).subgraphs[0]
    reason = unsupported_reason(graph.nodes[0], graph, LEAST)
    assert reason is not None
    assert "output 0 takes 3185049600 bytes" in reason


@pytest.mark.parametrize("door", DOORS)
def test_i4_what_a_node_needs_between_its_dispatches_counts_too(
    door: str, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums of an int8 SUM are four times as large as its result; beside it all runs on the device."""
    small = replace(device.info.limits, max_storage_buffer_bytes=4096)
    limited = open_as(device, replace(device.info, limits=small))
    for module in ("delegate.delegate", "interpreter.opening"):
        monkeypatch.setattr(f"tflite_vk.{module}.open_device", lambda *_, **__: limited)
    scale = Quantization((0.5,), (3,))
    w = ModelWriter()
    x = w.input((2, 1500), dtype=DType.INT8, quantization=scale)
    y = w.op("RELU", [x], [TensorSpec((2, 1500), DType.INT8, scale)])
    axis = w.const(np.array([0], np.int32))
    w.output(w.op("SUM", [y, axis], [TensorSpec((1500,), DType.INT8, scale)], ReducerAttributes()))
    data = w.build()
    interpreter, _ = load(data, door)
    values = [np.random.default_rng(1).integers(-30, 31, (2, 1500)).astype(np.int8)]
    assert np.array_equal(run(interpreter, values)[0], run(oracle(data), values)[0])
    report = interpreter.report if door == "interpreter" else interpreter.keep_delegate.report
    assert taken(report) == {"RELU": True, "SUM": False}
    reason = next(n.reason for n in report.nodes if n.op == "SUM")
    assert "takes 6000 bytes, the device binds at most 4096 (maxStorageBufferRange)" in reason
