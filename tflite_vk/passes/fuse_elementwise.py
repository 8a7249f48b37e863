"""Move elementwise nodes into the epilogue of the kernel that makes their input (decision D6).

A producer takes a consumer in when nothing else needs the value between them: it has one
consumer, is no output of the graph, and is no operand of that consumer as well. The fused node
stands where the consumer stood, where all operands are known; so one that reads a variable stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tflite_vk.epilogue import build_epilogue
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.passes.merge import merge_into_producers
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

    def forms(node: Node) -> Iterator[Node]:
        if node.op == ELEMENTWISE:
            yield node
            swapped = _swapped(node, graph)
            if swapped is not None:
                yield swapped

    def merge(before: Node, form: Node) -> Node | None:
        if before.outputs[0] != form.inputs[0] or not ends_in_epilogue(before, graph):
            return None
        steps = (*before.steps, *form.steps)
        if build_epilogue(steps, graph.output(form).shape, graph.tensors) is None:
            return None
        return replace(
            before,
            outputs=(form.outputs[0], *before.outputs[1:]),
            steps=steps,
            sources=(*before.origins, *form.origins),
        )

    return merge_into_producers(graph, merge, forms)
