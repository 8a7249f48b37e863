"""What the operators share that move elements and never look at them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from tflite_vk.dtypes import DType
from tflite_vk.ir.graph import Graph, Node, Tensor
from tflite_vk.layout import Storage, element_bytes, pack
from tflite_vk.ops.context import LoweringContext

MOVED = frozenset(
    {
        DType.FLOAT32,
        DType.INT32,
        DType.INT64,
        DType.UINT32,
        DType.BOOL,
        DType.INT8,
        DType.UINT8,
        DType.INT16,
    }
)
"""Types that the device stores."""

_INTEGERS = frozenset({DType.INT8, DType.UINT8, DType.INT16, DType.INT32, DType.INT64})
_RUN_TIME_INDICES = frozenset({DType.INT32, DType.INT64})
_INT32 = np.iinfo(np.int32)


def lanes_variant(shader: str, storage: Storage) -> str:
    """Name of the variant of a shader on lanes.glsl for elements of a storage type."""
    num_bytes = element_bytes(storage)
    return shader if num_bytes == 4 else f"{shader}_{8 * num_bytes}bit"


def zero_value(tensor: Tensor) -> int:
    """The element that stands for zero: the zero point of a quantized tensor."""
    q = tensor.quantization
    return q.zero_point[0] if tensor.dtype.is_quantized and q is not None else 0


def const_ints(tensor: Tensor) -> tuple[int, ...] | None:
    """Elements of a constant integer tensor in row-major order; None where it is no such constant."""
    if tensor.data is None or tensor.dtype not in _INTEGERS:
        return None
    return tuple(int(v) for v in np.asarray(tensor.data).reshape(-1))


def input_ints(node: Node, graph: Graph, position: int) -> tuple[int, ...] | None:
    """`const_ints` of an input."""
    if not node.has_input(position):
        return None
    return const_ints(graph.input(node, position))


def check_data_types(node: Node, graph: Graph, positions: Iterable[int]) -> str | None:
    """Reason where an input is not of output 0's type or that has no kernel.

    The registry looks at run-time tensors only; a constant may be of any type.
    """
    dtype = graph.output(node).dtype
    for position in positions:
        tensor = graph.input(node, position)
        if tensor.dtype is not dtype:
            return (
                f"input {position} is {tensor.dtype.name}, the output {dtype.name} (must be equal)"
            )
        if dtype not in MOVED:
            names = ", ".join(sorted(t.name for t in MOVED))
            return f"input {position} is {dtype.name} (supported: {names})"
    return None


def index_buffer(ctx: LoweringContext, tensor: Tensor) -> int:
    """The buffer of an index tensor as int32 in the padded layout.

    What doesn't fit saturates: it lies outside any dimension either way.
    """
    if tensor.data is None or tensor.dtype is DType.INT32:
        return ctx.buffer(tensor.id, "i32")
    narrow = np.clip(tensor.data, _INT32.min, _INT32.max).astype(np.int32)
    return ctx.constant(pack(narrow, "i32"), tensor.name)


def check_index_type(node: Node, graph: Graph, position: int) -> str | None:
    """Reason where an input can't be read as indices."""
    tensor = graph.input(node, position)
    if tensor.dtype not in (_INTEGERS if tensor.is_const else _RUN_TIME_INDICES):
        return f"input {position} is {tensor.dtype.name} (supported: INT32, INT64)"
    if tensor.dtype is DType.INT64 and tensor.is_variable:
        return f"input {position} is an INT64 variable (supported: INT32)"
    return None


def check_indices(node: Node, graph: Graph, position: int, sizes: Sequence[int]) -> str | None:
    """Reason where a constant index lies outside, or the indices are no integers.

    Args:
        node: the node.
        graph: its graph.
        position: of the indices among the inputs.
        sizes: size that the indices in each column of the innermost dimension count in; one size
            for all of them.
    """
    tensor = graph.input(node, position)
    if (reason := check_index_type(node, graph, position)) is not None or tensor.data is None:
        return reason
    data = np.atleast_1d(np.asarray(tensor.data).astype(np.int64))
    outside = (data < 0) | (data >= np.array(sizes, np.int64))
    if outside.any():
        at = tuple(int(i) for i in np.argwhere(outside)[0])
        limit = sizes[at[-1] if len(sizes) > 1 else 0]
        return f"index {data[at]} lies outside a dimension of {limit}"
    return None
