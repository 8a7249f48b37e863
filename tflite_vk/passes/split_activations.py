"""Turn every fused_activation_function into an elementwise step of its own.

After this pass no kernel of floats needs to look at the attribute; a quantized one clamps its integers
by it and keeps it. An operator whose kernel ends in the
epilogue carries the step itself; any other gets a node behind it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tflite_vk.epilogue import ACTIVATION_STEPS
from tflite_vk.ir.attributes import ActivationAttributes
from tflite_vk.ir.graph import Graph, Node, Step, Tensor

KEEPS_ACTIVATION = frozenset(
    {
        "LSTM",
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        "BIDIRECTIONAL_SEQUENCE_LSTM",
        "RNN",
        "UNIDIRECTIONAL_SEQUENCE_RNN",
        "BIDIRECTIONAL_SEQUENCE_RNN",
        "SVDF",
    }
)
"""Operators that apply the activation inside a loop, not to their result."""


def split_activations(graph: Graph, ends_in_epilogue: Callable[[Node, Graph], bool]) -> Graph:
    """Make activations explicit.

    Args:
        graph: any graph.
        ends_in_epilogue: True for a node whose kernel applies steps to output 0.
    """
    nodes: list[Node] = []
    for node in graph.nodes:
        attributes = node.attributes
        if (
            not isinstance(attributes, ActivationAttributes)
            or attributes.fused_activation_function == "NONE"
            or node.op in KEEPS_ACTIVATION
            or graph.output(node).dtype.is_quantized
        ):
            nodes.append(node)
            continue
        step = Step(ACTIVATION_STEPS[attributes.fused_activation_function])
        plain = replace(node, attributes=replace(attributes, fused_activation_function="NONE"))
        if ends_in_epilogue(plain, graph):
            nodes.append(replace(plain, steps=(step, *plain.steps)))
            continue
        output = graph.output(node)
        raw = Tensor(graph.next_tensor_id(), f"{output.name}/before", output.shape, output.dtype)
        graph = graph.with_(tensors=[raw])
        nodes.append(replace(plain, outputs=(raw.id, *plain.outputs[1:])))
        nodes.append(Node(node.index, "ELEMENTWISE", (raw.id,), (output.id,), steps=(step,)))
    return graph.with_(nodes=nodes)
