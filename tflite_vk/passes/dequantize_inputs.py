"""Write the conversion that TFLite does inside an operator as a DEQUANTIZE of its own.

TFLite_Detection_PostProcess takes 8-bit encodings, scores and anchors, and computes in float.
"""

from __future__ import annotations

from dataclasses import replace

from tflite_vk.dtypes import DType
from tflite_vk.ir.graph import NO_TENSOR, Graph, Node, Tensor
from tflite_vk.passes.fold_constants import dequantize

COMPUTES_IN_FLOAT = frozenset({"TFLite_Detection_PostProcess"})
"""Operators whose quantized inputs count as the reals they stand for."""


def dequantize_inputs(graph: Graph) -> Graph:
    """Give such operators float inputs; constants are converted here."""
    nodes: list[Node] = []
    for node in graph.nodes:
        if node.op in COMPUTES_IN_FLOAT:
            inputs = list(node.inputs)
            for position, tensor_id in enumerate(inputs):
                if tensor_id == NO_TENSOR or not graph.tensors[tensor_id].dtype.is_quantized:
                    continue
                tensor = graph.tensors[tensor_id]
                data = dequantize(tensor) if tensor.is_const else None
                name = f"{tensor.name}/real"
                real = Tensor(graph.next_tensor_id(), name, tensor.shape, DType.FLOAT32, data=data)
                graph = graph.with_(tensors=[real])
                inputs[position] = real.id
                if data is None:
                    step = Node(node.index, "DEQUANTIZE", (tensor_id,), (real.id,))
                    nodes.append(step)
            node = replace(node, inputs=tuple(inputs))  # noqa: PLW2901
        nodes.append(node)
    return graph.with_(nodes=nodes)
