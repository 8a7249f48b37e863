"""Drop nodes that only pass their input on, so that neighbours meet and can fuse.

A node stays where its input is a graph input or a constant and its output a graph output: then
the copy is all there is to do, and lowering handles it without a dispatch.
"""

from __future__ import annotations

from dataclasses import replace

from tflite_vk.ir.attributes import ResizeAttributes
from tflite_vk.ir.graph import Graph, Node

_RESHAPING = frozenset({"RESHAPE", "SQUEEZE", "EXPAND_DIMS", "BROADCAST_TO", "TILE"})
_RESIZES = frozenset({"RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"})
_PADS = frozenset({"PAD", "PADV2", "MIRROR_PAD"})


def is_no_op(node: Node, graph: Graph) -> bool:
    """True where output 0 equals input 0 element by element, in shape and type."""
    if not node.has_input(0) or len(node.outputs) != 1 or node.steps:
        return False
    source, result = graph.input(node, 0), graph.output(node)
    if source.shape != result.shape or source.dtype is not result.dtype:
        return False
    if source.dtype.is_quantized and source.quantization != result.quantization:
        return False  # the same integers, but consumers read them as other reals
    if node.op in _RESHAPING or node.op in _PADS or node.op == "CAST":
        return True
    if node.op == "CONCATENATION":
        return len(node.inputs) == 1
    # At equal size every grid of the two resizes maps each pixel onto itself.
    return node.op in _RESIZES and isinstance(node.attributes, ResizeAttributes)


def remove_no_ops(graph: Graph) -> Graph:
    """Remove them, and read their input instead."""
    renamed: dict[int, int] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        current = replace(node, inputs=tuple(renamed.get(t, t) for t in node.inputs))
        output = current.outputs[0] if current.outputs else None
        if output is not None and is_no_op(current, graph) and output not in graph.outputs:
            renamed[output] = current.inputs[0]
            continue
        nodes.append(current)
    return graph.with_(nodes=nodes)
