"""The table of operators, and the one question partitioning asks: why can't this node run?"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np

import tflite_vk.ops
from tflite_vk.device_info import DeviceInfo, DeviceLimits
from tflite_vk.dtypes import DType
from tflite_vk.epilogue import ACTIVATION_STEPS
from tflite_vk.ir.attributes import ActivationAttributes, UnreadAttributes
from tflite_vk.ir.graph import NO_TENSOR, Graph, Node, Tensor
from tflite_vk.layout import storage_of, words_for
from tflite_vk.ops.operator import Kind, Operator
from tflite_vk.ops.signatures import SIGNATURES, signature_reason
from tflite_vk.shape import Shape

MAX_RANK = 6

Key = tuple[str, bool, Kind]
"""Name, is custom, kind of nodes."""

_OPERATORS: dict[Key, Operator] = {}


def register(cls: type[Operator]) -> type[Operator]:
    """Class decorator: add an operator family to the table.

    Raises:
        ValueError: an operator name is registered twice for one kind of nodes, or has no signature.
    """
    operator = cls()
    for name in cls.versions:
        if name not in SIGNATURES:
            raise ValueError(f"operator {name} of {cls.__name__} is missing in ops/signatures.py")
        key = (name, cls.custom, cls.kind)
        if key in _OPERATORS:
            raise ValueError(f"operator {name} is registered by {cls.__name__} and another family")
        _OPERATORS[key] = operator
    return cls


@functools.cache
def operators() -> Mapping[Key, Operator]:
    """Every operator family by (name, is custom, kind). Imports each module of tflite_vk.ops once."""
    for module in pkgutil.walk_packages(tflite_vk.ops.__path__, "tflite_vk.ops."):
        importlib.import_module(module.name)
    return _OPERATORS


def kind_of(node: Node, graph: Graph) -> Kind:
    """Which kind of family a node asks for first."""
    tensors = [graph.tensors[t] for t in (*node.inputs, *node.outputs) if t != NO_TENSOR]
    if any(t.dtype.is_quantized for t in tensors if not t.is_const):
        return "quantized"
    if any(t.dtype.is_quantized or t.dtype is DType.INT4 for t in tensors):
        return "hybrid"
    return "plain"


def find(node: Node, graph: Graph) -> Operator | None:
    """The family of a node, None where there is none."""
    table = operators()
    special = table.get((node.op, node.is_custom, kind_of(node, graph)))
    return special or table.get((node.op, node.is_custom, "plain"))


def ends_in_epilogue(node: Node, graph: Graph) -> bool:
    """True for a node whose kernel applies fused steps to output 0."""
    operator = find(node, graph)
    if operator is None or not operator.ends_in_epilogue or operator.is_alias(node, graph):
        return False
    return graph.output(node).dtype is DType.FLOAT32


def is_table(node: Node, graph: Graph) -> bool:
    """True for a function of one 8-bit value, which a kernel before it can take in."""
    operator = find(node, graph)
    return operator is not None and operator.is_table(node, graph)


def takes_table(node: Node, graph: Graph) -> bool:
    """True for a node whose kernel maps its 8-bit results through a table."""
    operator = find(node, graph)
    return operator is not None and operator.takes_table(node, graph)


def joins(before: Node, node: Node, graph: Graph, device: DeviceInfo) -> bool:
    """True where one kernel computes a node and the one whose result it reads, and is faster."""
    operator = find(node, graph)
    return operator is not None and operator.joins(before, node, graph, device)


def infer_shapes(node: Node, graph: Graph) -> list[Shape] | None:
    """Shapes of a node's outputs; None where unknown before running.

    Raises:
        ValueError: input shapes that don't fit the operator.
    """
    operator = find(node, graph)
    if operator is None or signature_reason(node) is not None:
        return None
    shapes = operator.output_shapes(node, graph)
    return None if shapes is None else [tuple(s) for s in shapes]


def _check_tensor(
    role: str, tensor: Tensor, operator: Operator, limits: DeviceLimits
) -> str | None:
    # Reasons name the role, not the tensor: a report then shows equal reasons once.
    if tensor.is_dynamic or any(d < 0 for d in tensor.shape):
        return f"{role} has a shape known only while running"
    if tensor.rank > MAX_RANK:
        return f"{role} has rank {tensor.rank} (supported: up to {MAX_RANK})"
    if not tensor.is_const and tensor.dtype not in operator.dtypes:
        names = ", ".join(sorted(t.name for t in operator.dtypes))
        return f"{role} is {tensor.dtype.name} (supported: {names})"
    # A constant may lie on the device in another order, never in fewer words.
    is_half = tensor.data is not None and tensor.data.dtype == np.float16
    storage = storage_of(tensor.dtype, half=is_half)
    if storage is not None:
        num_bytes = 4 * words_for(tensor.shape, storage)
        if num_bytes > limits.max_storage_buffer_bytes:
            return (
                f"{role} takes {num_bytes} bytes, the device binds at most "
                f"{limits.max_storage_buffer_bytes} (maxStorageBufferRange)"
            )
    return None


def _roles(node: Node) -> Iterator[tuple[str, int]]:
    """What each tensor that a node reads is to it."""
    for position, tensor in enumerate(node.inputs):
        if tensor != NO_TENSOR:
            yield f"input {position}", tensor
    for step in node.steps:
        if step.operand is not None:
            yield f"operand of {step.op}", step.operand


def _check_activation(node: Node) -> str | None:
    if not isinstance(node.attributes, ActivationAttributes):
        return None
    activation = node.attributes.fused_activation_function
    if activation == "NONE" or activation in ACTIVATION_STEPS:
        return None
    return f"fused activation {activation} has no kernel (supported: {', '.join(ACTIVATION_STEPS)})"


def _check_shapes(node: Node, graph: Graph, operator: Operator) -> str | None:
    try:
        shapes = operator.output_shapes(node, graph)
    except ValueError as error:
        return str(error)
    if shapes is None:
        return "the output shape depends on run-time values"
    if len(shapes) != len(node.outputs):
        return f"has {len(node.outputs)} outputs, its operator makes {len(shapes)}"
    for position, shape in enumerate(shapes):
        declared = graph.output(node, position).shape
        if tuple(shape) != declared:
            return (
                f"output {position} is declared {list(declared)}, its operator makes {list(shape)}"
            )
    return None


_CALLS = frozenset({"CALL_ONCE", "IF", "STABLEHLO_COMPOSITE", "WHILE"})


def unsupported_reason(node: Node, graph: Graph, limits: DeviceLimits | None = None) -> str | None:
    """Why a node stays on the CPU, in words; None where it will run on the device."""
    reason = _unsupported_reason(node, graph, limits or _ANY_LIMITS)
    return f"{node.op} inside it: {reason}" if reason is not None and node.is_inlined else reason


def _unsupported_reason(node: Node, graph: Graph, limits: DeviceLimits) -> str | None:
    operator = find(node, graph)
    if operator is None and node.is_custom:
        return "custom operator without a kernel"
    if operator is None and node.op in _CALLS:
        return "calls subgraphs from the CPU, their operators may run on the device"
    if operator is None:
        return "no kernel for this operator"
    newest = operator.versions[node.op]
    if node.version > newest:
        return f"version {node.version} is newer than the kernel (supported: up to {newest})"
    if isinstance(node.attributes, UnreadAttributes):
        return "its options are not understood"
    if (reason := signature_reason(node)) is not None:
        return reason

    def of_tensors(roles: Iterable[tuple[str, int]]) -> list[Callable[[], str | None]]:
        return [
            functools.partial(_check_tensor, role, graph.tensors[t], operator, limits)
            for role, t in roles
        ]

    checks: list[Callable[[], str | None]] = [
        *of_tensors(_roles(node)),
        functools.partial(_check_activation, node),
        # Before the outputs: the operator knows best why a shape is not known.
        functools.partial(_check_shapes, node, graph, operator),
        *of_tensors((f"output {i}", t) for i, t in enumerate(node.outputs)),
        functools.partial(operator.check, node, graph),
    ]
    return next((reason for check in checks if (reason := check()) is not None), None)


_ANY_LIMITS = DeviceLimits(max_storage_buffer_bytes=1 << 32)
