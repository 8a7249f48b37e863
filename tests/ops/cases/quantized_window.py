"""Pools and SOFTMAX of integers, against LiteRT bit for bit."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from tests.support.case import Array, Case
from tests.support.quantized import per_tensor, quantized, quantized_input, whole_range
from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import Activation, Padding, Pool2DAttributes, SoftmaxAttributes
from tflite_vk.testing.model_writer import ModelWriter, TensorSpec

INT8, UINT8, INT16 = DType.INT8, DType.UINT8, DType.INT16


def _whole(
    shape: tuple[int, ...], dtype: DType
) -> Callable[[np.random.Generator], dict[int, Array]]:
    return lambda rng: {0: whole_range(rng, shape, dtype)}


def _pool(
    op: str,
    dtype: DType,
    x: tuple[int, int, int, int],
    window: tuple[int, int],
    stride: int,
    padding: Padding,
    activation: Activation,
) -> Callable[[ModelWriter], None]:
    sizes = [
        -(-n // stride) if padding == "SAME" else (n - k) // stride + 1
        for n, k in zip(x[1:3], window, strict=True)
    ]

    def build(w: ModelWriter) -> None:
        attributes = Pool2DAttributes(activation, padding, stride, stride, window[1], window[0])
        out = quantized((x[0], sizes[0], sizes[1], x[3]), dtype, (0.05, 100))
        w.output(w.op(op, [quantized_input(w, x, dtype, (0.05, 100))], [out], attributes))

    return build


_WINDOWS: tuple[tuple[tuple[int, int, int, int], tuple[int, int], int, Padding], ...] = (
    ((1, 8, 9, 5), (2, 3), 2, "SAME"),
    ((2, 7, 7, 13), (7, 7), 1, "VALID"),
    ((1, 9, 9, 4), (3, 3), 1, "SAME"),
)
CASES = [
    Case(
        f"quantized_{op}_{dtype.name}_{window[0]}x{window[1]}_{activation}",
        _pool(op, dtype, x, window, stride, padding, activation),
        inputs=_whole(x, dtype),
        exact=True,
    )
    for op in ("AVERAGE_POOL_2D", "MAX_POOL_2D")
    for dtype in (INT8, UINT8, INT16)
    for x, window, stride, padding in _WINDOWS
    for activation in ("NONE", "RELU6")
]


def _softmax(dtype: DType, shape: tuple[int, ...], beta: float, scale: float) -> Case:
    def build(w: ModelWriter) -> None:
        x = quantized_input(w, shape, dtype, (scale, 100))
        out = TensorSpec(shape, dtype, per_tensor(dtype, (1 / 256, 0)))
        w.output(w.op("SOFTMAX", [x], [out], SoftmaxAttributes(beta)))

    label = "x".join(map(str, shape))
    name = f"quantized_SOFTMAX_{dtype.name}_{label}_{scale}_beta{beta}"
    return Case(name, build, inputs=_whole(shape, dtype), exact=True)


CASES += [
    _softmax(dtype, shape, beta, scale)
    for dtype in (INT8, UINT8)
    for shape, beta, scale in (
        ((1, 10), 1.0, 0.01),
        ((3, 1001), 1.0, 0.05),
        ((2, 5, 7, 3), 1.0, 0.02),
        ((1, 37), 0.5, 0.3),
        ((5, 2), 1.0, 2.0),
        ((1, 113), 1.0, 0.001),
        ((200, 7), 1.0, 0.013),
        ((1, 1), 1.0, 0.1),
    )
]


CASES += [
    Case(
        f"quantized_SOFTMAX_{dtype.name}_equal_values",
        _softmax(dtype, (2, 2000), 1.0, 0.05).build,
        inputs=lambda rng, d=dtype: {0: np.full((2, 2000), 7, d.numpy)},
        expected=lambda x: [np.full_like(x, np.iinfo(x.dtype).min)],
        exact=True,
        why="LiteRT aborts; each result is 1/2000, less than half a step",
    )
    for dtype in (INT8, UINT8)
]


def _rows(op: str, dtype: DType, shape: tuple[int, ...], scale: float) -> Case:
    result = (1 / 16, 255) if op == "LOG_SOFTMAX" else (1 / 128, 128)

    def build(w: ModelWriter) -> None:
        x = quantized_input(w, shape, dtype, (scale, 100))
        w.output(w.op(op, [x], [TensorSpec(shape, dtype, per_tensor(dtype, result))], version=2))

    name = f"quantized_{op}_{dtype.name}_{'x'.join(map(str, shape))}_{scale}"
    return Case(name, build, inputs=_near(shape, dtype), exact=True)


def _near(shape: tuple[int, ...], dtype: DType) -> Callable[..., Mapping[int, Array]]:
    """Rows of close values after rows of all values: both ends of the fixed-point range."""

    def values(rng: np.random.Generator) -> Mapping[int, Array]:
        rows = whole_range(rng, shape, dtype).reshape(-1, shape[-1])
        width = rng.integers(1, 60, (rows.shape[0] // 2, 1))
        rows[: len(width)] = 100 - rng.integers(0, width, (len(width), shape[-1]))
        return {0: rows.reshape(shape)}

    return values


CASES += [
    _rows(op, dtype, shape, scale)
    for op in ("LOG_SOFTMAX", "L2_NORMALIZATION")
    for dtype in (INT8, UINT8)
    for shape, scale in (
        ((1, 10), 0.01),
        ((6, 1001), 0.05),
        ((2, 5, 7, 3), 0.02),
        ((1, 37), 0.3),
        ((90, 2), 2.0),
        ((30, 113), 0.001),
        ((200, 7), 0.013),
        ((1, 1), 0.1),
    )
]
