"""A Graph as an ONNX model, for ONNX Runtime to run the very same weights.

Values of rank 4 are NCHW in ONNX, whose operators know no other order; all others are as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.protobuf import Field, message, repeated
from tflite_vk.dtypes import DType
from tflite_vk.ir.graph import Graph, Node, Tensor
from tflite_vk.ops.window import Window
from tflite_vk.passes.fold_constants import fold_constants

Array = npt.NDArray[Any]

_OPSET = 13
_IR_VERSION = 8
_FLOAT, _INT64 = 1, 7
_NCHW = (0, 3, 1, 2)
_NHWC = (0, 2, 3, 1)


class UnknownOperatorError(Exception):
    """The graph has an operator, or a form of one, that is not translated here."""


def to_onnx(graph: Graph) -> bytes:
    """The model file.

    Raises:
        UnknownOperatorError: something in it is not translated here; names it.
    """
    return _Translation(fold_constants(graph)).model()


class _Translation:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._nodes: list[Field] = []
        self._constants: list[Field] = []
        self._count = 0

    def model(self) -> bytes:
        for node in self._graph.nodes:
            translate = _OPERATORS.get(node.op)
            if translate is None:
                raise UnknownOperatorError(node.op)
            translate(self, node)
        graph = message(
            *self._nodes,
            (2, "network"),
            *self._constants,
            *repeated(11, (self._declare(t) for t in self._graph.inputs)),
            *repeated(12, (self._declare(t) for t in self._graph.outputs)),
        )
        opset = message((2, _OPSET))
        return message((1, _IR_VERSION), (7, graph), (8, opset))

    def _declare(self, tensor_id: int) -> bytes:
        tensor = self._graph.tensors[tensor_id]
        if tensor.dtype is not DType.FLOAT32 or tensor.is_const:
            raise UnknownOperatorError(f"input or output {tensor.name!r} is {tensor.dtype.name}")
        shape = [tensor.shape[i] for i in _NCHW] if tensor.rank == 4 else tensor.shape
        dims = message(*repeated(1, (message((1, d)) for d in shape)))
        return message((1, _name(tensor)), (2, message((1, message((1, _FLOAT), (2, dims))))))

    def tensor(self, node: Node, position: int) -> Tensor:
        return self._graph.input(node, position)

    def output(self, node: Node) -> Tensor:
        return self._graph.output(node)

    def constant(self, value: Array) -> str:
        """A constant by a name of its own."""
        self._count += 1
        name = f"constant{self._count}"
        kind = _INT64 if value.dtype == np.int64 else _FLOAT
        data = value if kind == _INT64 else value.astype("<f4")
        fields = [*repeated(1, value.shape), (2, kind), (8, name), (9, data.tobytes())]
        self._constants.append((5, message(*fields)))
        return name

    def value(self, node: Node, position: int) -> str:
        """Name of an input; a constant goes in as it is."""
        tensor = self.tensor(node, position)
        if tensor.data is None:
            return _name(tensor)
        data = tensor.data.transpose(_NCHW) if tensor.rank == 4 else tensor.data
        return self.constant(np.asarray(data, np.float32))

    def between(self) -> str:
        """A name for a value inside a translated operator."""
        self._count += 1
        return f"value{self._count}"

    def add(self, op: str, inputs: Sequence[str], output: str, **attributes: Any) -> None:
        """Add an ONNX node."""
        fields = [*repeated(1, inputs), (2, output), (4, op)]
        fields += [(5, _attribute(name, value)) for name, value in attributes.items()]
        self._nodes.append((1, message(*fields)))

    def add_activated(self, node: Node, op: str, inputs: Sequence[str], **attributes: Any) -> None:
        """Add an ONNX node for a node with a fused activation."""
        target = _name(self.output(node))
        activation = getattr(node.attributes, "fused_activation_function", "NONE")
        if activation == "NONE":
            self.add(op, inputs, target, **attributes)
            return
        before = self.between()
        self.add(op, inputs, before, **attributes)
        if activation == "RELU":
            self.add("Relu", [before], target)
        elif activation == "RELU6":
            low, high = (self.constant(np.array(v, np.float32)) for v in (0.0, 6.0))
            self.add("Clip", [before, low, high], target)
        else:
            raise UnknownOperatorError(f"{node.op} with {activation}")


def _name(tensor: Tensor) -> str:
    return f"tensor{tensor.id}"


def _attribute(name: str, value: Any) -> bytes:
    if isinstance(value, int):
        return message((1, name), (3, value), (20, 2))
    return message((1, name), *repeated(8, value), (20, 7))


def _pads(node: Node, graph: _Translation, kernel: tuple[int, int]) -> list[int]:
    """TFLite's padding, spelled out: top, left, bottom, right."""
    a: Any = node.attributes
    source, target = graph.tensor(node, 0).shape, graph.output(node).shape
    before, after = [], []
    for axis, size, stride, dilation in (
        (1, kernel[0], a.stride_h, getattr(a, "dilation_h_factor", 1)),
        (2, kernel[1], a.stride_w, getattr(a, "dilation_w_factor", 1)),
    ):
        window = Window(size, stride, dilation)
        front = window.pad_before(source[axis], target[axis]) if a.padding == "SAME" else 0
        reach = (target[axis] - 1) * stride + (size - 1) * dilation + 1
        before.append(front)
        after.append(max(0, reach - source[axis] - front))
    return before + after


