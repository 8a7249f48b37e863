"""Write ADD_N as ADD nodes one after the other, in TFLite's order, so that fusion joins them."""

from __future__ import annotations

from tflite_vk.ir.attributes import BinaryAttributes
from tflite_vk.ir.graph import Graph, Node, Tensor


def split_sums(graph: Graph) -> Graph:
    """The graph without ADD_N.

    Args:
        graph: any graph.
    """
    nodes: list[Node] = []
    for node in graph.nodes:
        if node.op != "ADD_N":
            nodes.append(node)
            continue
        output, (sum_so_far, *rest) = graph.output(node), node.inputs
        for term in rest[:-1]:
            part = Tensor(graph.next_tensor_id(), f"{output.name}/sum", output.shape, output.dtype)
            graph = graph.with_(tensors=[part])
            nodes.append(_add(node, (sum_so_far, term), part.id))
            sum_so_far = part.id
        nodes.append(_add(node, (sum_so_far, rest[-1]), node.outputs[0]))
    return graph.with_(nodes=nodes)


def _add(node: Node, inputs: tuple[int, int], output: int) -> Node:
    return Node(node.index, "ADD", inputs, (output,), BinaryAttributes(), sources=node.sources)
