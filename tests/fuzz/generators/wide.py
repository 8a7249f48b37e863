"""int16 values with scales: "16x8" products, functions, and the ways in and out of them."""

from __future__ import annotations

import numpy as np

from tests.fuzz.builder import Builder, Value
from tests.fuzz.eager import RefusedError, Result
from tests.fuzz.generators import generator
from tests.fuzz.generators.convolution import CHANNELS, padding, window
from tests.fuzz.generators.elementwise import ACTIVATIONS, smaller
from tests.fuzz.generators.moving import ints
from tests.fuzz.generators.quantized import (
    QUANTIZED,
    filters,
    partner,
    pool,
    reach,
    result,
    step,
    typical_sum,
)
from tests.fuzz.generators.reduction import axes_of
from tests.support.case import Array
from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import (
    Attributes,
    BatchMatMulAttributes,
    BinaryAttributes,
    Conv2DAttributes,
    DepthwiseConv2DAttributes,
    FullyConnectedAttributes,
    GeluAttributes,
    LeakyReluAttributes,
    NoAttributes,
    ReducerAttributes,
    SoftmaxAttributes,
    TransposeConvAttributes,
)
from tflite_vk.ir.graph import Quantization

_STANDARD = Result(DType.INT16, Quantization((1 / 32768,), (0,)))


def _biases(g: Builder, sums: Array, channels: int) -> tuple[Value, DType]:
    """Biases of either type, and what quantized_bias_type says."""
    q = Quantization(tuple(map(float, sums)), (0,) * len(sums))
    values = g.rng.integers(-(1 << 20), 1 << 20, channels)
    if g.chance(0.3):
        return g.const(values.astype(np.int32), q), DType.INT32
    return g.const(values, q), DType.FLOAT32


def _image(g: Builder) -> Value:
    x = g.int16(4, lambda v: v.array.size > 0)
    if max(x.shape) > 100:
        raise RefusedError("a very long image")
    return x


@generator(2, QUANTIZED)
def widen(g: Builder) -> None:
    x = g.quantized()
    q = g.scale(DType.INT16, reach(x))
    g.apply("QUANTIZE", [x], out=Result(DType.INT16, q), version=2)


@generator(1, QUANTIZED)
def narrow(g: Builder) -> None:
    x = g.int16()
    dtype = g.choice((DType.INT8, DType.INT16))
    g.apply("QUANTIZE", [x], out=Result(dtype, g.scale(dtype, reach(x))), version=2)


@generator(2, QUANTIZED)
def wide_conv_2d(g: Builder) -> None:
    x = _image(g)
    pad = padding(g)
    k, s, d = window(g, x, pad)
    out = g.choice(CHANNELS)
    if k[0] * k[1] * out * x.array.size > 1_000_000:
        raise RefusedError("too much work")
    w, sums = filters(g, x, (out, k[0], k[1], x.shape[3]), 0)
    b, kind = _biases(g, sums, out)
    a = Conv2DAttributes(g.choice(ACTIVATIONS), pad, s[1], s[0], d[1], d[0], kind)
    y = result(g, x, typical_sum(g, x, w, sums, k[0] * k[1] * x.shape[3]))
    g.apply("CONV_2D", [x, w, b], a, out=y, version=8)


@generator(1.5, QUANTIZED)
def wide_depthwise(g: Builder) -> None:
    x = _image(g)
    pad = padding(g)
    k, s, d = window(g, x, pad)
    multiplier = g.choice((1, 1, 1, 2, 3))
    out = x.shape[3] * multiplier
    w, sums = filters(g, x, (1, k[0], k[1], out), 3)
    stride = min(s)
    a = DepthwiseConv2DAttributes(
        g.choice(ACTIVATIONS), pad, stride, stride, d[1], d[0], depth_multiplier=multiplier
    )
    q = Quantization(tuple(map(float, sums)), (0,) * len(sums))
    b = g.const(g.rng.integers(-(1 << 20), 1 << 20, out), q)
    y = result(g, x, typical_sum(g, x, w, sums, k[0] * k[1]))
    g.apply("DEPTHWISE_CONV_2D", [x, w, b], a, out=y, version=5)


@generator(2, QUANTIZED)
def wide_fully_connected(g: Builder) -> None:
    x = g.int16((1, 2, 3, 4), lambda v: v.array.size > 0)
    depth, out = x.shape[-1], g.choice(CHANNELS)
    if depth > 500:
        raise RefusedError("a very long row")
    w, sums = filters(g, x, (out, depth), 0)
    b, kind = _biases(g, sums, out) if g.chance(0.8) else (None, DType.FLOAT32)
    keep = g.chance(0.4)
    a = FullyConnectedAttributes(
        g.choice(ACTIVATIONS), keep_num_dims=keep, quantized_bias_type=kind
    )
    y = result(g, x, typical_sum(g, x, w, sums, depth))
    g.apply("FULLY_CONNECTED", [x, w, b], a, out=y, version=11)


