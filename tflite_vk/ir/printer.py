"""A graph as text: stable, one line per node, for golden tests, `inspect` and bug reports.

    graph main
      inputs  %0 FLOAT32[1,8,8,3]
      CONV_2D #0  %0 FLOAT32[1,8,8,3], %1 const FLOAT32[4,3,3,3], - -> %3 FLOAT32[1,8,8,4]  stride_w=2 | RELU6
      outputs %3 FLOAT32[1,8,8,4]

After the two spaces stand the attributes that differ from their defaults; after each bar a fused
step, with its operand before the name where that is the left one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import Attributes
from tflite_vk.ir.graph import NO_TENSOR, Graph, Node, Quantization, Step, Tensor

_MAX_BYTES_SHOWN = 16


def format_graph(graph: Graph) -> str:
    """The text of a graph, without a newline at its end."""
    lines = [f"graph {graph.name or '(unnamed)'}", _ends("inputs ", graph, graph.inputs)]
    lines.extend(f"  {format_node(node, graph)}" for node in graph.nodes)
    lines.append(_ends("outputs", graph, graph.outputs))
    for tensor, nodes in sorted(graph.folded.items()):
        sources = ", ".join(f"#{i}" for i in nodes)
        lines.append(f"  folded  {format_tensor(graph.tensors[tensor])} from {sources}")
    return "\n".join(lines)


def format_node(node: Node, graph: Graph) -> str:
    """The line of a node."""
    head = f"{node.op} #{node.index}"
    if len(node.origins) > 1:
        head += f" (of {', '.join(f'#{i}' for i in node.origins)})"
    if node.is_custom:
        head = f"custom {head}"
    line = f"{head}  {_tensors(graph, node.inputs)} -> {_tensors(graph, node.outputs)}"
    attributes = format_attributes(node.attributes)
    if attributes:
        line += f"  {attributes}"
    return line + "".join(f" | {_step(step, graph)}" for step in node.steps)


def format_tensor(tensor: Tensor) -> str:
    """Id, kind, element type and shape of a tensor, and its quantization."""
    kind = "const " if tensor.is_const else "var " if tensor.is_variable else ""
    shape = "dynamic" if tensor.is_dynamic else ",".join(map(str, tensor.shape))
    quantization = "" if tensor.quantization is None else _quantization(tensor.quantization)
    return f"%{tensor.id} {kind}{tensor.dtype.name}[{shape}]{quantization}"


def format_attributes(attributes: Attributes) -> str:
    """The attributes that differ from their defaults, in the dataclass's order."""
    parts = []
    for field in dataclasses.fields(attributes):
        value = getattr(attributes, field.name)
        if value != field.default:
            parts.append(f"{field.name}={_value(value)}")
    return " ".join(parts)


def _ends(label: str, graph: Graph, tensors: Iterable[int]) -> str:
    return f"  {label} {_tensors(graph, tensors)}".rstrip()


def _tensors(graph: Graph, ids: Iterable[int]) -> str:
    return ", ".join("-" if i == NO_TENSOR else format_tensor(graph.tensors[i]) for i in ids)


def _step(step: Step, graph: Graph) -> str:
    attributes = format_attributes(step.attributes)
    text = f"{step.op} {attributes}".rstrip()
    if step.operand is None:
        return text
    operand = format_tensor(graph.tensors[step.operand])
    return f"{operand} {text}" if step.operand_first else f"{text} {operand}"


def _quantization(quantization: Quantization) -> str:
    if quantization.is_per_tensor:
        return f"q({quantization.scale[0]:.6g},{quantization.zero_point[0]})"
    return f"q(axis {quantization.axis})"


def _value(value: object) -> str:
    if isinstance(value, DType):
        return value.name
    if isinstance(value, bytes) and len(value) > _MAX_BYTES_SHOWN:
        return f"<{len(value)} bytes>"
    if isinstance(value, tuple):
        return f"[{','.join(map(str, value))}]"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
