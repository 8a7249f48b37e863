"""Shape arithmetic computed before running: SHAPE of a tensor with a known shape, and what follows.

Converters write Flatten of a model with an open batch as SHAPE, STRIDED_SLICE, PACK, RESHAPE.
With the shapes of the inputs known, all but the RESHAPE are constants, as TFLite finds too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import (
    ConcatenationAttributes,
    GatherAttributes,
    PackAttributes,
    ReducerAttributes,
    SqueezeAttributes,
    StridedSliceAttributes,
)
from tflite_vk.ir.graph import Graph, Node

Array = npt.NDArray[Any]

MAX_ELEMENTS = 4096
"""Shapes are small; anything larger is data, which belongs on the device."""

_DTYPES = frozenset({DType.INT32, DType.INT64, DType.BOOL})


def fold_shape_node(node: Node, graph: Graph) -> Array | None:
    """The value of a node's only output where it is known before running, else None.

    Args:
        node: any node; one that is no shape arithmetic gives None.
        graph: with the shapes of the tensors the node reads.
    """
    if node.steps or len(node.outputs) != 1 or graph.output(node).dtype not in _DTYPES:
        return None
    dtype = graph.output(node).dtype.numpy
    if node.op in {"SHAPE", "RANK"} and len(node.reads) == 1:
        tensor = graph.input(node, 0)
        if tensor.is_dynamic:
            return None
        return np.array(tensor.shape if node.op == "SHAPE" else tensor.rank, dtype)
    folder = _FOLDERS.get(node.op)
    if folder is None or len(node.reads) != len(node.inputs) or node.is_custom:
        return None
    values = []
    for tensor_id in node.inputs:
        tensor = graph.tensors[tensor_id]
        if tensor.data is None or tensor.dtype not in _DTYPES or tensor.data.size > MAX_ELEMENTS:
            return None
        values.append(tensor.data)
    if getattr(node.attributes, "fused_activation_function", "NONE") != "NONE":
        return None
    try:
        with np.errstate(all="ignore"):
            value = folder(node, values)
    except (ArithmeticError, LookupError, ValueError, TypeError):
        return None  # such as a slice out of range: TFLite will say it better
    if value is None or value.size > MAX_ELEMENTS:
        return None
    return np.asarray(value).astype(dtype)


Folder = Callable[[Node, list[Array]], Array | None]


def _binary(function: Callable[[Array, Array], Array]) -> Folder:
    return lambda _, values: function(values[0], values[1])


def _floor_div(_: Node, values: list[Array]) -> Array | None:
    quotient: Array = np.floor_divide(values[0], values[1])
    return quotient if np.all(values[1] != 0) else None


def _axes(values: list[Array]) -> tuple[int, ...]:
    return tuple(int(a) for a in values[1].reshape(-1))


def _reduce(function: Callable[..., Array]) -> Folder:
    def fold(node: Node, values: list[Array]) -> Array:
        assert isinstance(node.attributes, ReducerAttributes)
        return np.asarray(
            function(values[0], axis=_axes(values), keepdims=node.attributes.keep_dims)
        )

    return fold


def _pack(node: Node, values: list[Array]) -> Array:
    assert isinstance(node.attributes, PackAttributes)
    return np.stack(values, node.attributes.axis)


def _concatenate(node: Node, values: list[Array]) -> Array:
    assert isinstance(node.attributes, ConcatenationAttributes)
    return np.concatenate(values, node.attributes.axis)


def _gather(node: Node, values: list[Array]) -> Array | None:
    assert isinstance(node.attributes, GatherAttributes)
    indices = values[1]
    if node.attributes.batch_dims or np.any(indices < 0):
        return None
    taken: Array = np.take(values[0], indices, node.attributes.axis)
    return taken


def _strided_slice(node: Node, values: list[Array]) -> Array | None:
    a = node.attributes
    assert isinstance(a, StridedSliceAttributes)
    source, begin, end, stride = values
    if a.ellipsis_mask or a.new_axis_mask or a.offset or begin.size != source.ndim:
        return None
    index: list[int | slice] = []
    for axis in range(begin.size):
        first, last, step = int(begin[axis]), int(end[axis]), int(stride[axis])
        if a.shrink_axis_mask >> axis & 1:
            index.append(first)
            continue
        if step < 0 and not (a.begin_mask >> axis & 1 and a.end_mask >> axis & 1):
            return None  # NumPy reads a negative end otherwise
        index.append(
            slice(
                None if a.begin_mask >> axis & 1 else first,
                None if a.end_mask >> axis & 1 else last,
                step,
            )
        )
    sliced: Array = source[tuple(index)]
    return sliced


def _slice(_: Node, values: list[Array]) -> Array | None:
    source, begin, size = values
    index = []
    for first, count, extent in zip(begin.tolist(), size.tolist(), source.shape, strict=True):
        last = extent if count == -1 else first + count
        if not 0 <= first <= last <= extent:
            return None
        index.append(slice(first, last))
    sliced: Array = source[tuple(index)]
    return sliced


def _squeeze(node: Node, values: list[Array]) -> Array:
    assert isinstance(node.attributes, SqueezeAttributes)
    return np.squeeze(values[0], node.attributes.squeeze_dims or None)


def _reshape(_: Node, values: list[Array]) -> Array | None:
    # Without the second input the shape is an option; only converters before 2018 wrote that.
    return values[0].reshape(values[1].tolist()) if len(values) == 2 else None


_FOLDERS: dict[str, Folder] = {
    "ADD": _binary(np.add),
    "SUB": _binary(np.subtract),
    "MUL": _binary(np.multiply),
    "MAXIMUM": _binary(np.maximum),
    "MINIMUM": _binary(np.minimum),
    "FLOOR_DIV": _floor_div,
    "CAST": lambda _, values: values[0],
    "CONCATENATION": _concatenate,
    "EXPAND_DIMS": lambda _, values: np.expand_dims(values[0], int(values[1].reshape(()))),
    "GATHER": _gather,
    "PACK": _pack,
    "REDUCE_MAX": _reduce(np.max),
    "REDUCE_MIN": _reduce(np.min),
    "REDUCE_PROD": _reduce(np.prod),
    "RESHAPE": _reshape,
    "SLICE": _slice,
    "SQUEEZE": _squeeze,
    "STRIDED_SLICE": _strided_slice,
    "SUM": _reduce(np.sum),
}
