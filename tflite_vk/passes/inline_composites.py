"""Put the operators of a STABLEHLO_COMPOSITE's decomposition in its place.

TFLite runs a composite by calling the subgraph that it names. In its place the operators of that
subgraph are as good as any others: each has its kernel, and they fuse with what is around them. They
keep the composite's node index, so for partitions and reports they are still one node.

A delegate can't do this: TFLite tells it which tensors a subgraph takes and gives, not in which order.
There a composite is called from the CPU, and the operators of its subgraph are delegated by themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tflite_vk.ir.attributes import StablehloCompositeAttributes
from tflite_vk.ir.graph import NO_TENSOR, Graph, Node, Tensor
from tflite_vk.passes.fold_constants import fold_constants

Body = Callable[[int], Graph | None]
"""The subgraph with an index, None where it can't be had."""


def inline_composites(graph: Graph, body: Body) -> Graph:
    """The graph with every composite replaced that can be.

    A composite stays where its decomposition calls itself, keeps state, or hands an input or a
    constant on as an output.

    Args:
        graph: as read.
        body: finds the subgraphs that composites name.
    """
    return _inline(graph, body, frozenset())


def _inline(graph: Graph, body: Body, callers: frozenset[int]) -> Graph:
    if all(_named(node) is None for node in graph.nodes):
        return graph
    tensors = dict(graph.tensors)
    nodes: list[Node] = []
    first_free = graph.next_tensor_id()
    for node in graph.nodes:
        inside = _body(node, graph, body, callers)
        if inside is None:
            nodes.append(node)
            continue
        ids = dict(zip(inside.inputs, node.inputs, strict=True))
        ids.update(zip(inside.outputs, node.outputs, strict=True))
        for tensor in inside.tensors.values():
            if tensor.id not in ids:
                ids[tensor.id] = first_free
                tensors[first_free] = replace(tensor, id=first_free)
                first_free += 1
        nodes += [_placed(inner, node, ids) for inner in inside.nodes]
    return replace(graph, tensors=tensors, nodes=tuple(nodes))


def _named(node: Node) -> int | None:
    """The subgraph that a composite names."""
    a = node.attributes
    return a.decomposition_subgraph_index if isinstance(a, StablehloCompositeAttributes) else None


def _body(node: Node, graph: Graph, body: Body, callers: frozenset[int]) -> Graph | None:
    """What to put in a node's place; None for a node that stays."""
    index = _named(node)
    if index is None or index in callers:
        return None
    found = body(index)
    if found is None:
        return None
    inside = fold_constants(_inline(found, body, callers | {index}))
    return inside if _fits(node, graph, inside) else None


def _fits(node: Node, graph: Graph, inside: Graph) -> bool:
    if len(inside.inputs) != len(node.inputs) or len(inside.outputs) != len(node.outputs):
        return False
    ends = (*inside.inputs, *inside.outputs)
    written = {t for inner in inside.nodes for t in inner.outputs}
    if len(set(ends)) != len(ends) or not written.issuperset(inside.outputs):
        return False
    if NO_TENSOR in node.inputs or any(t.is_variable for t in inside.tensors.values()):
        return False
    outer = (*node.inputs, *node.outputs)
    return all(
        _is_alike(inside.tensors[i], graph.tensors[o]) for i, o in zip(ends, outer, strict=True)
    )


def _is_alike(inner: Tensor, outer: Tensor) -> bool:
    """True where the same bits mean the same; shapes follow from those outside."""
    return inner.dtype is outer.dtype and inner.quantization == outer.quantization


def _placed(inner: Node, composite: Node, ids: dict[int, int]) -> Node:
    return replace(
        inner,
        index=composite.index,
        inputs=tuple(NO_TENSOR if t == NO_TENSOR else ids[t] for t in inner.inputs),
        outputs=tuple(ids[t] for t in inner.outputs),
        is_inlined=True,
    )