@generator(1, QUANTIZED)
def wide_transpose_conv(g: Builder) -> None:
    x = _image(g)
    k = [g.integer(1, 4) for _ in range(2)]
    s = [g.integer(1, 3) for _ in range(2)]
    pad = padding(g)
    out = g.choice(CHANNELS)
    size = [
        n * stride if pad == "SAME" else (n - 1) * stride + width
        for n, stride, width in zip(x.shape[1:3], s, k, strict=True)
    ]
    shape = (x.shape[0], *size, out)
    if int(np.prod(shape)) > 6000:
        raise RefusedError("too much")
    w, sums = filters(g, x, (out, *k, x.shape[3]), 0)
    b, kind = _biases(g, sums, out)
    a = TransposeConvAttributes("NONE", pad, s[1], s[0], kind)
    y = result(g, x, typical_sum(g, x, w, sums, k[0] * k[1] * x.shape[3]))
    g.apply("TRANSPOSE_CONV", [ints(*shape), w, x, b], a, out=y, version=5)


@generator(1, QUANTIZED)
def wide_batch_matmul(g: Builder) -> None:
    x = g.int16((2, 3, 4), lambda v: v.array.size > 0)
    adj_x, adj_y = g.chance(0.3), g.chance(0.3)
    depth = x.shape[-2] if adj_x else x.shape[-1]
    columns = g.choice(CHANNELS)
    batch = tuple(1 if g.chance(0.3) else n for n in x.shape[:-2])
    shape = (*batch, columns, depth) if adj_y else (*batch, depth, columns)
    if g.chance(0.3):
        values = np.asarray(g.rng.integers(-128, 128, shape), np.int8)
        q = Quantization(g.scale(DType.INT8).scale, (0,))
    else:
        values = np.asarray(g.rng.integers(-(1 << 15), 1 << 15, shape), np.int16)
        q = g.scale(DType.INT16)
    other = g.input(values, q) if g.chance(0.3) else g.const(values, q)
    typical = reach(x) * reach(other) / 3 * float(np.sqrt(depth)) * 2.0 ** g.rng.uniform(-1, 2)
    attributes = BatchMatMulAttributes(adj_x, adj_y)
    g.apply("BATCH_MATMUL", [x, other], attributes, out=result(g, x, typical), version=4)


@generator(2, QUANTIZED)
def wide_binary(g: Builder) -> None:
    x = g.int16(range(5))
    y = partner(g, x)
    a, b = (x, y) if g.chance(0.5) else (y, x)
    op = g.choice(("ADD", "SUB", "MUL"))
    typical = reach(a) * reach(b) if op == "MUL" else reach(a) + reach(b)
    attributes = BinaryAttributes(g.choice(ACTIVATIONS), pot_scale_int16=False)
    out = result(g, x, typical * g.choice((0.4, 1.0)))
    g.apply(op, [a, b], attributes, out=out, version=2)


@generator(2, QUANTIZED)
def wide_table(g: Builder) -> None:
    """Functions of one value."""
    x = g.int16()
    op = g.choice(("ABS", "GELU", "LEAKY_RELU", "LOGISTIC", "NEG", "RELU", "RELU6", "TANH"))
    attributes: Attributes | None = None
    out = _STANDARD if op in ("LOGISTIC", "TANH") else result(g, x, reach(x))
    if op == "LEAKY_RELU":
        attributes = LeakyReluAttributes(alpha=g.choice((0.1, 0.25, -0.3)))
    elif op == "GELU":
        attributes = GeluAttributes(approximate=g.chance(0.5))
    version = {"LEAKY_RELU": 2, "NEG": 1}.get(op, 3)
    g.apply(op, [x], attributes or NoAttributes(), out=out, version=version)


@generator(0.7, QUANTIZED)
def wide_prelu(g: Builder) -> None:
    x = g.int16((1, 2, 3, 4))
    values = np.asarray(g.rng.integers(-128, 128, smaller(g, x.shape)), np.int8)
    alpha = g.const(values, Quantization(g.scale(DType.INT8).scale, (0,)))
    g.apply("PRELU", [x, alpha], out=result(g, x, reach(x)))


@generator(1, QUANTIZED)
def wide_softmax(g: Builder) -> None:
    x = g.int16((1, 2, 3, 4), lambda v: v.array.size > 0)
    beta = g.choice((1.0, 1.0, 0.5, 2.0))
    g.apply("SOFTMAX", [x], SoftmaxAttributes(beta=beta), out=_STANDARD, version=3)


@generator(0.7, QUANTIZED)
def wide_pool(g: Builder) -> None:
    pool(g, _image(g), 3)


@generator(0.7, QUANTIZED)
def wide_mean(g: Builder) -> None:
    x = g.int16((1, 2, 3, 4), lambda v: v.array.size > 0)
    out = x.result if g.chance(0.3) else result(g, x, reach(x))
    axes = ints(*axes_of(g, x.rank))
    g.apply("MEAN", [x, axes], ReducerAttributes(g.chance(0.5)), out=out, version=3)


@generator(0.5, QUANTIZED)
def wide_dequantize(g: Builder) -> None:
    x = g.int16()
    y = g.apply("DEQUANTIZE", [x], version=3)
    if g.chance(0.7):
        q = g.scale(DType.INT16, step(x) * 20000)
        g.apply("QUANTIZE", [y], out=Result(DType.INT16, q), version=2)
