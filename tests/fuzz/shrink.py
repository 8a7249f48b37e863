"""Make a failing graph small: drop outputs, operators behind and operators in front."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from tests.support.case import Array
from tflite_vk.frontend.flatbuffer import Model, read_model
from tflite_vk.ir.graph import Graph, Node, Tensor
from tflite_vk.testing.graph_writer import write_model


@dataclass(frozen=True)
class Failure:
    """A failing graph.

    Attributes:
        data: the .tflite file.
        inputs: values in the model's order.
        outputs: what they should be.
        tolerances: absolute, of each output.
    """

    data: bytes
    inputs: list[Array]
    outputs: list[Array]
    tolerances: list[float]


Fails = Callable[[Failure], bool]


def shrink(
    data: bytes, values: Mapping[int, Array], allowed: Mapping[int, float], fails: Fails
) -> Failure:
    """The smallest graph found that still fails.

    Args:
        data: the .tflite file.
        values: of every run-time tensor, so that one can become an input.
        allowed: tolerance of every run-time tensor, so that one can become an output.
        fails: runs a graph.
    """
    graph = read_model(data).subgraphs[0]

    def failure(g: Graph) -> Failure:
        return Failure(
            write_model(Model((_renumbered(g),))),
            [values[t] for t in g.inputs],
            [values[t] for t in g.outputs],
            [allowed.get(t, 0.0) for t in g.outputs],
        )

    def attempt(candidate: Graph) -> bool:
        nonlocal graph
        candidate = _without_dead(candidate)
        if not candidate.nodes or not candidate.outputs or _size(candidate) >= _size(graph):
            return False
        if not values.keys() >= {*candidate.inputs, *candidate.outputs}:
            return False  # what a DEQUANTIZE of weights makes is no value of the graph
        if not fails(failure(candidate)):
            return False
        graph = candidate
        return True

    is_smaller = True
    while is_smaller:
        is_smaller = any(
            [
                _fewer_outputs(graph, attempt),
                _earlier_output(graph, attempt),
                _fewer_producers(lambda: graph, values, attempt),
            ]
        )
    return failure(graph)


Attempt = Callable[[Graph], bool]


def _fewer_outputs(graph: Graph, attempt: Attempt) -> bool:
    """One output, else one less."""
    if len(graph.outputs) < 2:
        return False
    if any(attempt(graph.with_(outputs=(t,))) for t in dict.fromkeys(graph.outputs)):
        return True
    count = len(graph.outputs)
    return any(
        attempt(graph.with_(outputs=graph.outputs[:i] + graph.outputs[i + 1 :]))
        for i in range(count)
    )


def _earlier_output(graph: Graph, attempt: Attempt) -> bool:
    """The first intermediate value that is wrong by itself."""
    return any(
        attempt(graph.with_(outputs=(t,)))
        for node in graph.nodes
        for t in node.outputs
        if t not in graph.outputs
    )


def _fewer_producers(
    current: Callable[[], Graph], values: Mapping[int, Array], attempt: Attempt
) -> bool:
    """Operators whose outputs become inputs."""
    done = False
    for node in current().nodes:
        if node not in current().nodes or any(t not in values for t in node.outputs):
            continue
        done |= attempt(_cut(current(), node))
    return done


def _cut(graph: Graph, node: Node) -> Graph:
    kept = [n for n in graph.nodes if n is not node]
    outputs = tuple(t for t in graph.outputs if t not in node.outputs)
    cut = graph.with_(nodes=kept, outputs=outputs)
    return Graph(cut.name, cut.tensors, cut.nodes, (*graph.inputs, *node.outputs), outputs)


def _without_dead(graph: Graph) -> Graph:
    """Without nodes and inputs that no output depends on."""
    needed = set(graph.outputs)
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if needed.intersection(node.outputs):
            kept.append(node)
            needed.update(node.reads)
    inputs = tuple(t for t in dict.fromkeys(graph.inputs) if t in needed)
    return Graph(graph.name, graph.tensors, tuple(reversed(kept)), inputs, graph.outputs)


def _size(graph: Graph) -> tuple[int, int, int]:
    return len(graph.nodes), len(graph.outputs), len(graph.inputs)


def _renumbered(graph: Graph) -> Graph:
    """Tensors that nothing names any more are left out."""
    number = {t.id: i for i, t in enumerate(graph.live_tensors())}
    tensors: dict[int, Tensor] = {}
    for old, new in number.items():
        t = graph.tensors[old]
        tensors[new] = Tensor(
            new, t.name, t.shape, t.dtype, t.data, t.quantization, is_variable=t.is_variable
        )
    nodes = tuple(
        Node(
            i,
            n.op,
            tuple(number.get(t, t) for t in n.inputs),
            tuple(number[t] for t in n.outputs),
            n.attributes,
            n.version,
            n.is_custom,
        )
        for i, n in enumerate(graph.nodes)
    )
    inputs = tuple(number[t] for t in graph.inputs)
    outputs = tuple(number[t] for t in graph.outputs)
    return Graph(graph.name, tensors, nodes, inputs, outputs)


def as_python(data: bytes) -> str:
    """Code that builds the graph with ModelWriter; large constants only by their shape."""
    graph = read_model(data).subgraphs[0]
    lines = ["w = ModelWriter()"]
    named: dict[int, str] = {}
    for t in graph.live_tensors():
        quantization = "" if t.quantization is None else f", quantization={t.quantization}"
        if t.data is not None:
            named[t.id] = f"c{t.id}"
            lines.append(f"c{t.id} = w.const({_literal(t.data)}{quantization})")
        elif t.id in graph.inputs:
            named[t.id] = f"x{t.id}"
            lines.append(f"x{t.id} = w.input({t.shape}, dtype=DType.{t.dtype.name}{quantization})")
    for n in graph.nodes:
        results = [graph.tensors[t] for t in n.outputs]
        names = [f"y{t}" for t in n.outputs]
        named.update(zip(n.outputs, names, strict=True))
        outs = ", ".join(
            f"TensorSpec({t.shape}, DType.{t.dtype.name}, {t.quantization})" for t in results
        )
        given = ", ".join(named.get(t, "None") for t in n.inputs)
        lines.append(
            f"{', '.join(names)}, = w.multi_op({n.op!r}, [{given}], [{outs}],"
            f" {n.attributes}, {n.version})"
        )
    lines.append(f"w.output({', '.join(named[t] for t in graph.outputs)})")
    return "\n".join(lines) + "\n"


def _literal(array: Array) -> str:
    if array.size > 64:
        return f"np.empty({array.shape}, np.{array.dtype})  # its values are in the .tflite file\n"
    return f"np.array({np.asarray(array).tolist()}, np.{array.dtype})"
