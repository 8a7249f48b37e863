"""What every fusion does: make one node of two, where nothing else needs the value between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from tflite_vk.ir.graph import Graph, Node

Merge = Callable[[Node, Node], Node | None]
"""The node of a producer and the node that alone reads its result; None where there is none."""


def merge_into_producers(
    graph: Graph, merge: Merge, forms: Callable[[Node], Iterable[Node]] = lambda node: (node,)
) -> Graph:
    """Merge every node with the one that makes its first input, in order, as often as that goes on.

    The node of both stands where the second one stood.

    Args:
        graph: any.
        merge: see there.
        forms: ways to write a node that mean the same, the most wanted first.
    """
    reads = Counter(t for node in graph.nodes for t in node.reads)
    reads.update(graph.outputs)
    producer: dict[int, int] = {}
    nodes: list[Node | None] = []
    for node in graph.nodes:
        placed = node
        for form in forms(node):
            at = producer.get(form.inputs[0]) if form.inputs else None
            before = nodes[at] if at is not None else None
            if at is None or before is None or reads[form.inputs[0]] != 1:
                continue
            if any(graph.tensors[t].is_variable for t in before.reads):
                continue  # a node in between may change it
            merged = merge(before, form)
            if merged is not None:
                placed = merged
                nodes[at] = None
                break
        producer.update(dict.fromkeys(placed.outputs, len(nodes)))
        nodes.append(placed)
    return graph.with_(nodes=[n for n in nodes if n is not None])
