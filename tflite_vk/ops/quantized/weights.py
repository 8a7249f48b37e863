"""Constant filters and biases of quantized convolutions and matrix products."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tflite_vk.dtypes import DType
from tflite_vk.ir.graph import Graph, Node, Tensor
from tflite_vk.ops.quantization import Affine, affine, check_affine
from tflite_vk.shape import LANES, round_up

Array = npt.NDArray[np.generic]
Ints = npt.NDArray[np.int64]

_FILTERS = {
    DType.INT8: frozenset({DType.INT8, DType.INT4}),
    DType.UINT8: frozenset({DType.UINT8}),
    DType.INT16: frozenset({DType.INT8, DType.INT4}),
}
"""Filter types that TFLite has kernels for, by the type of the input."""


def check_operands(
    graph: Graph, node: Node, axis: int, bias_at: int = 2, data_at: int = 0
) -> str | None:
    """Reason where input, filter, bias and output don't make a quantized product.

    Args:
        graph: the graph.
        node: its data is multiplied with the constant input 1.
        axis: the filter's dimension of output channels.
        bias_at: position of the bias.
        data_at: position of the data.
    """
    source, weights, output = graph.input(node, data_at), graph.input(node, 1), graph.output(node)
    for tensor, role in ((source, "input"), (output, "output")):
        if (reason := check_affine(tensor, role)) is not None:
            return reason
    if source.is_const:
        return "its input is a constant"
    if output.dtype is not source.dtype:
        return f"{source.dtype.name} to {output.dtype.name} (supported: the same type)"
    supported = _FILTERS.get(source.dtype, frozenset())
    if node.op == "DEPTHWISE_CONV_2D" and source.dtype is DType.INT16:
        supported = frozenset({DType.INT8})  # TFLite's kernel takes packed INT4 for bytes
    if weights.dtype not in supported:
        names = ", ".join(sorted(t.name for t in supported))
        return f"filter of a {source.dtype.name} input is {weights.dtype.name} (supported: {names})"
    if not weights.is_const:
        return "filter of integers is known only while running (supported: a constant)"
    if (reason := check_scales(weights, axis)) is not None:
        return reason
    bias = graph.optional_input(node, bias_at)
    if source.dtype is DType.INT16:
        return None  # wide.py goes on
    if bias is not None and (bias.dtype is not DType.INT32 or not bias.is_const):
        return f"bias of integers must be a constant INT32 tensor, it is {bias.dtype.name}"
    return None


def check_scales(weights: Tensor, axis: int) -> str | None:
    """Reason where a filter has neither one scale nor one for each output channel along `axis`."""
    q = weights.quantization
    if q is None:
        return f"filter is {weights.dtype.name} without a scale"
    if not q.is_per_tensor:
        if weights.dtype is DType.UINT8:
            return "filter is UINT8 with a scale for each channel (supported: INT8)"
        if q.axis != axis or len(q.scale) != weights.shape[axis]:
            return f"filter has {len(q.scale)} scales along axis {q.axis} (supported: one for each output channel)"
    if weights.dtype is DType.INT4 and any(q.zero_point):
        return "filter is INT4 with a zero point (supported: 0)"
    if not all(0 <= s < float("inf") for s in q.scale):
        return "filter has a negative or infinite scale"
    return None


def filter_values(weights: Tensor) -> Ints:
    """A constant filter as int8 values, 128 less than written where it is uint8."""
    assert weights.data is not None
    values: Ints = weights.data.astype(np.int64)
    if weights.dtype is DType.UINT8:
        values -= 128
    return values


def filter_zero(weights: Tensor, *, keeps_int8_zero: bool = False) -> int:
    """Zero point of `filter_values`.

    TFLite's convolutions take int8 filters as symmetric, whatever their zero point says; its
    FULLY_CONNECTED does so only for a scale per channel.
    """
    q = weights.quantization
    assert q is not None
    if weights.dtype is DType.UINT8:
        return q.zero_point[0] - 128
    return q.zero_point[0] if keeps_int8_zero and q.is_per_tensor else 0


def bias_values(graph: Graph, node: Node, channels: int, bias_at: int = 2) -> Ints:
    """The constant bias, zeros where there is none."""
    bias = graph.optional_input(node, bias_at)
    if bias is None:
        return np.zeros(channels, np.int64)
    assert bias.data is not None
    return bias.data.reshape(-1).astype(np.int64)


def output_scales(graph: Graph, node: Node, data_at: int = 0) -> list[float]:
    """Real factor from sums to output steps, for each channel or one for all.

    Source: PopulateConvolutionQuantizationParams and GetQuantizedConvolutionMultipler of
    tflite/kernels/kernel_util.cc: the uint8 path multiplies the two scales in float32.
    """
    source, weights = graph.input(node, data_at), graph.input(node, 1)
    out = affine(graph.made(node)).scale
    assert weights.quantization is not None
    scale = affine(source).scale
    if source.dtype is DType.UINT8:
        product = np.float32(scale) * np.float32(weights.quantization.scale[0])
        return [float(product) / out]
    return [scale * s / out for s in weights.quantization.scale]


def folded_bias(bias: Ints, values: Ints, zero: int, source: Affine, axes: Sequence[int]) -> Ints:
    """The bias with everything the input's zero point adds: sum((x - zx)(w - zw)) over sum(x (w - zw)).

    Args:
        bias: one value for each output channel.
        values: `filter_values`.
        zero: `filter_zero`.
        source: quantization of the input.
        axes: axes of `values` that are summed over.
    """
    sums: Ints = (values - zero).sum(axis=tuple(axes))
    return bias - source.zero_point * sums


def pack_dot4(values: Ints) -> npt.NDArray[np.uint32]:
    """A filter [output, taps, input] as [tap][input group][output group][output lane] words.

    Each word holds four input lanes, the first in its low byte; lanes past the ends are zero.
    """
    outputs, taps, inputs = values.shape
    padded = np.zeros((round_up(outputs, LANES), taps, round_up(inputs, LANES)), np.int8)
    padded[:outputs, :, :inputs] = values
    lanes = padded.reshape(-1, LANES, taps, padded.shape[2] // LANES, LANES)
    order = np.ascontiguousarray(lanes.transpose(2, 3, 0, 1, 4))
    return order.view(np.uint32).reshape(taps, padded.shape[2] // LANES, -1)
