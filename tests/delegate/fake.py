"""A delegate that computes with NumPy: everything but the device is real."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field

import numpy as np

from tflite_vk.delegate.callbacks import register_delegate
from tflite_vk.delegate.delegate import GraphDelegate
from tflite_vk.delegate.subgraph import Target
from tflite_vk.frontend.context import ContextSubgraph, read_subgraph
from tflite_vk.ops.registry import unsupported_reason
from tflite_vk.options import DelegateOptions

_OPS = {
    "ADD": np.add,
    "MUL": np.multiply,
    "SUB": np.subtract,
    "RELU": lambda x: np.maximum(x, np.float32(0)),
    "NEG": np.negative,
}


@dataclass
class Log:
    """What the fake device was asked to do."""

    compiled: list = field(default_factory=list)
    closed: int = 0
    runs: int = 0


class FakeSession:
    """A compiled graph."""

    def __init__(self, graph, log, fail=None):
        if fail is not None:
            fail(graph)
        self.graph = graph
        self.log = log
        self.is_closed = False
        log.compiled.append(graph)

    def run(self, inputs, outputs, states):
        assert not self.is_closed
        self.log.runs += 1
        assert set(inputs) == set(self.graph.inputs)
        values = {i: t.data for i, t in self.graph.tensors.items() if t.is_const}
        for i, array in {**inputs, **states}.items():
            assert array.shape == self.graph.tensors[i].shape, (i, array.shape)
            values[i] = array
        for node in self.graph.nodes:
            result = _OPS[node.op](*(values[i] for i in node.inputs))
            assert result.shape == self.graph.output(node).shape, (node.op, result.shape)
            values[node.outputs[0]] = result
        for i, out in outputs.items():
            out[...] = values[i]

    def close(self):
        if not self.is_closed:
            self.log.closed += 1
        self.is_closed = True


def fake_delegate(log=None, fail=None, unsupported=None, **options):
    """A delegate of elementwise operators.

    Args:
        log: is told what happens.
        fail: called with each graph before it is compiled; may raise.
        unsupported: further reason for a node.
        **options: of DelegateOptions.
    """
    log = Log() if log is None else log

    def reason(node, graph):
        if node.op not in _OPS:
            return "not in the fake"
        return (unsupported(node, graph) if unsupported else None) or unsupported_reason(
            node, graph
        )

    target = Target(lambda graph: FakeSession(graph, log, fail), reason, "fake")
    return GraphDelegate(target, DelegateOptions(**options))


class Capture:
    """A delegate that only reads; keeps copies, since the model's memory goes with it."""

    def __init__(self):
        self.subgraphs: list[ContextSubgraph] = []
        self._address = register_delegate(self)

    def _get_native_delegate_pointer(self):
        return self._address

    def prepare(self, context, delegate):
        read = read_subgraph(context)
        tensors = {
            i: dataclasses.replace(t, data=None if t.data is None else t.data.copy())
            for i, t in read.graph.tensors.items()
        }
        graph = dataclasses.replace(read.graph, tensors=tensors)
        self.subgraphs.append(ContextSubgraph(graph, dict(read.unread)))
        return 0


def random(*shape, seed=0):
    """Normal numbers."""
    return np.random.default_rng(seed + math.prod(shape)).standard_normal(shape).astype(np.float32)


def run(interpreter, *inputs):
    """Set the inputs, invoke, and return all outputs."""
    for detail, value in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]
