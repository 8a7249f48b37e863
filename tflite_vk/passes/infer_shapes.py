"""Work out every tensor's shape from the shapes of the inputs, as TFLite does when it prepares.

The shapes in the file are those of one set of inputs, and some converters leave them out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy.typing as npt

from tflite_vk.ir.graph import Graph, Node, Tensor
from tflite_vk.passes.folded import whole_nodes
from tflite_vk.shape import Shape

Array = npt.NDArray[Any]

InferShapes = Callable[[Node, Graph], Sequence[Shape] | None]
"""Shapes of a node's outputs; None where they are unknown before running.

Raises ValueError where the shapes of the inputs do not fit the operator.
"""


Fold = Callable[[Node, Graph], Array | None]
"""The value of a node's only output where it is known by then, else None."""


def infer_shapes(
    graph: Graph,
    infer: InferShapes,
    input_shapes: Mapping[int, Shape] | None = None,
    fold: Fold | None = None,
) -> Graph:
    """The graph with the shapes that follow from its inputs.

    Where a shape can't be told, or the shapes in the file do not fit an operator, the file's are
    kept while nothing before them changed: the check for support will say why that node stays on
    the CPU. After a change, a shape that can't be told counts as dynamic.

    Args:
        graph: as a frontend made it.
        infer: the registry's function.
        input_shapes: shapes of graph inputs, by tensor id, that differ from the graph's.
        fold: computes nodes on the way, since shapes may depend on values: such as
            `fold_shape_node`. What it computes becomes a constant, noted in `Graph.folded`.

    Raises:
        ValueError: changed shapes that do not fit an operator; names the node.
    """
    tensors = dict(graph.tensors)
    for tensor_id, shape in (input_shapes or {}).items():
        tensors[tensor_id] = with_shape(tensors[tensor_id], tuple(shape))
    current = replace(graph, tensors=tensors)  # a view: `tensors` changes as the walk goes on
    changed = {t for t in tensors if tensors[t].shape != graph.tensors[t].shape}
    kept: list[Node] = []
    folded = dict(graph.folded)
    for node in graph.nodes:
        value = None if fold is None else fold(node, current)
        if value is not None:
            output = node.outputs[0]
            tensors[output] = replace(with_shape(tensors[output], value.shape), data=value)
            sources = (i for t in dict.fromkeys(node.reads) for i in folded.get(t, ()))
            folded[output] = (*dict.fromkeys(sources), *node.origins)
            continue
        kept.append(node)
        is_changed = not changed.isdisjoint(node.reads)
        try:
            shapes = infer(node, current)
        except ValueError as error:
            if is_changed:
                raise ValueError(f"{node.op} #{node.index}: {error}") from None
            continue
        except Exception:  # an odd node, say one with inputs missing, must not sink the model
            shapes = None
        if shapes is None:
            if not is_changed:
                continue
            for tensor_id in node.outputs:
                tensors[tensor_id] = replace(tensors[tensor_id], is_dynamic=True)
                changed.add(tensor_id)
            continue
        is_known = fold is not None and not any(tensors[t].is_dynamic for t in node.reads)
        for tensor_id, shape in zip(node.outputs, shapes, strict=True):
            if tensors[tensor_id].shape != tuple(shape):
                tensors[tensor_id] = with_shape(tensors[tensor_id], tuple(shape))
                changed.add(tensor_id)
            if is_known and tensors[tensor_id].is_dynamic:
                # A frontend goes by the names of operators; here values were found out.
                tensors[tensor_id] = replace(tensors[tensor_id], is_dynamic=False)
    folded = dict(whole_nodes(folded, kept))
    return replace(graph, tensors=dict(tensors), nodes=tuple(kept), folded=folded)


def with_shape(tensor: Tensor, shape: Shape) -> Tensor:
    """The tensor in another shape; a signature of another rank says nothing any more."""
    signature = tensor.shape_signature
    keeps = signature is not None and len(signature) == len(shape)
    return replace(tensor, shape=shape, shape_signature=signature if keeps else None)
