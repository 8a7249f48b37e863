"""Rules that every graph keeps, checked after each pass.

A violation is a fault of tflite_vk, not of the model: frontends refuse bad files with ModelError
before a graph exists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from tflite_vk.dtypes import DType
from tflite_vk.errors import Error
from tflite_vk.ir.graph import NO_TENSOR, Graph, Node
from tflite_vk.shape import broadcast

_UNPACKED = {
    DType.INT4: np.dtype(np.int8),
    DType.INT2: np.dtype(np.int8),
    DType.UINT4: np.dtype(np.uint8),
    DType.BFLOAT16: np.dtype(np.uint16),
    DType.STRING: np.dtype(object),
}
"""How constants of types that NumPy lacks are held."""


class GraphError(Error):
    """A graph contradicts itself. This is a bug of tflite_vk: please report it with the model."""


def verify_graph(graph: Graph) -> None:
    """Check every rule.

    Raises:
        GraphError: names the rule and the node or tensor that breaks it.
    """
    for name, rule in RULES.items():
        for violation in rule(graph):
            raise GraphError(
                f"graph {graph.name!r} breaks rule '{name}': {violation};"
                " this is a bug in tflite_vk, please report it"
            )


def _label(node: Node) -> str:
    return f"{node.op} #{node.index}"


def _names(graph: Graph) -> Iterator[tuple[str, int]]:
    """Every place that names a tensor, absent inputs left out."""
    for field, ids in (("inputs", graph.inputs), ("outputs", graph.outputs)):
        yield from ((f"graph {field}", t) for t in ids)
    for node in graph.nodes:
        yield from ((_label(node), t) for t in (*node.reads, *node.outputs))


def _ids(graph: Graph) -> Iterator[str]:
    for key, tensor in graph.tensors.items():
        if tensor.id != key:
            yield f"tensor {tensor.id} stands under id {key}"
        if key < 0:
            yield f"tensor id {key} is negative"


def _known(graph: Graph) -> Iterator[str]:
    for where, tensor in _names(graph):
        if tensor not in graph.tensors:
            yield f"{where} names tensor {tensor}, which the graph lacks"


def _shapes(graph: Graph) -> Iterator[str]:
    for tensor in graph.tensors.values():
        if any(d < 0 for d in tensor.shape):
            yield f"tensor {tensor.id} has shape {list(tensor.shape)}"
        signature = tensor.shape_signature
        if signature is not None and len(signature) != tensor.rank:
            yield f"tensor {tensor.id} has rank {tensor.rank}, its signature {len(signature)}"


def _constants(graph: Graph) -> Iterator[str]:
    for tensor in graph.tensors.values():
        if tensor.data is None:
            continue
        if tensor.data.shape != tensor.shape:
            yield f"tensor {tensor.id} of shape {list(tensor.shape)} holds {list(tensor.data.shape)}"
        expected = _UNPACKED.get(tensor.dtype)
        if expected is None and tensor.dtype.value.numpy is not None:
            expected = tensor.dtype.numpy
        # float16 weights behind a folded DEQUANTIZE stay as the model stores them.
        is_half = tensor.dtype is DType.FLOAT32 and tensor.data.dtype == np.float16
        if tensor.data.dtype != expected and not is_half:
            yield f"tensor {tensor.id} of {tensor.dtype.name} holds {tensor.data.dtype}"
        if tensor.is_variable:
            yield f"tensor {tensor.id} is both constant and variable"


def _quantizations(graph: Graph) -> Iterator[str]:
    for tensor in graph.tensors.values():
        q = tensor.quantization
        if q is None:
            continue
        if not q.scale or len(q.scale) != len(q.zero_point):
            yield f"tensor {tensor.id}: {len(q.scale)} scales, {len(q.zero_point)} zero points"
        elif not q.is_per_tensor and tensor.rank:
            if not 0 <= q.axis < tensor.rank:
                yield f"tensor {tensor.id}: quantized axis {q.axis} of rank {tensor.rank}"
            elif tensor.shape[q.axis] != len(q.scale):
                yield f"tensor {tensor.id}: {len(q.scale)} scales for {tensor.shape[q.axis]} slices"


def _writers(graph: Graph) -> Iterator[str]:
    writer: dict[int, Node] = {}
    inputs = set(graph.inputs)
    for node in graph.nodes:
        for tensor in node.outputs:
            if tensor == NO_TENSOR:
                yield f"{_label(node)} has an absent output"
            elif tensor in writer:
                yield f"{_label(node)} and {_label(writer[tensor])} write tensor {tensor}"
            elif graph.tensors[tensor].is_const:
                yield f"{_label(node)} writes constant {tensor}"
            elif tensor in inputs:
                yield f"{_label(node)} writes graph input {tensor}"
            writer[tensor] = node


def _order(graph: Graph) -> Iterator[str]:
    ready = {t.id for t in graph.tensors.values() if t.is_const or t.is_variable}
    ready |= set(graph.inputs)
    for node in graph.nodes:
        for tensor in node.reads:
            if tensor not in ready:
                yield f"{_label(node)} reads tensor {tensor} before anything writes it"
        ready.update(node.outputs)
    for tensor in graph.outputs:
        if tensor not in ready:
            yield f"nothing writes graph output {tensor}"


def _steps(graph: Graph) -> Iterator[str]:
    for node in graph.nodes:
        if not node.steps:
            continue
        if not node.outputs:
            yield f"{_label(node)} has fused steps but no output"
            continue
        shape = graph.output(node).shape
        for step in node.steps:
            if step.operand is None:
                if step.operand_first:
                    yield f"{_label(node)}: step {step.op} puts an absent operand first"
                continue
            operand = graph.tensors[step.operand]
            if broadcast((shape, operand.shape)) != shape:
                yield (
                    f"{_label(node)}: operand {operand.id} {list(operand.shape)} of step {step.op}"
                    f" does not broadcast to {list(shape)}"
                )
            if step.operand in node.outputs:
                yield f"{_label(node)}: step {step.op} reads the node's own output"


def _folded(graph: Graph) -> Iterator[str]:
    for tensor in graph.folded:
        if tensor not in graph.tensors or not graph.tensors[tensor].is_const:
            yield f"folded tensor {tensor} is no constant"


RULES: dict[str, Callable[[Graph], Iterator[str]]] = {
    "a tensor stands under its own id": _ids,
    "every tensor named is there": _known,
    "shapes have no negative dimension": _shapes,
    "a constant holds its shape and type": _constants,
    "scales and zero points match the shape": _quantizations,
    "a tensor has one writer": _writers,
    "nodes stand in execution order": _order,
    "fused steps broadcast to the output": _steps,
    "folded tensors are constants": _folded,
}
"""In an order in which a later rule may rely on the earlier ones."""
