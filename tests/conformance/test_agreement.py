"""Kompute and Vulkan run the same SPIR-V and agree bit for bit, on real operators too."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conformance.conftest import COMPUTING, open_runtime
from tests.ops.test_ops import all_cases
from tests.support.case import Array, Case, random_array
from tflite_vk.frontend.flatbuffer import read_model
from tflite_vk.ir.attributes import BinaryAttributes, Conv2DAttributes, DepthwiseConv2DAttributes
from tflite_vk.ir.graph import Graph
from tflite_vk.ops.registry import unsupported_reason
from tflite_vk.passes.fold_constants import fold_constants
from tflite_vk.runtime.device import Device
from tflite_vk.session import Session
from tflite_vk.testing.model_writer import ModelWriter

CASES_OF_EACH_OP = 2


def _some_cases() -> list[Case]:
    """A few cases of each operator, spread over its table."""
    by_op: dict[str, list[Case]] = {}
    for case in all_cases():
        if case.declined is None:
            op = fold_constants(read_model(case.model()).subgraphs[0]).nodes
            if op:
                by_op.setdefault(op[0].op, []).append(case)
    return [
        case
        for cases in by_op.values()
        for case in cases[:: max(1, len(cases) // CASES_OF_EACH_OP)][:CASES_OF_EACH_OP]
    ]


def _outputs(graph: Graph, device: Device, inputs: list[Array]) -> list[bytes]:
    session = Session(graph, device)
    outputs = session.allocate_outputs(graph.outputs)
    session.run(dict(zip(graph.inputs, inputs, strict=True)), outputs)
    session.close()
    return [outputs[t].tobytes() for t in graph.outputs]


def _assert_agreement(graph: Graph, inputs: list[Array]) -> None:
    want = _outputs(graph, open_runtime(COMPUTING[0]), inputs)
    for name in COMPUTING[1:]:
        assert _outputs(graph, open_runtime(name), inputs) == want, name


def _random_inputs(graph: Graph, rng: np.random.Generator) -> list[Array]:
    tensors = [graph.tensors[t] for t in graph.inputs]
    return [random_array(rng, t.shape, t.dtype.numpy, -2, 2) for t in tensors]


def test_operators() -> None:
    # One test for all: parametrising it would build every model of the suite on collection.
    cases = _some_cases()
    assert len(cases) > 20
    ran = 0
    for case in cases:
        graph = fold_constants(read_model(case.model()).subgraphs[0])
        limits = open_runtime("vulkan").info.limits
        if any(unsupported_reason(n, graph, limits) for n in graph.nodes):
            continue
        rng = case.rng()
        given = dict(case.inputs(rng)) if case.inputs is not None else {}
        inputs = _random_inputs(graph, rng)
        _assert_agreement(graph, [given.get(i, x) for i, x in enumerate(inputs)])
        ran += 1
    assert ran > 20


@pytest.mark.parametrize("seed", [0, 1])
def test_a_small_network(seed: int) -> None:
    rng = np.random.default_rng(seed)

    def weights(*shape: int) -> Array:
        return rng.standard_normal(shape).astype(np.float32)

    w = ModelWriter()
    x, channels = w.input((1, 17, 13, 3)), 3
    for wider in (8, 12, 20):
        shape = (1, 17, 13, wider)
        filters = w.const(weights(wider, 3, 3, channels)), w.const(weights(wider))
        x = w.op("CONV_2D", [x, *filters], [shape], Conv2DAttributes("RELU6"))
        filters = w.const(weights(1, 3, 3, wider)), w.const(weights(wider))
        y = w.op("DEPTHWISE_CONV_2D", [x, *filters], [shape], DepthwiseConv2DAttributes())
        x, channels = w.op("ADD", [x, y], [shape], BinaryAttributes()), wider
    w.output(x)
    graph = read_model(w.build()).subgraphs[0]
    _assert_agreement(graph, _random_inputs(graph, rng))
