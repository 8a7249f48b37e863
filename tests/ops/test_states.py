"""Operators that keep state: several runs in a row, and a reset, must follow LiteRT's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tflite_vk
from tests.ops.cases import lstm, quantized_lstm, quantized_svdf, recurrent
from tests.support.case import Case, random_array
from tests.support.compare import assert_close, assert_equal
from tests.support.half import ROUNDING, half_model, to_half
from tests.support.oracle import reference_interpreter
from tflite_vk.frontend.flatbuffer import read_model
from tflite_vk.ir.attributes import BinaryAttributes, SvdfAttributes
from tflite_vk.runtime.device import Device
from tflite_vk.session import Session
from tflite_vk.testing.model_writer import ModelWriter

RUNS = 3


def _stateful() -> list[Case]:
    return [
        case
        for case in (
            *lstm.CASES,
            *quantized_lstm.CASES,
            *quantized_svdf.CASES,
            *recurrent.CASES,
        )
        if case.declined is None
        and any(t.is_variable for t in read_model(case.model()).subgraphs[0].tensors.values())
    ]


# Of the value and of the output's scale. What float16 keeps of a state goes into the next run.
_TOLERANCE = {"fp32": (1e-3, 1e-4), "fp16": (1e-3, (RUNS + 1) * ROUNDING)}


# A state that float16 has rounded is quantized to 8 bits again where weights are int8: values move by
# whole steps from run to run. test_ops_half.py holds the first run of these to its tolerance.
_RUNS = [
    pytest.param(case, precision, id=f"{case.name}-{precision}")
    for case in _stateful()
    for precision in _TOLERANCE
    if precision == "fp32" or not case.name.startswith("hybrid")
]


@pytest.mark.parametrize(("case", "precision"), _RUNS)
def test_state_is_kept_and_reset(case: Case, precision: str, device: Device) -> None:
    is_half = precision == "fp16" and not case.exact
    data = half_model(case) if is_half else case.model()
    graph = read_model(data).subgraphs[0]
    rng = case.rng()
    inputs = [
        [
            random_array(
                rng, graph.tensors[t].shape, graph.tensors[t].dtype.numpy, case.low, case.high
            )
            for t in graph.inputs
        ]
        for _ in range(RUNS)
    ]
    if is_half:
        inputs = [[to_half(value) for value in values] for values in inputs]
    oracle = reference_interpreter(data)
    oracle.allocate_tensors()
    session = Session(graph, device, precision=precision)
    first = None
    try:
        for values in (*inputs, inputs[0]):
            if values is inputs[0]:
                oracle.reset_all_variables()
                session.reset_states()
            for detail, value in zip(oracle.get_input_details(), values, strict=True):
                oracle.set_tensor(detail["index"], value)
            oracle.invoke()
            outputs = session.allocate_outputs(graph.outputs)
            session.run(dict(zip(graph.inputs, values, strict=True)), outputs)
            for detail, tensor in zip(oracle.get_output_details(), graph.outputs, strict=True):
                want = oracle.get_tensor(detail["index"])
                if case.exact:
                    assert_equal(outputs[tensor], want, "output")
                else:
                    assert_close(outputs[tensor], want, *_TOLERANCE[precision], "output")
            got = outputs[graph.outputs[0]].copy()
            first = got if first is None else first
        assert got.tobytes() == first.tobytes(), "the run after a reset differs from the first"
    finally:
        session.close()


def _sequences() -> list[Case]:
    """Cases whose second dimension is time, which is not in the shape of any state."""
    found = [(case, read_model(case.model()).subgraphs[0].nodes[0]) for case in _stateful()]
    return [
        case
        for case, node in found
        if node.op.startswith("UNIDIRECTIONAL") and not getattr(node.attributes, "time_major", True)
    ]


@pytest.mark.parametrize("case", _sequences(), ids=lambda case: case.name)
def test_a_change_of_shape_sets_states_back(case: Case, device: Device) -> None:
    """There and back again: a program kept for the old shape must not bring its old state along."""
    del device
    data = case.model()
    graph = read_model(data).subgraphs[0]
    (x,) = graph.inputs
    batch, steps, size = graph.tensors[x].shape
    oracle = reference_interpreter(data)
    with tflite_vk.Interpreter(model_content=data) as ours:
        for number in (steps, steps, steps + 2, steps, steps, steps + 2):
            rng = np.random.default_rng(number)
            shape, dtype = (batch, number, size), graph.tensors[x].dtype.numpy
            value = random_array(rng, shape, dtype, -1.0, 1.0)
            outputs = []
            for interpreter in (ours, oracle):
                if tuple(interpreter.get_input_details()[0]["shape"]) != value.shape:
                    interpreter.resize_tensor_input(x, value.shape)
                interpreter.allocate_tensors()
                interpreter.set_tensor(x, value)
                interpreter.invoke()
                outputs.append(interpreter.get_tensor(graph.outputs[0]))
            if case.exact:
                assert_equal(*outputs, f"{number} steps")
            else:
                assert_close(*outputs, *_TOLERANCE["fp32"], f"{number} steps")
        assert not ours.uses_litert


def _as_input(w: ModelWriter) -> None:
    """TFLite leaves a variable's new content in the input."""
    x, state = w.input((2, 6)), w.variable((2, 24))
    rng = np.random.default_rng(5)
    weights = [w.const(rng.normal(size=s).astype(np.float32)) for s in ((6, 6), (6, 4))]
    w.output(w.op("SVDF", [x, *weights, None, state], [(2, 6)], SvdfAttributes(rank=1)), state)
    w.inputs.append(state)


def _as_result(w: ModelWriter) -> None:
    """An operator writes it as its result, and one before reads what it held."""
    x, state = w.input((2, 6)), w.variable((2, 6))
    y = w.op("ADD", [x, state], [(2, 6)], BinaryAttributes())
    w.op_into("RELU", [y], [state])
    w.output(y)


@pytest.mark.parametrize("build", [_as_input, _as_result])
def test_variables_in_odd_places(build: Callable[[ModelWriter], None], device: Device) -> None:
    del device
    w = ModelWriter()
    build(w)
    data = w.build()
    rng = np.random.default_rng(8)
    oracle = reference_interpreter(data)
    with tflite_vk.Interpreter(model_content=data) as ours:
        assert ours.uses_litert
        pair = (ours, oracle)
        for interpreter in pair:
            interpreter.allocate_tensors()
        for run in range(4):
            x = rng.normal(size=(2, 6)).astype(np.float32)
            outputs = []
            for interpreter in pair:
                if run == 3:
                    interpreter.reset_all_variables()
                interpreter.set_tensor(0, x)
                interpreter.invoke()
                ends = interpreter.get_output_details()
                outputs.append([interpreter.get_tensor(d["index"]) for d in ends])
            for got, want in zip(*outputs, strict=True):
                assert_close(got, want, 1e-4, 1e-5, f"run {run}")