def _conv(graph: _Translation, node: Node) -> None:
    a: Any = node.attributes
    weights = graph.tensor(node, 1)
    if weights.data is None:
        raise UnknownOperatorError(f"{node.op} with a run-time filter")
    data = np.asarray(weights.data, np.float32)
    if node.op == "DEPTHWISE_CONV_2D":
        filters = data.transpose(3, 0, 1, 2)  # [1, h, w, channels] to [channels, 1, h, w]
        groups = graph.tensor(node, 0).shape[3]
    else:
        filters = data.transpose(_NCHW)
        groups = graph.tensor(node, 0).shape[3] // data.shape[3]
    kernel = (filters.shape[2], filters.shape[3])
    inputs = [graph.value(node, 0), graph.constant(filters)]
    if node.has_input(2):
        inputs.append(graph.value(node, 2))
    graph.add_activated(
        node,
        "Conv",
        inputs,
        group=groups,
        kernel_shape=kernel,
        strides=(a.stride_h, a.stride_w),
        dilations=(a.dilation_h_factor, a.dilation_w_factor),
        pads=_pads(node, graph, kernel),
    )


def _max_pool(graph: _Translation, node: Node) -> None:
    a: Any = node.attributes
    kernel = (a.filter_height, a.filter_width)
    pads = _pads(node, graph, kernel)
    strides = (a.stride_h, a.stride_w)
    inputs = [graph.value(node, 0)]
    graph.add_activated(node, "MaxPool", inputs, kernel_shape=kernel, strides=strides, pads=pads)


def _mean(graph: _Translation, node: Node) -> None:
    axes = graph.tensor(node, 1).data
    a: Any = node.attributes
    source = graph.tensor(node, 0)
    if axes is None or source.rank != 4 or sorted(axes.reshape(-1).tolist()) != [1, 2]:
        raise UnknownOperatorError("MEAN other than over height and width")
    keep = int(a.keep_dims)
    target = _name(graph.output(node))
    graph.add("ReduceMean", [graph.value(node, 0)], target, axes=(2, 3), keepdims=keep)


def _fully_connected(graph: _Translation, node: Node) -> None:
    if graph.tensor(node, 0).rank != 2 or graph.tensor(node, 1).data is None:
        raise UnknownOperatorError("FULLY_CONNECTED other than of rank 2")
    inputs = [graph.value(node, i) for i in range(3 if node.has_input(2) else 2)]
    graph.add_activated(node, "Gemm", inputs, transB=1)


def _softmax(graph: _Translation, node: Node) -> None:
    a: Any = node.attributes
    if a.beta != 1.0 or graph.tensor(node, 0).rank == 4:
        raise UnknownOperatorError("SOFTMAX with beta, or of rank 4")
    graph.add("Softmax", [graph.value(node, 0)], _name(graph.output(node)), axis=-1)


def _add(graph: _Translation, node: Node) -> None:
    graph.add_activated(node, "Add", [graph.value(node, 0), graph.value(node, 1)])


def _reshape(graph: _Translation, node: Node) -> None:
    target = graph.output(node)
    value = graph.value(node, 0)
    if graph.tensor(node, 0).rank == 4:
        ordered = graph.between()
        graph.add("Transpose", [value], ordered, perm=_NHWC)
        value = ordered
    if target.rank == 4:
        raise UnknownOperatorError("RESHAPE to rank 4")
    shape = graph.constant(np.array(target.shape, np.int64))
    graph.add("Reshape", [value, shape], _name(target))


def _concatenation(graph: _Translation, node: Node) -> None:
    a: Any = node.attributes
    target = graph.output(node)
    axis = a.axis % target.rank
    if target.rank == 4:
        axis = _NCHW.index(axis)
    inputs = [graph.value(node, i) for i in range(len(node.inputs))]
    graph.add_activated(node, "Concat", inputs, axis=axis)


_OPERATORS: dict[str, Callable[[_Translation, Node], None]] = {
    "ADD": _add,
    "CONCATENATION": _concatenation,
    "CONV_2D": _conv,
    "DEPTHWISE_CONV_2D": _conv,
    "FULLY_CONNECTED": _fully_connected,
    "MAX_POOL_2D": _max_pool,
    "MEAN": _mean,
    "RESHAPE": _reshape,
    "SOFTMAX": _softmax,
}
