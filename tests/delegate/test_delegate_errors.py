"""Nothing that goes wrong in Python escapes into C, and every failure says what and why."""

import logging

import numpy as np
import pytest

from tests.delegate.fake import Log, fake_delegate, random, run
from tflite_vk.delegate import callbacks
from tflite_vk.delegate.delegate import load_delegate
from tflite_vk.errors import DeviceError, OptionError, ShaderError
from tflite_vk.testing.model_writer import ModelWriter

litert = pytest.importorskip("ai_edge_litert.interpreter")


def model(*ops):
    w = ModelWriter()
    x = w.input((4,))
    for op in ops:
        x = w.op(op, [x], [(4,)])
    w.output(x)
    return w.build()


def load(data, delegate):
    i = litert.Interpreter(model_content=data, experimental_delegates=[delegate])
    i.allocate_tensors()
    return i


def failing_on(op, error):
    def fail(graph):
        if any(n.op == op for n in graph.nodes):
            raise error

    return fail


@pytest.mark.parametrize("error", [ValueError("a bug"), MemoryError(), ShaderError("gone")])
def test_a_node_that_does_not_compile_goes_to_the_cpu(error):
    log = Log()
    delegate = fake_delegate(log, fail=failing_on("RELU", error))
    i = load(model("NEG", "ABS", "NEG", "RELU", "NEG"), delegate)
    x = random(4)
    np.testing.assert_array_equal(run(i, x)[0], np.zeros(4))
    assert [n.delegated for n in delegate.report.nodes] == [True, False, True, False, True]
    reason = delegate.report.nodes[3].reason
    assert reason.startswith("It does not compile: ")
    assert str(error) in reason
    assert not delegate.report.nodes[3].supported
    assert len(log.compiled) - log.closed == 3


def test_nodes_that_do_not_compile_together_go_to_the_cpu():
    def fail(graph):
        if {"RELU", "NEG"} <= {n.op for n in graph.nodes}:
            raise ValueError("not both")

    delegate = fake_delegate(fail=fail)
    load(model("NEG", "ABS", "RELU", "NEG"), delegate)
    assert [n.delegated for n in delegate.report.nodes] == [True, False, False, False]
    assert delegate.report.nodes[2].reason == "Its partition does not compile: ValueError: not both"


def test_a_failing_device_is_not_asked_about_each_node():
    attempts = []

    def fail(graph):
        attempts.append(graph)
        raise DeviceError("out of memory")

    delegate = fake_delegate(fail=fail)
    load(model("NEG", "RELU", "NEG"), delegate)
    assert len(attempts) == 1
    assert delegate.report.nodes[0].reason == "Its partition does not compile: out of memory"


def test_nothing_compiles():
    def fail(graph):
        raise DeviceError("no")

    log = Log()
    delegate = fake_delegate(log, fail=fail)
    x = random(4)
    np.testing.assert_array_equal(run(load(model("NEG"), delegate), x)[0], -x)
    assert delegate.report.num_delegated == 0


def test_a_check_that_fails_costs_one_node():
    def odd(node, graph):
        if node.op == "RELU":
            raise ZeroDivisionError("odd")

    delegate = fake_delegate(unsupported=odd)
    load(model("NEG", "RELU", "NEG"), delegate)
    assert [n.delegated for n in delegate.report.nodes] == [True, False, True]
    assert "ZeroDivisionError: odd" in delegate.report.nodes[1].reason


def test_a_subgraph_that_cannot_be_read_runs_on_the_cpu(monkeypatch, caplog):
    def broken(*arguments):
        raise KeyError("whatever")

    monkeypatch.setattr("tflite_vk.delegate.subgraph.read_subgraph", broken)
    delegate = fake_delegate()
    x = random(4)
    np.testing.assert_array_equal(run(load(model("NEG"), delegate), x)[0], -x)
    assert "subgraph 0 stays on the CPU, it can't be read: KeyError: 'whatever'" in caplog.text


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            DeviceError("the device was lost; 100% sure, see %s"),
            "the device was lost; 100% sure, see %s",
        ),
        (RuntimeError("bug"), "RuntimeError: bug"),
        (SystemExit(3), "SystemExit: 3"),
        (KeyboardInterrupt(), "interrupted"),
    ],
)
def test_a_failing_invoke_says_why(monkeypatch, error, text):
    from tests.delegate.fake import FakeSession

    def failing(self, inputs, outputs, states):
        raise error

    i = load(model("NEG"), fake_delegate())
    monkeypatch.setattr(FakeSession, "run", failing)
    with pytest.raises(RuntimeError) as caught:
        run(i, random(4))
    assert f"Vulkan delegate Invoke: {text}" in str(caught.value)
    assert "TfLiteVulkanDelegate" in str(caught.value)
    monkeypatch.undo()
    x = random(4)
    np.testing.assert_array_equal(run(i, x)[0], -x)


def test_a_long_message_arrives_whole(monkeypatch):
    from tests.delegate.fake import FakeSession

    text = "".join(f"[{i}]" for i in range(500))

    def failing(self, inputs, outputs, states):
        raise DeviceError(text)

    monkeypatch.setattr(FakeSession, "run", failing)
    with pytest.raises(RuntimeError) as caught:
        run(load(model("NEG"), fake_delegate()), random(4))
    assert text in str(caught.value)


def test_invoke_before_allocation_is_an_error():
    i = litert.Interpreter(model_content=model("NEG"), experimental_delegates=[fake_delegate()])
    with pytest.raises(RuntimeError):
        i.invoke()


def test_a_kernel_that_cannot_be_made_is_a_clean_error(monkeypatch):
    def broken(*arguments):
        raise DeviceError("no kernel today")

    monkeypatch.setattr("tflite_vk.delegate.delegate._Core.make_kernel", broken)
    with pytest.raises(RuntimeError, match="Vulkan delegate Init: no kernel today"):
        litert.Interpreter(model_content=model("NEG"), experimental_delegates=[fake_delegate()])


def test_closed():
    log = Log()
    delegate = fake_delegate(log)
    i = load(model("NEG"), delegate)
    run(i, random(4))
    delegate.close()
    delegate.close()
    assert log.closed == 1
    with pytest.raises(RuntimeError, match="the delegate is closed; make a new delegate"):
        run(i, random(4))
    with pytest.raises(DeviceError, match="closed"):
        litert.Interpreter(model_content=model("NEG"), experimental_delegates=[delegate])


def test_an_unknown_handle_is_no_crash():
    assert callbacks._kernels.get(0) is None
    callbacks._FREE_KERNEL(None, 10**9)


def test_load_delegate_checks_before_it_opens_anything():
    with pytest.raises(OptionError, match="unknown delegate option 'gpu'"):
        load_delegate({"gpu": "1"})
    with pytest.raises(ValueError, match="inference_priority1 is 9"):
        load_delegate(options={"inference_priority1": "9"})


def test_no_device_is_an_error_of_the_constructor(monkeypatch):
    from tflite_vk.delegate import delegate as module

    def nothing(wanted, dispatcher, **cache):
        raise DeviceError("no Vulkan device on this machine")

    monkeypatch.setattr(module, "open_device", nothing)
    with pytest.raises(DeviceError, match="no Vulkan device"):
        module.VulkanDelegate()


def test_debug_log_has_the_traceback(caplog):
    def odd(graph):
        raise ZeroDivisionError("deep")

    with caplog.at_level(logging.DEBUG, "tflite_vk"):
        load(model("NEG"), fake_delegate(fail=odd))
    assert any(r.exc_info for r in caplog.records)
