"""Write STABLEHLO operators under the names of TFLite's own that compute the same."""

from __future__ import annotations

from dataclasses import replace

from tflite_vk.ir.attributes import BinaryAttributes, NoAttributes
from tflite_vk.ir.graph import Graph, Node

SAME_AS = {
    "STABLEHLO_ADD": "ADD",
    "STABLEHLO_MAXIMUM": "MAXIMUM",
    "STABLEHLO_MINIMUM": "MINIMUM",
    "STABLEHLO_MULTIPLY": "MUL",
}


def renamed(node: Node) -> Node:
    """The node as TFLite's own operator, or as it is."""
    if node.op not in SAME_AS:
        return node
    op = SAME_AS[node.op]
    return replace(
        node, op=op, attributes=BinaryAttributes() if op in {"ADD", "MUL"} else NoAttributes()
    )


def rename_stablehlo(graph: Graph) -> Graph:
    """The graph with TFLite's names alone."""
    return graph.with_(nodes=[renamed(node) for node in graph.nodes])
