"""A subgraph that TFLite holds becomes a graph: TfLiteContext during a delegate's Prepare.

Constants are views of the model's own memory, not copies: a model may be as large as the memory.
They live as long as the interpreter does, so what is read here must not outlive the delegate's
kernels, which TFLite frees before the model. Nothing public holds one.

One odd node never sinks a model: a node that can't be read stays in the graph, so that its
neighbours' values have a producer, and `unread` says why it is left to the CPU.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tflite_vk import tflite_abi as abi
from tflite_vk.dtypes import DType
from tflite_vk.errors import ModelError
from tflite_vk.frontend.builtin_data import read_builtin_data
from tflite_vk.frontend.builtin_options import builtin_name
from tflite_vk.frontend.constants import _numbers, is_fixed_size, storage_bytes
from tflite_vk.frontend.context_sparsity import expand_sparse
from tflite_vk.frontend.custom_options import read_custom_options
from tflite_vk.frontend.dynamic import mark_dynamic
from tflite_vk.ir.attributes import Attributes, UnreadAttributes
from tflite_vk.ir.graph import NO_TENSOR, Graph, Node, Quantization, Tensor
from tflite_vk.shape import Shape, num_elements

_MAX_TYPE = 64
_MAX_ALLOCATION_TYPE = 32
_MAX_RANK = 64


@dataclass(frozen=True)
class ContextSubgraph:
    """What was read of a subgraph.

    Attributes:
        graph: every node of the execution plan, in its order. Inputs and outputs stand by id:
            TFLite tells a delegate which tensors they are, not in which order.
        unread: for each node that could not be read in full, why.
    """

    graph: Graph
    unread: Mapping[int, str]


class _UnreadableError(Exception):
    """A tensor or node that this reader can't represent; the message is a reason for people."""


def check_context(address: int) -> None:
    """Fail where a TfLiteContext has another layout than the one declared here.

    Another library's runtime, or a much older one, would otherwise crash the process.

    Raises:
        ModelError: the structure makes no sense.
    """
    context = abi.Context.from_address(address)
    is_plausible = bool(
        context.impl_
        and context.GetExecutionPlan
        and context.GetNodeAndRegistration
        and context.ReplaceNodeSubsetsWithDelegateKernels
        and (context.tensors or not context.tensors_size)
        and context.tensors_size < 1 << 31
    )
    for i in range(min(context.tensors_size, 4) if is_plausible else 0):
        tensor = context.tensors[i]
        is_plausible = is_plausible and (
            0 <= tensor.type < _MAX_TYPE
            and 0 <= tensor.allocation_type < _MAX_ALLOCATION_TYPE
            and (not tensor.dims or 0 <= tensor.dims.contents.size < _MAX_RANK)
        )
    if not is_plausible:
        raise ModelError(
            "the interpreter's TfLiteContext has an unknown layout (known: TensorFlow Lite 2.9 to "
            "LiteRT 2.3); use another version of ai-edge-litert, or tflite_vk.Interpreter"
        )


def execution_plan(address: int) -> tuple[int, ...]:
    """Node indices in execution order."""
    plan = ctypes.POINTER(abi.IntArray)()
    status = abi.Context.from_address(address).GetExecutionPlan(address, ctypes.byref(plan))
    if status != abi.OK:
        raise ModelError(f"TFLite's GetExecutionPlan failed with status {status}")
    return abi.read_ints(plan)


def preview_partitions(
    address: int, nodes: Iterable[int]
) -> list[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]:
    """Nodes, inputs and outputs of each kernel that TFLite would make of the nodes."""
    wanted = abi.make_ints(tuple(nodes))
    params = ctypes.POINTER(abi.DelegateParams)()
    count = ctypes.c_int()
    status = abi.Context.from_address(address).PreviewDelegatePartitioning(
        address, ctypes.addressof(wanted), ctypes.byref(params), ctypes.byref(count)
    )
    if status != abi.OK:
        raise ModelError(f"TFLite's PreviewDelegatePartitioning failed with status {status}")
    return [read_params(params[i]) for i in range(count.value)]


