"""Variables under the delegate: every step leaves in TFLite's memory what TFLite's kernels would."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tflite_vk
from tests.ops.cases import lstm, quantized_lstm, quantized_svdf, recurrent
from tests.support.case import Array, Case, random_array
from tests.support.compare import assert_close, assert_equal
from tests.support.half import ROUNDING, half_model, to_half
from tests.support.oracle import reference_interpreter
from tflite_vk.frontend.flatbuffer import read_model
from tflite_vk.ir.attributes import SvdfAttributes
from tflite_vk.ir.graph import Graph
from tflite_vk.runtime.device import Device
from tflite_vk.testing.model_writer import ModelWriter

litert = pytest.importorskip("ai_edge_litert.interpreter")

RUNS = 3
_TOLERANCE = {"fp32": (1e-3, 1e-4), "fp16": (1e-3, (RUNS + 1) * ROUNDING)}


def _graph(model: bytes) -> Graph:
    return read_model(model).subgraphs[0]


def _variables(graph: Graph) -> list[int]:
    return [t.id for t in graph.tensors.values() if t.is_variable]


CASES = [
    case
    for case in (*lstm.CASES, *quantized_lstm.CASES, *quantized_svdf.CASES, *recurrent.CASES)
    if case.declined is None and _variables(_graph(case.model()))
]


def _delegate(device: Device, **options: object) -> tflite_vk.VulkanDelegate:
    return tflite_vk.VulkanDelegate(
        device=device.info.index, dispatcher=device.dispatcher, **options
    )


def _under(delegate: tflite_vk.VulkanDelegate, model: bytes) -> Any:
    interpreter = litert.Interpreter(
        model_content=model,
        experimental_delegates=[delegate],
        experimental_op_resolver_type=litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    )
    interpreter.allocate_tensors()
    return interpreter


def _twins(delegate: tflite_vk.VulkanDelegate, model: bytes) -> tuple[Any, Any]:
    return _under(delegate, model), _reference(model)


def _reference(model: bytes) -> Any:
    interpreter = reference_interpreter(model)
    interpreter.allocate_tensors()
    return interpreter


def _step(interpreter: Any, graph: Graph, values: Sequence[Array]) -> list[Array]:
    """Outputs and variables after one invoke."""
    for tensor, value in zip(graph.inputs, values, strict=True):
        interpreter.set_tensor(tensor, value)
    interpreter.invoke()
    return [interpreter.get_tensor(t) for t in (*graph.outputs, *_variables(graph))]


def _values(case: Case, graph: Graph, rng: np.random.Generator) -> list[Array]:
    return [
        random_array(rng, t.shape, t.dtype.numpy, case.low, case.high)
        for t in (graph.tensors[i] for i in graph.inputs)
    ]


def _compare(case: Case, got: Sequence[Array], want: Sequence[Array], precision: str) -> None:
    for number, (a, b) in enumerate(zip(got, want, strict=True)):
        if case.exact:
            assert_equal(a, b, f"value {number}")
        else:
            assert_close(a, b, *_TOLERANCE[precision], f"value {number}")


_RUNS = [
    pytest.param(case, precision, id=f"{case.name}-{precision}")
    for case in CASES
    for precision in _TOLERANCE
    # float16 moves what is quantized to 8 bits by whole steps (see tests/ops/test_states.py).
    if precision == "fp32" or not case.name.startswith("hybrid")
]


@pytest.mark.parametrize(("case", "precision"), _RUNS)
def test_step_by_step_and_reset(case: Case, precision: str, device: Device) -> None:
    is_half = precision == "fp16" and not case.exact
    model = half_model(case) if is_half else case.model()
    graph, rng = _graph(model), case.rng()
    delegate = _delegate(device, precision=precision)
    ours, oracle = _twins(delegate, model)
    assert delegate.report.is_fully_delegated, str(delegate.report)
    steps = [_values(case, graph, rng) for _ in range(RUNS)]
    if is_half:
        steps = [[to_half(v) for v in values] for values in steps]
    first: list[Array] = []
    for number, values in enumerate((*steps, steps[0])):
        if number == RUNS:
            for interpreter in (ours, oracle):
                interpreter.reset_all_variables()
        got = _step(ours, graph, values)
        _compare(case, got, _step(oracle, graph, values), precision)
        first = first or got
    assert [a.tobytes() for a in got] == [a.tobytes() for a in first]


def _sequences() -> list[Case]:
    """Cases whose second dimension is time, which is not in the shape of any state."""
    found = [(case, _graph(case.model()).nodes[0]) for case in CASES]
    return [
        case
        for case, node in found
        if node.op.startswith("UNIDIRECTIONAL") and not getattr(node.attributes, "time_major", True)
    ]


@pytest.mark.parametrize("case", _sequences()[::4], ids=lambda case: case.name)
def test_a_change_of_shape_sets_states_back(case: Case, device: Device) -> None:
    """There and back again: a program kept for the old shape must not bring its old state along."""
    model = case.model()
    graph = _graph(model)
    (x,) = graph.inputs
    batch, steps, size = graph.tensors[x].shape
    pair = _twins(_delegate(device), model)
    for number in (steps, steps, steps + 2, steps, steps, steps + 2):
        shape, dtype = (batch, number, size), graph.tensors[x].dtype.numpy
        value = random_array(np.random.default_rng(number), shape, dtype, -1.0, 1.0)
        for interpreter in pair:
            interpreter.resize_tensor_input(x, shape)
            interpreter.allocate_tensors()
        got, want = (_step(i, graph, [value]) for i in pair)
        _compare(case, got, want, "fp32")


def _named(name: str) -> Case:
    return next(case for case in CASES if case.name == name)


def test_variables_resized_with_the_batch(device: Device) -> None:
    case = _named("LSTM_BASIC_kept")
    model = case.model()
    graph, rng = _graph(model), case.rng()
    pair = _twins(_delegate(device), model)
    for batch in (2, 5, 2, 1):
        for interpreter in pair:
            for t in (*graph.inputs, *_variables(graph)):
                interpreter.resize_tensor_input(t, (batch, *graph.tensors[t].shape[1:]))
            interpreter.allocate_tensors()
        for _ in range(2):
            values = [rng.uniform(-1, 1, (batch, 3)).astype(np.float32)]
            got, want = (_step(i, graph, values) for i in pair)
            _compare(case, got, want, "fp32")


_ONE_OF_EACH = (
    "LSTM_BASIC_kept",
    "BIDIRECTIONAL_SEQUENCE_LSTM_apart",
    "BIDIRECTIONAL_SEQUENCE_RNN_merged",
    "SVDF_rank2_RELU",
    "hybrid_SVDF_rank1",
)


@pytest.mark.parametrize("dispatcher", ["kompute", "vulkan"])
@pytest.mark.parametrize("name", _ONE_OF_EACH)
def test_two_interpreters_of_one_delegate(name: str, dispatcher: str, device: Device) -> None:
    if dispatcher == "kompute":
        pytest.importorskip("kp")
    case = _named(name)
    model = case.model()
    graph, rng = _graph(model), case.rng()
    delegate = tflite_vk.VulkanDelegate(device=device.info.name, dispatcher=dispatcher)
    one, two = _twins(delegate, model), _twins(delegate, model)
    for pair in (one, two, two, one, two, one):
        values = _values(case, graph, rng)
        got, want = (_step(i, graph, values) for i in pair)
        _compare(case, got, want, "fp32")
        if pair is two:
            for interpreter in one:
                interpreter.reset_all_variables()


def test_a_variable_that_the_caller_sets(device: Device) -> None:
    case = _named("SVDF_rank1")
    model = case.model()
    graph, rng = _graph(model), case.rng()
    pair = _twins(_delegate(device), model)
    (state,) = _variables(graph)
    for _ in range(2):
        values, content = _values(case, graph, rng), rng.normal(size=graph.tensors[state].shape)
        for interpreter in pair:
            interpreter.set_tensor(state, content.astype(np.float32))
        got, want = (_step(i, graph, values) for i in pair)
        _compare(case, got, want, "fp32")


def _svdf(w: ModelWriter, x: int, state: int, size: int, memory: int, seed: int) -> int:
    rng = np.random.default_rng(seed)
    weights = [
        w.const(rng.normal(size=s).astype(np.float32)) for s in ((size, size), (size, memory))
    ]
    return w.op("SVDF", [x, *weights, None, state], [(2, size)], SvdfAttributes(rank=1))


def _two_layers(*, shared: bool) -> tuple[bytes, Graph]:
    """Two SVDFs with a sum of the input between, the second on the CPU where ATAN2 is excluded."""
    w = ModelWriter()
    x = w.input((2, 6))
    states = [w.variable((2, 6 * 4)) for _ in range(2)]
    y = _svdf(w, x, states[0], 6, 4, 1)
    y = w.op("ATAN2", [y, x], [(2, 6)])
    w.output(_svdf(w, y, states[0 if shared else 1], 6, 4, 2))
    model = w.build()
    return model, _graph(model)


def test_a_variable_among_the_outputs_and_inputs(device: Device) -> None:
    w = ModelWriter()
    x = w.input((2, 6))
    state = w.variable((2, 6 * 4))
    w.output(_svdf(w, x, state, 6, 4, 1), state)
    w.inputs.append(state)
    model = w.build()
    graph, rng = _graph(model), np.random.default_rng(6)
    delegate = _delegate(device)
    pair = _twins(delegate, model)
    assert delegate.report.is_fully_delegated
    for _ in range(2):
        values = [rng.normal(size=s).astype(np.float32) for s in ((2, 6), (2, 6 * 4))]
        got, want = (_step(i, graph, values) for i in pair)
        for a, b in zip(got, want, strict=True):
            assert_close(a, b, 1e-4, 1e-5, "value")


@pytest.mark.parametrize("excluded", [(), (0,), (1,), (2,)])
def test_partitions_and_cpu_nodes_with_states_of_their_own(
    excluded: tuple[int, ...], device: Device
) -> None:
    model, graph = _two_layers(shared=False)
    delegate = _delegate(device, excluded_nodes=excluded)
    pair = _twins(delegate, model)
    assert [n.index for n in delegate.report.nodes if not n.delegated] == list(excluded)
    rng = np.random.default_rng(3)
    for number in range(5):
        if number == 3:
            for interpreter in pair:
                interpreter.reset_all_variables()
        values = [rng.normal(size=(2, 6)).astype(np.float32)]
        got, want = (_step(i, graph, values) for i in pair)
        for a, b in zip(got, want, strict=True):
            assert_close(a, b, 1e-4, 1e-5, f"step {number}")


def test_a_variable_of_two_operators_stays_on_the_cpu(device: Device) -> None:
    model, graph = _two_layers(shared=True)
    delegate = _delegate(device)
    pair = _twins(delegate, model)
    reasons = {str(n.reason) for n in delegate.report.nodes}
    assert len(reasons) == 1
    assert "is used by SVDF #0 and SVDF #2" in reasons.pop()
    rng = np.random.default_rng(4)
    for _ in range(2):
        values = [rng.normal(size=(2, 6)).astype(np.float32)]
        got, want = (_step(i, graph, values) for i in pair)
        for a, b in zip(got, want, strict=True):
            np.testing.assert_array_equal(a, b)


def test_states_of_a_program_out_of_the_cache(device: Device, tmp_path: Path) -> None:
    case = _named("BIDIRECTIONAL_SEQUENCE_LSTM_apart")
    model = case.model()
    graph = _graph(model)
    steps = [_values(case, graph, case.rng()) for _ in range(2)]
    found = []
    for _ in range(2):
        delegate = _delegate(device, cache_dir=str(tmp_path))
        interpreter = _under(delegate, model)
        found.append([a for values in steps for a in _step(interpreter, graph, values)])
    assert [*tmp_path.rglob("*.program")]
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)
