"""CONV_3D and CONV_3D_TRANSPOSE."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.support.case import Array, Case
from tflite_vk.ir.attributes import Activation, Conv3DAttributes, Padding
from tflite_vk.testing.model_writer import ModelWriter

Triple = tuple[int, int, int]
ONES: Triple = (1, 1, 1)


def _a(
    padding: Padding, s: Triple = ONES, d: Triple = ONES, activation: Activation = "NONE"
) -> Conv3DAttributes:
    return Conv3DAttributes(
        fused_activation_function=activation,
        padding=padding,
        stride_d=s[0],
        stride_h=s[1],
        stride_w=s[2],
        dilation_d_factor=d[0],
        dilation_h_factor=d[1],
        dilation_w_factor=d[2],
    )


def _random(shape: tuple[int, ...]) -> Array:
    return np.random.default_rng(11).uniform(-1, 1, shape).astype(np.float32)


def _forward(size: int, kernel: int, stride: int, dilation: int, padding: Padding) -> int:
    extent = (kernel - 1) * dilation + 1
    return -(-size // stride) if padding == "SAME" else (size - extent) // stride + 1


def _sizes(x: tuple[int, ...], kernel: Triple, a: Conv3DAttributes) -> Triple:
    strides = (a.stride_d, a.stride_h, a.stride_w)
    dilations = (a.dilation_d_factor, a.dilation_h_factor, a.dilation_w_factor)
    d, h, w = (_forward(x[i + 1], kernel[i], strides[i], dilations[i], a.padding) for i in range(3))
    return d, h, w


def _conv(
    x: tuple[int, ...],
    kernel: Triple,
    channels: int,
    a: Conv3DAttributes,
    *,
    bias: bool = True,
    runtime: bool = False,
) -> Callable[[ModelWriter], None]:
    def build(w: ModelWriter) -> None:
        value = _random((*kernel, x[4], channels))
        inputs = [w.input(x), w.input(value.shape) if runtime else w.const(value)]
        if bias:
            inputs.append(w.input((channels,)) if runtime else w.const(_random((channels,))))
        w.output(w.op("CONV_3D", inputs, [(x[0], *_sizes(x, kernel, a), channels)], a))

    return build


def _transpose(
    y: tuple[int, ...],
    kernel: Triple,
    inputs: int,
    a: Conv3DAttributes,
    *,
    bias: bool = False,
    runtime: bool = False,
) -> Callable[[ModelWriter], None]:
    """The transpose of the convolution that makes `inputs` channels of y."""

    def build(w: ModelWriter) -> None:
        value = _random((*kernel, y[4], inputs))
        operands = [
            w.const(np.array(y, np.int32)),
            w.input(value.shape) if runtime else w.const(value),
        ]
        operands.append(w.input((y[0], *_sizes(y, kernel, a), inputs)))
        if bias:
            operands.append(w.const(_random((y[4],))))
        w.output(w.op("CONV_3D_TRANSPOSE", operands, [y], a))

    return build


_CASES: tuple[tuple[tuple[int, ...], Triple, int, Conv3DAttributes], ...] = (
    ((1, 3, 5, 7, 3), (3, 3, 3), 4, _a("SAME")),
    ((2, 4, 5, 6, 5), (2, 3, 2), 7, _a("VALID")),
    ((1, 5, 6, 7, 4), (3, 2, 3), 5, _a("SAME", (2, 1, 3))),
    ((1, 7, 8, 9, 2), (2, 3, 2), 6, _a("VALID", (2, 3, 1))),
    ((1, 7, 8, 9, 6), (2, 3, 2), 3, _a("SAME", ONES, (2, 1, 3))),
    ((3, 1, 1, 5, 1), (1, 1, 1), 1, _a("VALID")),
    ((1, 2, 3, 13, 9), (1, 1, 5), 8, _a("SAME")),
)

CASES = [Case(f"CONV_3D_{i}", _conv(x, k, c, a)) for i, (x, k, c, a) in enumerate(_CASES)]
CASES += [
    Case("CONV_3D_no_bias", _conv((1, 3, 4, 5, 6), (2, 2, 2), 5, _a("SAME"), bias=False)),
    Case("CONV_3D_run_time_filter", _conv((1, 3, 4, 5, 6), (2, 2, 2), 5, _a("SAME"), runtime=True)),
    Case("CONV_3D_RELU6", _conv((1, 3, 4, 5, 6), (2, 2, 2), 5, _a("SAME", activation="RELU6"))),
    Case("CONV_3D_empty", _conv((0, 3, 4, 5, 6), (2, 2, 2), 5, _a("SAME"))),
]
CASES += [
    Case(f"CONV_3D_TRANSPOSE_{i}", _transpose(y, k, c, a)) for i, (y, k, c, a) in enumerate(_CASES)
]
CASES += [
    Case(
        "CONV_3D_TRANSPOSE_bias",
        _transpose((2, 3, 4, 5, 6), (2, 2, 2), 5, _a("SAME", (2, 2, 2)), bias=True),
    ),
    Case(
        "CONV_3D_TRANSPOSE_run_time_filter",
        _transpose((1, 3, 4, 5, 7), (2, 2, 3), 5, _a("SAME", (1, 2, 2)), runtime=True, bias=True),
    ),
    Case(
        "CONV_3D_TRANSPOSE_RELU",
        _transpose((1, 3, 4, 5, 7), (2, 2, 3), 5, _a("SAME", (1, 2, 2), activation="RELU")),
    ),
]
