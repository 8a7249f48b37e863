"""Write elementwise operators in the one form that fusion works on.

A function of one value, or a binary operator with one operand as large as the result and the
other one full, per channel, per row or scalar, becomes ELEMENTWISE with one step. Other
broadcasts stay what they are and run in a kernel of their own.
"""

from __future__ import annotations

from dataclasses import replace

from tflite_vk.dtypes import DType
from tflite_vk.epilogue import BINARY_CODES, build_epilogue, is_step
from tflite_vk.ir.graph import Graph, Node, Step

ELEMENTWISE = "ELEMENTWISE"


def elementwise_forms(node: Node, graph: Graph) -> list[Node]:
    """Every ELEMENTWISE node that computes the same; the first is preferred. Empty if none."""
    if not is_step(node.op) or graph.output(node).dtype is not DType.FLOAT32:
        return []
    result = graph.output(node).shape
    forms: list[tuple[int, Step]] = []
    if node.op == "MUL" and node.inputs[0] == node.inputs[1]:
        # One value, and so the producer may take it in.
        forms.append((node.inputs[0], Step("SQUARE", source=node.index)))
    elif node.op in BINARY_CODES:
        a, b = node.inputs
        forms.append((a, Step(node.op, b, attributes=node.attributes, source=node.index)))
        if node.op != "PRELU":
            forms.append(
                (
                    b,
                    Step(
                        node.op,
                        a,
                        operand_first=True,
                        attributes=node.attributes,
                        source=node.index,
                    ),
                )
            )
    else:
        forms.append((node.inputs[0], Step(node.op, attributes=node.attributes, source=node.index)))
    out: list[Node] = []
    for main, step in forms:
        tensor = graph.tensors[main]
        steps = (step, *node.steps)
        if tensor.is_const or tensor.shape != result:
            continue
        if build_epilogue(steps, result, graph.tensors) is None:
            continue
        out.append(replace(node, op=ELEMENTWISE, inputs=(main,), steps=steps))
    return out


def to_elementwise(graph: Graph) -> Graph:
    """Rewrite every operator that has an elementwise form."""
    nodes = []
    for node in graph.nodes:
        forms = elementwise_forms(node, graph)
        nodes.append(forms[0] if forms else node)
    return graph.with_(nodes=nodes)
