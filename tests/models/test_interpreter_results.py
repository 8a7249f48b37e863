"""Results of the interpreter, alone and with LiteRT for what the device declines."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.compare import assert_close
from tests.support.models import model_path
from tests.support.oracle import reference_interpreter
from tflite_vk.interpreter import Interpreter
from tflite_vk.ir import attributes as ir
from tflite_vk.testing import ModelWriter

pytestmark = pytest.mark.usefixtures("device")

RNG = np.random.default_rng(5)
KERNEL = RNG.standard_normal((5, 3, 3, 2)).astype(np.float32)
BIAS = RNG.standard_normal(5).astype(np.float32)


def convolution(g, x, shape):
    """CONV_2D 3x3 SAME RELU with weights that all subgraphs share."""
    attributes = ir.Conv2DAttributes(fused_activation_function="RELU")
    return g.op("CONV_2D", [x, g.const(KERNEL), g.const(BIAS)], [(*shape[:-1], 5)], attributes)


def device_only():
    w = ModelWriter()
    x = w.input((1, 7, 6, 2), "x", shape_signature=(-1, -1, -1, 2))
    w.output(convolution(w, x, (1, 7, 6, 2)))
    return w.build()


def needs_cpu():
    """FAKE_QUANT, which no kernel here does, then CONV_2D; and CONV_2D alone, its twin."""
    w = ModelWriter()
    shape = (2, 7, 6, 2)
    x = w.input(shape, "x")
    w.const(np.array([3, 5], np.int32), "read by nobody")
    r = w.op("FAKE_QUANT", [x], [shape], ir.FakeQuantAttributes(min=-6, max=6, num_bits=8))
    w.output(convolution(w, r, shape))
    w.signature("rounded", {"x": x}, {"y": w.outputs[0]})
    g = w.subgraph("straight")
    z = g.input(shape, "z")
    g.output(convolution(g, z, shape))
    w.signature("straight", {"z": z}, {"y": g.outputs[0]}, g)
    return w.build()


def run(interpreter, value):
    index = interpreter.get_input_details()[0]["index"]
    interpreter.resize_tensor_input(index, value.shape)
    interpreter.allocate_tensors()
    interpreter.set_tensor(index, value)
    interpreter.invoke()
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


def check(data, interpreter, value):
    expected = run(reference_interpreter(data), value)
    for got, want in zip(run(interpreter, value), expected, strict=True):
        assert_close(got, want, 1e-4, 1e-5, "output")


def random(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def test_each_shape_gives_its_own_result():
    data = device_only()
    with Interpreter(model_content=data) as interpreter:
        assert not interpreter.uses_litert
        for shape in ((1, 7, 6, 2), (2, 5, 9, 2), (1, 7, 6, 2), (1, 1, 1, 2)):
            check(data, interpreter, random(*shape))


def test_repeated_runs_follow_the_input():
    data = device_only()
    with Interpreter(model_content=data) as interpreter:
        a, b = random(1, 7, 6, 2), random(1, 7, 6, 2)
        first = run(interpreter, a)[0]
        check(data, interpreter, b)
        assert np.array_equal(run(interpreter, a)[0], first)
        assert not np.array_equal(run(interpreter, b)[0], first)


def test_two_interpreters_side_by_side():
    data = device_only()
    with Interpreter(model_content=data) as one, Interpreter(model_content=data) as other:
        a, b = random(1, 7, 6, 2), random(1, 4, 4, 2)
        for _ in range(2):
            check(data, one, a)
            check(data, other, b)


def test_what_the_device_declines_runs_on_litert():
    data = needs_cpu()
    with Interpreter(model_content=data, num_threads=1) as interpreter:
        assert interpreter.uses_litert
        report = interpreter.report
        assert {n.op for n in report.nodes if not n.delegated} == {"FAKE_QUANT"}
        assert {n.op for n in report.nodes if n.delegated} == {"CONV_2D"}
        check(data, interpreter, random(2, 7, 6, 2))
        with pytest.raises(ValueError, match="is intermediate"):
            interpreter.get_tensor(2)
        assert interpreter.get_tensor(1).tolist() == [3, 5]
        assert len(interpreter.get_tensor_details(1)) >= 4


def test_signatures_that_share_weights_in_turn():
    data = needs_cpu()
    theirs = reference_interpreter(data)
    with Interpreter(model_content=data) as interpreter:
        for key, name in (("rounded", "x"), ("straight", "z"), ("rounded", "x")):
            value = random(2, 7, 6, 2)
            got = interpreter.get_signature_runner(key)(**{name: value})["y"]
            want = theirs.get_signature_runner(key)(**{name: value})["y"]
            assert_close(got, want, 1e-4, 1e-5, key)
            details = interpreter.get_signature_runner(key).get_input_details()
            assert details[name]["shape"].tolist() == [2, 7, 6, 2]


def test_excluded_operators_run_on_litert():
    data = device_only()
    with Interpreter(model_content=data, excluded_ops=["CONV_2D"]) as interpreter:
        assert interpreter.uses_litert
        assert interpreter.report.num_delegated == 0
        assert "excluded_ops" in interpreter.report.nodes[0].reason
        check(data, interpreter, random(1, 7, 6, 2))


def test_a_shape_that_the_device_declines_hands_over():
    """Seven dimensions are too many for the kernels; the other input keeps its value."""
    w = ModelWriter()
    x = w.input((1, 4), "x")
    c = w.input((4,), "c")
    y = w.op("NEG", [x], [(1, 4)])
    w.output(y, w.op("NEG", [c], [(4,)]))
    with Interpreter(model_content=w.build()) as interpreter:
        assert not interpreter.uses_litert
        interpreter.allocate_tensors()
        kept = random(4)
        interpreter.set_tensor(c, kept)
        shape = (1, 2, 1, 2, 1, 1, 3)
        interpreter.resize_tensor_input(x, shape)
        interpreter.allocate_tensors()
        assert interpreter.uses_litert
        value = random(*shape)
        interpreter.set_tensor(x, value)
        interpreter.invoke()
        assert np.array_equal(interpreter.get_tensor(y), -value)
        assert np.array_equal(
            interpreter.get_tensor(interpreter.get_output_details()[1]["index"]), -kept
        )
        interpreter.resize_tensor_input(x, (1, 4))
        interpreter.allocate_tensors()
        interpreter.set_tensor(x, value.reshape(-1)[:4].reshape(1, 4))
        interpreter.set_tensor(c, kept)
        interpreter.invoke()
        assert interpreter.get_tensor(y).shape == (1, 4)


def test_a_signature_call_hands_over():
    w = ModelWriter()
    x = w.input((1, 4), "x")
    y = w.op("NEG", [x], [(1, 4)])
    w.output(y)
    w.signature("run", {"x": x}, {"y": y})
    with Interpreter(model_content=w.build()) as interpreter:
        runner = interpreter.get_signature_runner("run")
        for shape in ((2, 4), (1, 2, 1, 2, 1, 1, 3), (2, 4)):
            value = random(*shape)
            assert np.array_equal(runner(x=value)["y"], -value)
        assert interpreter.uses_litert


def test_shapes_outgrow_the_delegate_under_litert():
    w = ModelWriter()
    x = w.input((1, 4), "x")
    # ATAN2 is not among XNNPACK's, which LiteRT runs the rest on and which stops at rank 6 itself.
    w.output(w.op("ATAN2", [w.op("ATAN2", [x, x], [(1, 4)]), x], [(1, 4)]))
    with Interpreter(model_content=w.build(), excluded_nodes=[1]) as interpreter:
        assert interpreter.report.num_delegated == 1
        for shape in ((2, 4), (1, 2, 1, 2, 1, 1, 3), (3, 4), (1, 2, 1, 2, 1, 1, 3)):
            value = random(*shape)
            want = np.arctan2(np.arctan2(value, value), value)
            assert_close(run(interpreter, value)[0], want, 1e-4, 1e-5, f"shape {shape}")
        assert [n.reason for n in interpreter.report.nodes] == [
            "input 0 has rank 7 (supported: up to 6)",
            "Excluded by option excluded_nodes.",
        ]


def test_a_signature_of_another_subgraph_hands_over():
    w = ModelWriter()
    x = w.input((1, 4), "x")
    w.output(w.op("ABS", [x], [(1, 4)]))
    w.signature("run", {"x": x}, {"y": w.outputs[0]})
    g = w.subgraph("other")
    z = g.input((1, 4), "z")
    g.output(g.op("NEG", [z], [(1, 4)]))
    w.signature("other", {"z": z}, {"y": g.outputs[0]}, g)
    with Interpreter(model_content=w.build()) as interpreter:
        interpreter.allocate_tensors()
        kept = random(1, 4)
        interpreter.set_tensor(x, kept)
        for shape in ((2, 4), (1, 2, 1, 2, 1, 1, 3), (2, 4)):
            value = random(*shape)
            got = interpreter.get_signature_runner("other")(z=value)["y"]
            assert np.array_equal(got, -value)
        assert interpreter.uses_litert
        assert [n.delegated for n in interpreter.report.nodes] == [True, False]
        interpreter.invoke()
        assert np.array_equal(
            interpreter.get_tensor(interpreter.get_output_details()[0]["index"]), np.abs(kept)
        )
    assert interpreter.report.num_delegated == 1


def test_a_real_model_without_litert_s_kernels():
    data = model_path("face_detection_short_range").read_bytes()
    with Interpreter(model_content=data) as interpreter:
        assert not interpreter.uses_litert
        check(data, interpreter, RNG.uniform(-1, 1, (1, 128, 128, 3)).astype(np.float32))
