"""Write graphs back as a .tflite file: what a rewrite made of a model, for LiteRT to run."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tflite_vk.dtypes import DType
from tflite_vk.frontend.flatbuffer import Model
from tflite_vk.ir.attributes import (
    Attributes,
    CastAttributes,
    CustomAttributes,
    NoAttributes,
    UnreadAttributes,
)
from tflite_vk.ir.graph import NO_TENSOR, Graph, Node, Tensor
from tflite_vk.testing.model_writer import ModelWriter, SubgraphWriter, TensorSpec


def write_model(model: Model) -> bytes:
    """The bytes of a model whose tensors keep their indices.

    Sparse constants are written expanded; metadata, which TFLite ignores, is left out.

    Raises:
        ValueError: a node with fused steps, or one whose options were not read.
    """
    main, *others = model.subgraphs
    writer = ModelWriter(model.description, main.name)
    writers = [writer, *(writer.subgraph(graph.name) for graph in others)]
    for one, graph in zip(writers, model.subgraphs, strict=True):
        write_graph(one, graph)
    for s in model.signatures:
        writer.signature(s.key, s.inputs, s.outputs, writers[s.subgraph])
    return writer.build()


def write_graph(writer: SubgraphWriter, graph: Graph) -> None:
    """Fill an empty subgraph.

    Raises:
        ValueError: as for `write_model`.
    """
    for tensor_id in range(graph.next_tensor_id()):
        _write_tensor(writer, graph.tensors.get(tensor_id))
    for tensor_id in graph.inputs:
        writer.mark_input(tensor_id)
    writer.output(*graph.outputs)
    for node in graph.nodes:
        writer.op_into(
            node.op,
            [None if t == NO_TENSOR else t for t in node.inputs],
            node.outputs,
            _options(node),
            node.version,
        )


def _write_tensor(writer: SubgraphWriter, tensor: Tensor | None) -> None:
    if tensor is None:  # an index that a rewrite left free
        writer.const(np.zeros(1, np.float32), "unused")
        return
    name, dtype, quantization = tensor.name, tensor.dtype, tensor.quantization
    if tensor.is_variable:
        writer.variable(tensor.shape, name, dtype, quantization)
    elif tensor.data is None:
        spec = TensorSpec(tensor.shape, dtype, quantization, name, tensor.shape_signature)
        writer.tensor(spec)
    else:
        data = tensor.data
        if dtype is DType.BFLOAT16:  # read as its bits, written from its values
            data = (data.astype(np.uint32) << np.uint32(16)).view(np.float32)
        writer.const(data, name, dtype, quantization)


def _options(node: Node) -> Attributes | bytes | None:
    if node.steps:
        raise ValueError(f"{node.op} #{node.index} has fused steps, which no .tflite file can say")
    a = node.attributes
    if isinstance(a, UnreadAttributes):
        raise ValueError(f"{node.op} #{node.index}: {a.reason}")
    if isinstance(a, CustomAttributes):
        return a.data
    # A CAST's table can't leave its types open, a missing one does.
    return None if isinstance(a, NoAttributes) or a == CastAttributes() else a


def with_graphs(model: Model, graphs: Iterable[Graph]) -> Model:
    """The model with other subgraphs, in the same order."""
    return Model(tuple(graphs), model.signatures, model.description, model.metadata)
