"""Models of one integer product: convolutions and FULLY_CONNECTED of every mix of types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from tests.support.case import Array
from tests.support.quantized import per_channel, quantized, quantized_input
from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import (
    Activation,
    Attributes,
    Conv2DAttributes,
    DepthwiseConv2DAttributes,
    FullyConnectedAttributes,
    Padding,
    TransposeConvAttributes,
)
from tflite_vk.ir.graph import Quantization
from tflite_vk.testing.model_writer import ModelWriter

Op = Literal["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV"]

RANGES = {DType.INT8: (-128, 127), DType.INT4: (-8, 7)}


@dataclass(frozen=True)
class Product:
    """Builds a model of one product with a constant filter.

    Attributes:
        op: the operator.
        x: shape of the input.
        weights: shape of the filter; a depthwise one has 1 in front.
        dtype: of input and output.
        filter_dtype: of the filter.
        bias_dtype: of the bias; None for none.
        stride, dilation: along height and width.
        padding, activation: of the operator.
        per_channel: a scale for each output channel.
        input_scale, weight_scale: of the types' steps.
        output_scale: chosen by the size of the sums where 0.
        bias: largest magnitude of the bias.
        lowest: every weight is the lowest there is.
        keep: keep_num_dims.
    """

    op: Op
    x: tuple[int, ...]
    weights: tuple[int, ...]
    dtype: DType = DType.INT16
    filter_dtype: DType = DType.INT8
    bias_dtype: DType | None = DType.INT64
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    padding: Padding = "SAME"
    activation: Activation = "NONE"
    per_channel: bool = False
    input_scale: float = 3.1e-5
    weight_scale: float = 0.02
    output_scale: float = 0.0
    bias: int = 1 << 20
    lowest: bool = False
    keep: bool = False

    @property
    def channels(self) -> int:
        """Output channels."""
        return self.weights[3 if self.op == "DEPTHWISE_CONV_2D" else 0]

    @property
    def terms(self) -> int:
        """Products in a sum."""
        return int(np.prod(self.weights)) // self.channels

    def filter(self, rng: np.random.Generator) -> Array:
        """Weights of the whole range."""
        low, high = RANGES[self.filter_dtype]
        values = rng.integers(low, high + 1, self.weights).astype(np.int8)
        if self.lowest:
            values[:] = low
        values.reshape(-1)[:2] = low, high
        return values

    def _size(self, i: int) -> int:
        size, stride = self.x[1 + i], self.stride[i]
        extent = (self.weights[1 + i] - 1) * self.dilation[i] + 1
        if self.op == "TRANSPOSE_CONV":
            return size * stride if self.padding == "SAME" else (size - 1) * stride + extent
        return -(-size // stride) if self.padding == "SAME" else (size - extent) // stride + 1

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the output."""
        if self.op == "FULLY_CONNECTED":
            rows = int(np.prod(self.x)) // self.weights[1]
            return (*self.x[:-1], self.channels) if self.keep else (rows, self.channels)
        return (self.x[0], self._size(0), self._size(1), self.channels)

    def _attributes(self) -> Attributes:
        kind = DType.INT32 if self.bias_dtype is DType.INT32 else DType.FLOAT32
        if self.op == "FULLY_CONNECTED":
            return FullyConnectedAttributes(
                self.activation, keep_num_dims=self.keep, quantized_bias_type=kind
            )
        (sh, sw), (dh, dw) = self.stride, self.dilation
        if self.op == "TRANSPOSE_CONV":
            return TransposeConvAttributes(
                self.activation, self.padding, sw, sh, quantized_bias_type=kind
            )
        if self.op == "CONV_2D":
            return Conv2DAttributes(
                self.activation, self.padding, sw, sh, dw, dh, quantized_bias_type=kind
            )
        multiplier = self.channels // self.x[3]
        return DepthwiseConv2DAttributes(
            self.activation, self.padding, sw, sh, dw, dh, depth_multiplier=multiplier
        )

    def __call__(self, w: ModelWriter) -> None:
        rng = np.random.default_rng(self.terms)
        scales = np.float32([self.weight_scale])
        quantization = Quantization((float(scales[0]),), (0,))
        if self.per_channel:
            axis = 3 if self.op == "DEPTHWISE_CONV_2D" else 0
            scales = (scales * rng.uniform(0.2, 1, self.channels)).astype(np.float32)
            quantization = per_channel(scales, axis)
        x = quantized_input(w, self.x, self.dtype, (self.input_scale, 100))
        matrix = w.const(self.filter(rng), dtype=self.filter_dtype, quantization=quantization)
        inputs: list[int | None] = [x, matrix]
        if self.op == "TRANSPOSE_CONV":
            inputs = [w.const(np.array(self.shape, np.int32)), matrix, x]
        if self.bias_dtype is not None:
            values = rng.integers(-self.bias, self.bias + 1, self.channels)
            products = np.float32(self.input_scale) * scales
            q = Quantization(tuple(map(float, products)), (0,) * len(products))
            inputs.append(w.const(values.astype(self.bias_dtype.numpy), quantization=q))
        elif self.op != "TRANSPOSE_CONV":
            inputs.append(None)
        # Four times the root of the mean of squares of uniform values, over the output's range.
        steps = (RANGES[self.filter_dtype][1] * np.iinfo(self.dtype.numpy).max) / 3
        sums = self.input_scale * self.weight_scale * steps * float(np.sqrt(self.terms))
        scale = self.output_scale or 4 * sums / np.iinfo(self.dtype.numpy).max
        out = quantized(self.shape, self.dtype, (scale, 110))
        w.output(w.op(self.op, inputs, [out], self._attributes(), version=_VERSIONS[self.op]))


# LiteRT's reference resolver has DEPTHWISE_CONV_2D up to 6, though its kernel takes what 7 adds (INT4).
_VERSIONS = {"CONV_2D": 8, "DEPTHWISE_CONV_2D": 6, "FULLY_CONNECTED": 11, "TRANSPOSE_CONV": 5}
