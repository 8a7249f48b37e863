"""What a subgraph's nodes read has to be there when they run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tflite_vk.ir.graph import Graph, Node

if TYPE_CHECKING:
    from tflite_vk.frontend.checked import View


def check_order(graph: Graph, view: View) -> None:
    """Fail where a tensor is read before it is written, by two nodes written, or never.

    TFLite runs the operators in file order and finds out only while running, if at all.

    Raises:
        ModelError: names the node and the tensor.
    """
    available = {index for index, t in graph.tensors.items() if t.is_const or t.is_variable} | set(
        graph.inputs
    )
    writers = graph.producers()
    written: dict[int, Node] = {}
    for node in graph.nodes:
        for tensor in node.reads:
            if tensor not in available and tensor not in written:
                raise view.error("Operators", _unavailable(graph, node, tensor, writers))
        for tensor in node.outputs:
            if tensor in written:
                other = written[tensor]
                by = "twice" if other is node else f"by node {other.index} ({other.op}) already"
                raise view.error(
                    "Operators", f"{_label(node)} writes tensor {tensor}, written {by}"
                )
            if tensor in available and not graph.tensors[tensor].is_variable:
                kind = "a constant" if graph.tensors[tensor].is_const else "a subgraph input"
                raise view.error("Operators", f"{_label(node)} writes tensor {tensor}, {kind}")
            written[tensor] = node
    for position, tensor in enumerate(graph.outputs):
        if tensor not in available and tensor not in written:
            raise view.error("Outputs", f"entry {position}: nothing writes tensor {tensor}")


def _label(node: Node) -> str:
    return f"node {node.index} ({node.op})"


def _unavailable(graph: Graph, node: Node, tensor: int, writers: dict[int, Node]) -> str:
    name = graph.tensors[tensor].name
    writer = writers.get(tensor)
    if writer is None:
        return f"{_label(node)} reads tensor {tensor} {name!r}, which nothing writes"
    if writer is node:
        return f"{_label(node)} reads tensor {tensor} {name!r}, its own output"
    return f"{_label(node)} reads tensor {tensor} {name!r} before {_label(writer)} writes it"
