"""Say a model in operators that LiteRT has: an oracle for custom ones whose kernel it lacks.

`Convolution2DTransposeBias` is MediaPipe's name for what TFLite's TRANSPOSE_CONV of version 3
computes: same filter layout, same padding, a bias. The two differ in how they come by their output's
size, so the builtin one is told the declared size.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from tflite_vk.dtypes import DType
from tflite_vk.frontend.flatbuffer import Model
from tflite_vk.ir.attributes import TransposeConvAttributes
from tflite_vk.ir.graph import NO_TENSOR, Graph, Node, Tensor
from tflite_vk.ops.registry import infer_shapes as shapes_of
from tflite_vk.passes.infer_shapes import infer_shapes
from tflite_vk.shape import Shape
from tflite_vk.testing.graph_writer import with_graphs, write_model

_CUSTOM = "Convolution2DTransposeBias"


@dataclass(frozen=True)
class Substitute:
    """A model in other words.

    Attributes:
        content: the .tflite file; tensors of the original keep their indices.
        description: what stands for what, for people.
    """

    content: bytes
    description: str


def substitute(model: Model, input_shapes: Mapping[int, Shape] | None = None) -> Substitute | None:
    """The model with builtin operators for custom ones that LiteRT's kernels lack.

    Args:
        model: as read.
        input_shapes: shapes of inputs of subgraph 0, by tensor id, other than the file's. The
            substitute holds sizes as constants, so it serves these shapes only.

    Returns:
        None where there is nothing to replace.

    Raises:
        ValueError: the shapes do not fit, or the model has what can't be written back.
    """
    found = [n for g in model.subgraphs for n in g.nodes if _is_replaceable(n)]
    if not found:
        return None
    shapes = [input_shapes if i == 0 else None for i in range(len(model.subgraphs))]
    graphs = [
        _replace_all(infer_shapes(graph, shapes_of, given))
        for graph, given in zip(model.subgraphs, shapes, strict=True)
    ]
    times = f" ({len(found)} times)" if len(found) > 1 else ""
    return Substitute(
        write_model(with_graphs(model, graphs)), f"TRANSPOSE_CONV for {_CUSTOM}{times}"
    )


def _is_replaceable(node: Node) -> bool:
    a = node.attributes
    return node.is_custom and node.op == _CUSTOM and isinstance(a, TransposeConvAttributes)


def _replace_all(graph: Graph) -> Graph:
    sizes: list[Tensor] = []
    nodes: list[Node] = []
    for node in graph.nodes:
        if not _is_replaceable(node):
            nodes.append(node)
            continue
        size_id = graph.next_tensor_id() + len(sizes)
        size = np.array(graph.output(node).shape, np.int32)
        sizes.append(Tensor(size_id, f"{_CUSTOM}/{node.index}/size", (4,), DType.INT32, data=size))
        nodes.append(_builtin(node, size_id))
    return graph.with_(nodes=nodes, tensors=sizes)


def _builtin(node: Node, size: int) -> Node:
    a = node.attributes
    assert isinstance(a, TransposeConvAttributes)
    data, weights, *bias = node.inputs
    has_bias = bool(bias) and bias[0] != NO_TENSOR
    version = 4 if a.fused_activation_function != "NONE" else 3 if has_bias else 1
    return replace(
        node,
        op="TRANSPOSE_CONV",
        inputs=(size, weights, data, *(bias if has_bias else ())),
        version=version,
        is_custom=False,
    )