def read_params(
    params: abi.DelegateParams,
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Nodes, inputs and outputs of a kernel; the inputs include constants."""
    return (
        abi.read_ints(params.nodes_to_replace),
        abi.read_ints(params.input_tensors),
        abi.read_ints(params.output_tensors),
    )


def read_shape(address: int, tensor: int) -> Shape:
    """The present shape of a tensor."""
    return abi.read_ints(abi.Context.from_address(address).tensors[tensor].dims)


def read_subgraph(address: int, name: str = "main") -> ContextSubgraph:
    """The subgraph behind a TfLiteContext, while a delegate's Prepare runs.

    Raises:
        ModelError: TFLite answers with an error, or not in the way of a TFLite we know.
    """
    check_context(address)
    context = abi.Context.from_address(address)
    unread: dict[int, str] = {}
    nodes: list[Node] = []
    for index in execution_plan(address):
        node, reason = _read_node(address, index)
        nodes.append(node)
        if reason is not None:
            unread[index] = reason
    inputs, outputs = _boundary(address, nodes)
    used = {*inputs, *outputs}.union(*((*n.reads, *n.outputs) for n in nodes))
    tensors: dict[int, Tensor] = {}
    odd: dict[int, str] = {}
    for i in sorted(used):
        tensors[i], problem = _read_tensor(context.tensors[i], i)
        if problem is not None:
            odd[i] = problem
    for node in nodes:
        touched = [t for t in (*node.reads, *node.outputs) if t in odd]
        if touched and node.index not in unread:
            unread[node.index] = odd[touched[0]]
    run_time = tuple(t for t in inputs if not tensors[t].is_const and not tensors[t].is_variable)
    graph = Graph(name, tensors, tuple(nodes), run_time, outputs)
    return ContextSubgraph(mark_dynamic(graph), unread)


def _boundary(address: int, nodes: list[Node]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Tensors the subgraph takes and gives: what TFLite lists for one kernel of all its nodes."""
    written = {t for n in nodes for t in n.outputs}
    inputs: set[int] = {t for n in nodes for t in n.reads} - written
    if not nodes or not abi.Context.from_address(address).PreviewDelegatePartitioning:
        read = {t for n in nodes for t in n.reads}
        return tuple(sorted(inputs)), tuple(sorted(written - read))
    groups = preview_partitions(address, [n.index for n in nodes])
    outputs = {t for _, _, group_outputs in groups for t in group_outputs}
    return tuple(sorted(inputs)), tuple(sorted(outputs))


def _read_node(address: int, index: int) -> tuple[Node, str | None]:
    node_pointer = ctypes.POINTER(abi.Node)()
    registration_pointer = ctypes.POINTER(abi.Registration)()
    status = abi.Context.from_address(address).GetNodeAndRegistration(
        address, index, ctypes.byref(node_pointer), ctypes.byref(registration_pointer)
    )
    if status != abi.OK:
        raise ModelError(f"TFLite's GetNodeAndRegistration failed with status {status}")
    node, registration = node_pointer.contents, registration_pointer.contents
    is_custom = registration.builtin_code == abi.BUILTIN_CUSTOM
    try:
        attributes, reason = _read_attributes(node, registration), None
    except Exception as error:  # whatever is odd about it concerns this node alone
        reason = f"its options can't be read: {error}"
        attributes = UnreadAttributes(reason)
    return (
        Node(
            index=index,
            op=_op_name(registration),
            inputs=tuple(NO_TENSOR if t < 0 else t for t in abi.read_ints(node.inputs)),
            outputs=tuple(t for t in abi.read_ints(node.outputs) if t >= 0),
            attributes=attributes,
            version=registration.version,
            is_custom=is_custom,
            intermediates=_read_intermediates(address, node),
        ),
        reason,
    )


def _read_intermediates(address: int, node: abi.Node) -> tuple[Quantization | None, ...]:
    tensors = abi.Context.from_address(address).tensors
    found: list[Quantization | None] = []
    for index in abi.read_ints(node.intermediates):
        try:
            found.append(_read_quantization(tensors[index]))
        except _UnreadableError:
            found.append(None)
    return tuple(found)


def _op_name(registration: abi.Registration) -> str:
    if registration.builtin_code == abi.BUILTIN_CUSTOM:
        return bytes(registration.custom_name or b"CUSTOM").decode("utf-8", "replace")
    return builtin_name(registration.builtin_code)


def _read_attributes(node: abi.Node, registration: abi.Registration) -> Attributes:
    name = _op_name(registration)
    if registration.builtin_code == abi.BUILTIN_CUSTOM:
        data = abi.read_bytes(node.custom_initial_data, node.custom_initial_data_size)
        return read_custom_options(name, data)
    if registration.builtin_code == abi.BUILTIN_DELEGATE:
        return UnreadAttributes("another delegate has taken it")
    return read_builtin_data(name, node.builtin_data)


def _read_tensor(tensor: abi.Tensor, index: int) -> tuple[Tensor, str | None]:
    name = bytes(tensor.name or b"").decode("utf-8", "replace")
    shape = abi.read_ints(tensor.dims)
    signature = abi.read_ints(tensor.dims_signature)
    dtype = DType.from_tflite(tensor.type)
    problem: str | None = None
    data: npt.NDArray[np.generic] | None = None
    quantization: Quantization | None = None
    try:
        if dtype is None:
            raise _UnreadableError(f"element type {tensor.type} is unknown")
        quantization = _read_quantization(tensor)
        if tensor.allocation_type == abi.MMAP_RO:
            data = _read_constant(tensor, dtype, shape)
    except (_UnreadableError, ModelError) as error:
        problem = f"tensor {index} {name!r}: {error}"
    return (
        Tensor(
            id=index,
            name=name,
            shape=shape,
            dtype=dtype or DType.VARIANT,
            data=data,
            quantization=quantization,
            shape_signature=signature if -1 in signature else None,
            is_variable=tensor.is_variable,
            is_dynamic=tensor.allocation_type == abi.DYNAMIC,
            is_sparse=data is not None and bool(tensor.sparsity),
        ),
        problem,
    )


def _read_quantization(tensor: abi.Tensor) -> Quantization | None:
    kind, address = tensor.quantization.type, tensor.quantization.params
    if kind == abi.NO_QUANTIZATION or not address:
        return None
    if kind != abi.AFFINE_QUANTIZATION:
        raise _UnreadableError(f"quantization of kind {kind} is not read (only affine)")
    params = abi.AffineQuantization.from_address(address)
    scale, zero_point = abi.read_floats(params.scale), abi.read_ints(params.zero_point)
    if not scale:
        return None
    if len(zero_point) == 1:
        # The interpreter stores equal zero points once where it is asked to.
        zero_point *= len(scale)
    if len(zero_point) != len(scale):
        raise _UnreadableError(f"{len(zero_point)} zero points for {len(scale)} scales")
    return Quantization(scale, zero_point, params.quantized_dimension)


def _read_constant(
    tensor: abi.Tensor, dtype: DType, shape: Shape
) -> npt.NDArray[np.generic] | None:
    if not is_fixed_size(dtype):
        return None  # strings: no kernel reads them, and TFLite keeps them
    if tensor.bytes and not tensor.data:
        raise _UnreadableError("its value is not in memory")
    raw = np.zeros(0, np.uint8)
    if tensor.bytes:
        raw = np.frombuffer((ctypes.c_uint8 * tensor.bytes).from_address(tensor.data), np.uint8)
    if tensor.sparsity:
        return expand_sparse(tensor.sparsity.contents, raw, dtype, shape)
    elements = num_elements(shape)
    if raw.size != storage_bytes(dtype, elements):
        raise _UnreadableError(
            f"{raw.size} bytes, {elements} elements of {dtype.name} take "
            f"{storage_bytes(dtype, elements)}"
        )
    data: npt.NDArray[np.generic] = _numbers(raw, dtype)[:elements].reshape(shape)
    data.setflags(write=False)
    return data
