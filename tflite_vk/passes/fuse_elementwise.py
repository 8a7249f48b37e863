"""Move elementwise nodes into the epilogue of the kernel that makes their input (decision D6).

A producer takes a consumer in when nothing else needs the value between them: it has one
consumer, is no output of the graph, and is no operand of that consumer as well. The fused node
stands where the consumer stood, where all operands are known; so one that reads a variable stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from tflite_vk.epilogue import build_epilogue
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.passes.to_elementwise import ELEMENTWISE


def _swapped(node: Node, graph: Graph) -> Node | None:
    """The same node with its first step's full operand as the main input, where it has one."""
    first, *rest = node.steps
    if first.operand is None or first.op == "PRELU" or first.operand == node.inputs[0]:
        return None
    other = graph.tensors[first.operand]
    if other.is_const or other.shape != graph.output(node).shape:
        return None
    step = replace(first, operand=node.inputs[0], operand_first=not first.operand_first)
    return replace(node, inputs=(first.operand,), steps=(step, *rest))


def fuse_elementwise(graph: Graph, ends_in_epilogue: Callable[[Node, Graph], bool]) -> Graph:
    """Fuse every elementwise node that a producer can take in.

    Args:
        graph: activations split, elementwise nodes in ELEMENTWISE form.
        ends_in_epilogue: True for a node whose kernel applies steps to output 0.
    """
    reads = Counter(t for node in graph.nodes for t in node.reads)
    reads.update(graph.outputs)
    producer: dict[int, int] = {}
    nodes: list[Node | None] = []
    for node in graph.nodes:
        placed = node
        if node.op == ELEMENTWISE:
            for form in (node, _swapped(node, graph)):
                if form is None:
                    continue
                at = producer.get(form.inputs[0])
                before = nodes[at] if at is not None else None
                if before is None or at is None or reads[form.inputs[0]] != 1:
                    continue
                if any(graph.tensors[t].is_variable for t in before.reads):
                    continue  # a node in between may change it
                if before.outputs[0] != form.inputs[0] or not ends_in_epilogue(before, graph):
                    continue
                steps = (*before.steps, *form.steps)
                if build_epilogue(steps, graph.output(form).shape, graph.tensors) is None:
                    continue
                placed = replace(
                    before,
                    outputs=(form.outputs[0], *before.outputs[1:]),
                    steps=steps,
                    sources=(*before.origins, *form.origins),
                )
                nodes[at] = None
                break
        producer.update(dict.fromkeys(placed.outputs, len(nodes)))
        nodes.append(placed)
    return graph.with_(nodes=[n for n in nodes if n is not None])
