"""CONV_2D, DEPTHWISE_CONV_2D, FULLY_CONNECTED of int8 and uint8, against LiteRT bit for bit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from tests.support.case import Array, Case
from tests.support.quantized import per_channel, per_tensor, quantized, quantized_input, whole_range
from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import (
    Activation,
    Conv2DAttributes,
    DepthwiseConv2DAttributes,
    FullyConnectedAttributes,
    TransposeConvAttributes,
)
from tflite_vk.ir.graph import Quantization
from tflite_vk.testing.model_writer import ModelWriter

INT8, UINT8 = DType.INT8, DType.UINT8


@dataclass(frozen=True)
class Conv:
    """Builds a model of one convolution.

    Attributes:
        x, weights: shapes; a depthwise filter has 1 in front.
        dtype: of input, filter and output.
        per_channel: a scale for each output channel (int8 only).
        output_scale: chosen by the size of the sums where 0.
        bias: largest magnitude of the bias; None for no bias.
    """

    x: tuple[int, int, int, int]
    weights: tuple[int, int, int, int]
    dtype: DType = INT8
    padding: Literal["SAME", "VALID"] = "SAME"
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    activation: Activation = "NONE"
    per_channel: bool = False
    depthwise: bool = False
    input_scale: float = 0.05
    weight_scale: float = 0.02
    output_scale: float = 0.0
    bias: int | None = 3000

    def filter(self, rng: np.random.Generator) -> Array:
        return whole_range(rng, self.weights, self.dtype)

    def size(self, axis: int) -> int:
        extent = (self.weights[axis] - 1) * self.dilation[axis - 1] + 1
        stride, size = self.stride[axis - 1], self.x[axis]
        return -(-size // stride) if self.padding == "SAME" else (size - extent) // stride + 1

    def __call__(self, w: ModelWriter) -> None:
        rng = np.random.default_rng(11)
        axis = 3 if self.depthwise else 0
        outputs = self.weights[axis]
        taps = self.weights[1] * self.weights[2] * (1 if self.depthwise else self.weights[3])
        x = quantized_input(w, self.x, self.dtype, (self.input_scale, 100))
        scale = self.weight_scale
        quantization = per_tensor(self.dtype, (scale, 128 if self.dtype is INT8 else 120))
        if self.per_channel:
            quantization = per_channel(rng.uniform(0.2 * scale, scale, outputs), axis)
        inputs = [x, w.const(self.filter(rng), quantization=quantization)]
        if self.bias is not None:
            bias = rng.integers(-self.bias, self.bias + 1, outputs).astype(np.int32)
            product = per_tensor(DType.INT16, (self.input_scale * scale, 0))
            inputs.append(w.const(bias, quantization=product))
        output_scale = self.output_scale or self.input_scale * scale * 74 * np.sqrt(taps)
        shape = (self.x[0], self.size(1), self.size(2), outputs)
        kind = DepthwiseConv2DAttributes if self.depthwise else Conv2DAttributes
        attributes = kind(
            fused_activation_function=self.activation,
            padding=self.padding,
            stride_h=self.stride[0],
            stride_w=self.stride[1],
            dilation_h_factor=self.dilation[0],
            dilation_w_factor=self.dilation[1],
        )
        if isinstance(attributes, DepthwiseConv2DAttributes):
            attributes = DepthwiseConv2DAttributes(
                **{**vars(attributes), "depth_multiplier": outputs // self.x[3]}
            )
        op = "DEPTHWISE_CONV_2D" if self.depthwise else "CONV_2D"
        out = quantized(shape, self.dtype, (float(output_scale), 110))
        w.output(w.op(op, inputs, [out], attributes))


@dataclass(frozen=True)
class Extreme(Conv):
    """F4: the largest sums there are: all weights and all inputs at their lowest."""

    def filter(self, rng: np.random.Generator) -> Array:
        del rng
        return np.full(self.weights, np.iinfo(self.dtype.numpy).min, self.dtype.numpy)


_CONVS = {
    "3x3": Conv((1, 5, 7, 3), (5, 3, 3, 3)),
    "valid_stride_2": Conv((2, 8, 9, 8), (13, 3, 3, 8), padding="VALID", stride=(2, 2)),
    "pointwise": Conv((1, 7, 6, 37), (36, 1, 1, 37)),
    "one_pixel": Conv((1, 1, 1, 4), (2, 1, 1, 4)),
    "wide": Conv((1, 10, 9, 32), (113, 1, 1, 32)),
    "one_channel": Conv((3, 9, 8, 1), (7, 5, 2, 1)),
    "asymmetric_stride": Conv((1, 9, 10, 5), (6, 3, 3, 5), stride=(2, 1)),
    "asymmetric_dilation": Conv((1, 9, 9, 5), (6, 3, 3, 5), dilation=(2, 1)),
    "no_bias": Conv((1, 6, 5, 3), (8, 3, 3, 3), bias=None),
}
_DEPTHWISE = {
    "3x3": Conv((1, 5, 7, 3), (1, 3, 3, 3), depthwise=True),
    "valid_stride_2": Conv(
        (2, 8, 9, 8), (1, 3, 3, 16), padding="VALID", stride=(2, 2), depthwise=True
    ),
    "dilation_2": Conv((1, 7, 6, 37), (1, 3, 5, 37), dilation=(2, 2), depthwise=True),
    "C1_one_channel_multiplier_6": Conv((1, 8, 8, 1), (1, 3, 3, 6), depthwise=True),
    "large": Conv((1, 13, 13, 36), (1, 3, 3, 36), stride=(2, 2), depthwise=True),
    "wide_kernel": Conv((1, 6, 40, 5), (1, 2, 31, 5), depthwise=True),
}


def _variants(name: str, conv: Conv) -> list[Case]:
    op = "DEPTHWISE_CONV_2D" if conv.depthwise else "CONV_2D"
    cases = [
        Case(f"quantized_{op}_INT8_{name}", conv, exact=True),
        Case(
            f"F2_{op}_per_channel_{name}", Conv(**{**vars(conv), "per_channel": True}), exact=True
        ),
        Case(f"F1_{op}_UINT8_{name}", Conv(**{**vars(conv), "dtype": UINT8}), exact=True),
    ]
    # LiteRT refuses a convolution without a bias.
    return cases if conv.bias is not None else []


CASES = [case for name, conv in _CONVS.items() for case in _variants(name, conv)]
CASES += [case for name, conv in _DEPTHWISE.items() for case in _variants(name, conv)]
CASES += [
    Case(
        f"quantized_CONV_2D_{dtype.name}_{activation}",
        Conv((1, 6, 6, 8), (9, 3, 3, 8), dtype, activation=activation, output_scale=0.06),
        exact=True,
    )
    for dtype in (INT8, UINT8)
    for activation in ("RELU", "RELU6", "RELU_N1_TO_1")
]
CASES += [
    Case("quantized_CONV_2D_two_groups_of_3", Conv((1, 8, 8, 6), (4, 3, 3, 3)), exact=True),
    Case("quantized_CONV_2D_four_groups_of_4", Conv((1, 8, 8, 16), (24, 3, 3, 4)), exact=True),
    # A factor of 1/4 or 1/8 makes ties; TFLite's two roundings turn 0.25 into 1.
    Case(
        "F4_CONV_2D_ties",
        Conv((1, 9, 9, 5), (8, 1, 1, 5), input_scale=0.5, weight_scale=0.5, output_scale=64.0),
        exact=True,
    ),
    Case("F4_CONV_2D_large_K", Conv((1, 4, 4, 512), (7, 3, 3, 512), per_channel=True), exact=True),
    Case(
        "F4_CONV_2D_factor_above_1",
        Conv(
            (1, 6, 6, 3), (5, 1, 1, 3), input_scale=0.9, weight_scale=0.9, output_scale=0.3, bias=9
        ),
        inputs=lambda rng: {0: rng.integers(-29, -26, (1, 6, 6, 3)).astype(np.int8)},
        exact=True,
    ),
    Case(
        "F4_CONV_2D_tiny_factor",
        Conv((1, 6, 6, 3), (5, 3, 3, 3), bias=2**31 - 1, output_scale=2.0e6 / 128),
        exact=True,
    ),
]
CASES += [
    Case(
        f"F4_CONV_2D_{dtype.name}_extreme_sums",
        Extreme((1, 3, 3, 512), (5, 3, 3, 512), dtype, output_scale=700.0, bias=2**31 - 1),
        inputs=lambda rng, d=dtype: {0: np.full((1, 3, 3, 512), np.iinfo(d.numpy).min, d.numpy)},
        exact=True,
    )
    for dtype in (INT8, UINT8)
]


@dataclass(frozen=True)
class Dense:
    """Builds a model of one FULLY_CONNECTED."""

    x: tuple[int, ...]
    weights: tuple[int, int]
    dtype: DType = INT8
    per_channel: bool = False
    keep: bool = False
    activation: Activation = "NONE"
    input_scale: float = 0.05
    weight_scale: float = 0.02
    output_scale: float = 0.0
    bias: int | None = 3000
    weight_zero: int = 120

    def __call__(self, w: ModelWriter) -> None:
        rng = np.random.default_rng(12)
        outputs, inputs = self.weights
        x = quantized_input(w, self.x, self.dtype, (self.input_scale, 100))
        quantization = per_tensor(self.dtype, (self.weight_scale, self.weight_zero))
        if self.per_channel:
            scales = rng.uniform(0.2 * self.weight_scale, self.weight_scale, outputs)
            quantization = per_channel(scales, 0)
        matrix = w.const(whole_range(rng, self.weights, self.dtype), quantization=quantization)
        bias = None
        if self.bias is not None:
            values = rng.integers(-self.bias, self.bias + 1, outputs).astype(np.int32)
            product = per_tensor(DType.INT16, (self.input_scale * self.weight_scale, 0))
            bias = w.const(values, quantization=product)
        shape = (*self.x[:-1], outputs) if self.keep else (int(np.prod(self.x)) // inputs, outputs)
        scale = self.output_scale or self.input_scale * self.weight_scale * 74 * np.sqrt(inputs)
        attributes = FullyConnectedAttributes(
            fused_activation_function=self.activation, keep_num_dims=self.keep
        )
        out = quantized(shape, self.dtype, (float(scale), 110))
        w.output(w.op("FULLY_CONNECTED", [x, matrix, bias], [out], attributes))


_DENSE = {
    "1x7x5": Dense((1, 7), (5, 7)),
    "2x64x10": Dense((2, 64), (10, 64)),
    "37x130x7": Dense((37, 130), (7, 130)),
    "1x4096x13": Dense((1, 4096), (13, 4096), weight_zero=127),
    "C16_flatten": Dense((1, 4, 4, 3), (5, 48)),
    "C16_keep": Dense((2, 3, 48), (9, 48), keep=True),
    "no_bias": Dense((3, 10), (4, 10), bias=None),
    # Scales that are powers of two make ties, which TFLite's FULLY_CONNECTED rounds as doubles.
    "F4_ties": Dense((9, 40), (8, 40), input_scale=0.5, weight_scale=0.25, output_scale=32.0),
}
for _name, _dense in _DENSE.items():
    CASES += [
        Case(f"quantized_FULLY_CONNECTED_INT8_{_name}", _dense, exact=True),
        Case(
            f"F2_FULLY_CONNECTED_per_channel_{_name}",
            Dense(**{**vars(_dense), "per_channel": True}),
            exact=True,
        ),
        Case(
            f"F1_FULLY_CONNECTED_UINT8_{_name}",
            Dense(**{**vars(_dense), "dtype": UINT8}),
            exact=True,
        ),
    ]
CASES += [
    Case(
        "quantized_FULLY_CONNECTED_relu6",
        Dense((9, 30), (9, 30), activation="RELU6", output_scale=0.06),
        exact=True,
    ),
    Case(
        "F4_FULLY_CONNECTED_factor_above_1",
        Dense((5, 9), (8, 9), input_scale=0.9, weight_zero=128, output_scale=0.0123, bias=5),
        inputs=lambda rng: {0: rng.integers(-29, -26, (5, 9)).astype(np.int8)},
        exact=True,
    ),
]


def _transpose(
    dtype: DType,
    x: tuple[int, int, int, int],
    weights: tuple[int, int, int, int],
    size: tuple[int, int],
    stride: tuple[int, int],
    padding: Literal["SAME", "VALID"],
    *,
    per_channel: bool = False,
    activation: Activation = "NONE",
) -> Case:
    def build(w: ModelWriter) -> None:
        rng = np.random.default_rng(14)
        outputs, kh, kw, channels = weights
        shape = (x[0], *size, outputs)
        quantization = per_tensor(dtype, (0.02, 128 if dtype is INT8 else 120))
        if per_channel:
            quantization = per_channel_scales(rng, outputs)
        taps = kh * kw * channels / (stride[0] * stride[1])
        inputs = [
            w.const(np.array(shape, np.int32)),
            w.const(whole_range(rng, weights, dtype), quantization=quantization),
            quantized_input(w, x, dtype, (0.05, 100)),
            w.const(
                rng.integers(-3000, 3000, outputs).astype(np.int32),
                quantization=per_tensor(DType.INT16, (0.05 * 0.02, 0)),
            ),
        ]
        out = quantized(shape, dtype, (0.05 * 0.02 * 74 * float(np.sqrt(taps)), 110))
        attributes = TransposeConvAttributes(activation, padding, stride[1], stride[0])
        w.output(w.op("TRANSPOSE_CONV", inputs, [out], attributes, version=4))

    label = "_".join("x".join(map(str, s)) for s in (x, weights, size, stride))
    kind = "per_channel" if per_channel else dtype.name
    return Case(f"F2_TRANSPOSE_CONV_{kind}_{label}_{padding}_{activation}", build, exact=True)


def per_channel_scales(rng: np.random.Generator, channels: int) -> Quantization:
    """Scales of a filter whose outputs come first."""
    return per_channel(rng.uniform(0.004, 0.02, channels), 0)


CASES += [
    _transpose(dtype, x, weights, size, stride, padding, per_channel=kind == 1)
    for dtype in (INT8, UINT8)
    for kind in (0, 1)
    if dtype is INT8 or kind == 0
    for x, weights, size, stride, padding in (
        ((1, 4, 5, 3), (5, 3, 3, 3), (8, 10), (2, 2), "SAME"),
        ((2, 3, 4, 8), (6, 2, 2, 8), (6, 8), (2, 2), "VALID"),
        ((1, 5, 5, 6), (4, 3, 3, 6), (5, 5), (1, 1), "SAME"),
        ((1, 3, 4, 7), (3, 5, 4, 7), (11, 10), (3, 2), "VALID"),
    )
]
CASES += [
    _transpose(INT8, (1, 4, 4, 5), (8, 3, 3, 5), (8, 8), (2, 2), "SAME", activation="RELU"),
]
