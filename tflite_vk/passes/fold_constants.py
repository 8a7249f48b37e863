"""Compute what needs no input before running: DEQUANTIZE of constant float16 weights above all.

TFLite's converter stores float16 weights behind one DEQUANTIZE node each. The node disappears
here and its output becomes a constant; `Graph.folded` remembers the node for the report.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from tflite_vk.dtypes import DType
from tflite_vk.ir.graph import Graph, Node, Tensor
from tflite_vk.passes.folded import whole_nodes

Array = npt.NDArray[np.generic]


def dequantize(tensor: Tensor) -> Array | None:
    """The values of a constant as real numbers, None where its type has no such meaning.

    float16 stays a float16 array: every value is the same float32, and kernels keep such weights
    packed on the device.
    """
    data = tensor.data
    if data is None or tensor.dtype is DType.FLOAT16:
        return data
    q = tensor.quantization
    if q is None or tensor.dtype not in (DType.INT8, DType.UINT8, DType.INT16):
        return None
    if q.is_per_tensor:
        # As TFLite's reference kernel: the difference in int32, one float32 product.
        shifted = data.astype(np.int32) - q.zero_point[0]
        return (shifted.astype(np.float32) * np.float32(q.scale[0])).astype(np.float32)
    along = [1] * tensor.rank
    along[q.axis] = len(q.scale)
    scale = np.asarray(q.scale, np.float32).reshape(along)
    zero_point = np.asarray(q.zero_point, np.int32).reshape(along)
    return ((data.astype(np.int32) - zero_point).astype(np.float32) * scale).astype(np.float32)


def _fold_dequantize(node: Node, graph: Graph) -> Array | None:
    return dequantize(graph.input(node, 0)) if graph.output(node).dtype is DType.FLOAT32 else None


def _fold_densify(node: Node, graph: Graph) -> Array | None:
    # The frontend has already expanded sparse constants.
    return graph.input(node, 0).data


_FOLDERS: dict[str, Callable[[Node, Graph], Array | None]] = {
    "DEQUANTIZE": _fold_dequantize,
    "DENSIFY": _fold_densify,
}


def fold_constants(graph: Graph) -> Graph:
    """Replace nodes whose only input is a constant by their value."""
    kept: list[Node] = []
    folded = dict(graph.folded)
    for node in graph.nodes:
        folder = _FOLDERS.get(node.op)
        if folder is None or len(node.inputs) != 1 or not graph.input(node, 0).is_const:
            kept.append(node)
            continue
        value = folder(node, graph)
        output = graph.output(node)
        if value is None or value.shape != output.shape:
            kept.append(node)
            continue
        constant = Tensor(output.id, output.name, output.shape, output.dtype, data=value)
        graph = graph.with_(tensors=[constant])
        folded[output.id] = (*folded.get(node.inputs[0], ()), node.index)
    return graph.with_(nodes=kept, folded=whole_nodes(folded, kept))
