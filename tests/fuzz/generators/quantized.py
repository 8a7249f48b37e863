"""8-bit integers with scales: every value is exact, so every bit has to agree."""

from __future__ import annotations

import numpy as np

from tests.fuzz.builder import MAX_ELEMENTS, Builder, Value
from tests.fuzz.eager import RefusedError, Result
from tests.fuzz.generators import generator
from tests.fuzz.generators.convolution import CHANNELS, padding, window
from tests.fuzz.generators.elementwise import ACTIVATIONS, smaller
from tests.fuzz.generators.moving import ints
from tests.fuzz.generators.reduction import axes_of
from tests.support.case import Array
from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import (
    ArgAttributes,
    BatchMatMulAttributes,
    BinaryAttributes,
    Conv2DAttributes,
    DepthwiseConv2DAttributes,
    FullyConnectedAttributes,
    GeluAttributes,
    LeakyReluAttributes,
    NoAttributes,
    Pool2DAttributes,
    ReducerAttributes,
    ResizeAttributes,
    SoftmaxAttributes,
    TransposeConvAttributes,
)
from tflite_vk.ir.graph import Quantization

QUANTIZED = "quantized"


def step(x: Value) -> float:
    """Its scale."""
    assert x.quantization is not None
    return x.quantization.scale[0]


def reach(x: Value) -> float:
    """The largest real magnitude its type can hold."""
    assert x.quantization is not None
    zero = x.quantization.zero_point[0]
    info = np.iinfo(x.array.dtype)
    return step(x) * max(info.max - zero, zero - info.min)


def result(g: Builder, x: Value, typical: float) -> Result:
    """An output of x's type with a scale for values of a size."""
    dtype = x.result.dtype
    return Result(dtype, g.scale(dtype, max(typical, 1e-3)))


def image(g: Builder) -> Value:
    x = g.quantized(4, lambda v: v.array.size > 0)
    if max(x.shape) > 200:
        raise RefusedError("a very long image")
    return x


def filters(g: Builder, x: Value, shape: tuple[int, ...], axis: int) -> tuple[Value, Array]:
    """Weights, and the scale of the sums of each output channel."""
    scale = np.float32(2.0 ** g.rng.uniform(-8, -4))
    if x.array.dtype == np.uint8:
        values = g.rng.integers(0, 256, shape).astype(np.uint8)
        q = Quantization((float(scale),), (g.integer(90, 165),))
        return g.const(values, q), np.float32([step(x)]) * scale
    # LiteRT's reference kernel for depthwise filters of int16 takes packed int4 for bytes.
    is_int4 = g.chance(0.2) and (axis == 0 or x.array.dtype == np.int8)
    most = 7 if is_int4 else 127
    dtype = DType.INT4 if is_int4 else None
    values = g.rng.integers(-most, most + 1, shape).astype(np.int8)
    scale *= np.float32(127 / most)
    if g.chance(0.6):
        scales = (scale * g.rng.uniform(0.3, 2, shape[axis])).astype(np.float32)
        q = Quantization(tuple(map(float, scales)), (0,) * len(scales), axis)
        return g.const(values, q, dtype), np.float32(step(x)) * scales
    q = Quantization((float(scale),), (0,))
    return g.const(values, q, dtype), np.float32([step(x)]) * scale


def biases(g: Builder, sums: Array, channels: int) -> Value:
    """int32 in the scale of the sums."""
    q = Quantization(tuple(map(float, sums)), (0,) * len(sums))
    return g.const(g.rng.integers(-3000, 3000, channels).astype(np.int32), q)


def typical_sum(g: Builder, x: Value, w: Value, sums: Array, terms: int) -> float:
    """How large results are, so that some saturate and most do not."""
    halves = np.iinfo(x.array.dtype).max / 2 * (3.5 if w.dtype is DType.INT4 else 64)
    return float(sums.mean()) * halves * float(np.sqrt(terms)) * 2.0 ** g.rng.uniform(-1, 2)


@generator(4, QUANTIZED)
def quantized_conv_2d(g: Builder) -> None:
    x = image(g)
    pad = padding(g)
    k, s, d = window(g, x, pad)
    out = g.choice(CHANNELS)
    channels = x.shape[3]
    if k[0] * k[1] * out * x.array.size > 3_000_000:
        raise RefusedError("too much work")
    w, sums = filters(g, x, (out, k[0], k[1], channels), 0)
    terms = k[0] * k[1] * channels
    a = Conv2DAttributes(g.choice(ACTIVATIONS), pad, s[1], s[0], d[1], d[0])
    y = result(g, x, typical_sum(g, x, w, sums, terms))
    g.apply("CONV_2D", [x, w, biases(g, sums, out)], a, out=y, version=3)


@generator(3, QUANTIZED)
def quantized_depthwise(g: Builder) -> None:
    x = image(g)
    pad = padding(g)
    k, s, d = window(g, x, pad)
    multiplier = g.choice((1, 1, 1, 2, 3))
    out = x.shape[3] * multiplier
    w, sums = filters(g, x, (1, k[0], k[1], out), 3)
    stride = min(s)
    a = DepthwiseConv2DAttributes(
        g.choice(ACTIVATIONS), pad, stride, stride, d[1], d[0], depth_multiplier=multiplier
    )
    y = result(g, x, typical_sum(g, x, w, sums, k[0] * k[1]))
    g.apply("DEPTHWISE_CONV_2D", [x, w, biases(g, sums, out)], a, out=y, version=3)


@generator(3, QUANTIZED)
def quantized_fully_connected(g: Builder) -> None:
    x = g.quantized((1, 2, 3, 4), lambda v: v.array.size > 0)
    depth = x.shape[-1]
    if depth > 500:
        raise RefusedError("a very long row")
    out = g.choice(CHANNELS)
    w, sums = filters(g, x, (out, depth), 0)
    keep = g.chance(0.4)
    a = FullyConnectedAttributes(g.choice(ACTIVATIONS), keep_num_dims=keep)
    b = biases(g, sums, out) if g.chance(0.8) else None
    y = result(g, x, typical_sum(g, x, w, sums, depth))
    version = 12 if len(sums) > 1 else 5
    g.apply("FULLY_CONNECTED", [x, w, b], a, out=y, version=version)


@generator(1, QUANTIZED)
def quantized_transpose_conv(g: Builder) -> None:
    x = image(g)
    k = [g.integer(1, 4) for _ in range(2)]
    s = [g.integer(1, 3) for _ in range(2)]
    pad = padding(g)
    out = g.choice(CHANNELS)
    size = [
        n * stride if pad == "SAME" else (n - 1) * stride + width
        for n, stride, width in zip(x.shape[1:3], s, k, strict=True)
    ]
    shape = (x.shape[0], *size, out)
    if int(np.prod(shape)) > 2 * MAX_ELEMENTS:
        raise RefusedError("too much")
    w, sums = filters(g, x, (out, *k, x.shape[3]), 0)
    a = TransposeConvAttributes("NONE", pad, s[1], s[0])
    y = result(g, x, typical_sum(g, x, w, sums, k[0] * k[1] * x.shape[3]))
    inputs = [ints(*shape), w, x, *([biases(g, sums, out)] if g.chance(0.5) else [])]
    g.apply("TRANSPOSE_CONV", inputs, a, out=y, version=3)


@generator(1.5, QUANTIZED)
def quantized_batch_matmul(g: Builder) -> None:
    x = g.quantized((2, 3, 4), lambda v: v.array.size > 0 and v.array.dtype == np.int8)
    adj_x, adj_y = g.chance(0.3), g.chance(0.3)
    depth = x.shape[-2] if adj_x else x.shape[-1]
    columns = g.choice(CHANNELS)
    batch = tuple(1 if g.chance(0.3) else n for n in x.shape[:-2])
    shape = (*batch, columns, depth) if adj_y else (*batch, depth, columns)
    other = g.pick(lambda v: v.is_quantized and v.shape == shape and v.array.dtype == np.int8)
    if other is None:
        values = g.rng.integers(-128, 128, shape).astype(np.int8)
        q = g.scale(DType.INT8)
        other = g.input(values, q) if g.chance(0.3) else g.const(values, q)
    sums = np.float32([step(x) * step(other)])
    y = result(g, x, typical_sum(g, x, other, sums, depth))
    g.apply("BATCH_MATMUL", [x, other], BatchMatMulAttributes(adj_x, adj_y), out=y, version=2)


def partner(g: Builder, x: Value, rank: int = 4) -> Value:
    """A second operand of x's type that broadcasts with it."""
    if g.chance(0.1):
        return x

    def fits(v: Value) -> bool:
        if v.array.dtype != x.array.dtype or not v.is_quantized or v is x:
            return False
        if v.shape == x.shape:
            return True
        try:
            shape = np.broadcast_shapes(v.shape, x.shape)
        except ValueError:
            return False
        return len(shape) <= rank and int(np.prod(shape)) <= 2 * MAX_ELEMENTS

    found = g.pick(fits)
    if found is not None and g.chance(0.6):
        return found
    info = np.iinfo(x.array.dtype)
    shape = smaller(g, x.shape)
    values = np.asarray(g.rng.integers(info.min, info.max + 1, shape), x.array.dtype)
    return g.const(values, g.scale(x.result.dtype))


@generator(5, QUANTIZED)
def quantized_binary(g: Builder) -> None:
    x = g.quantized()
    y = partner(g, x)
    if x.shape != y.shape and max(x.rank, y.rank) > 4:
        raise RefusedError("the reference kernel broadcasts fewer dimensions")
    a, b = (x, y) if g.chance(0.5) else (y, x)
    op = g.choice(("ADD", "ADD", "SUB", "MUL", "MUL"))
    if op == "MUL":
        typical = reach(a) * reach(b) * g.choice((0.3, 1.0))
    else:
        typical = (reach(a) + reach(b)) * g.choice((0.4, 1.0))
    attributes = BinaryAttributes(g.choice(ACTIVATIONS))
    g.apply(op, [a, b], attributes, out=result(g, x, typical), version=2)


@generator(1, QUANTIZED)
def quantized_min_max(g: Builder) -> None:
    x = g.quantized(rank=range(5))
    y = g.like(x, smaller(g, x.shape))
    other = g.pick(lambda v: v.quantization == x.quantization and v.shape == x.shape and v is not x)
    a, b = (x, other or y) if g.chance(0.5) else (other or y, x)
    g.apply(g.choice(("MINIMUM", "MAXIMUM")), [a, b], out=x.result, version=2)


@generator(0.7, QUANTIZED)
def quantized_squared_difference(g: Builder) -> None:
    x = g.quantized(rank=range(5), accept=lambda v: v.array.dtype == np.int8)
    y = partner(g, x)
    typical = (reach(x) + reach(y)) ** 2 * 0.5
    g.apply("SQUARED_DIFFERENCE", [x, y], out=result(g, x, typical), version=2)


@generator(1, QUANTIZED)
def quantized_comparison(g: Builder) -> None:
    x = g.quantized(rank=range(5))
    y = partner(g, x)
    op = g.choice(("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"))
    if x.shape != y.shape and max(x.rank, y.rank) > 4:
        raise RefusedError("the reference kernel broadcasts fewer dimensions")
    g.apply(op, [x, y], out=DType.BOOL, version=2)


def pool(g: Builder, x: Value, version: int) -> None:
    """A pool of an image."""
    pad = padding(g)
    k = [g.integer(1, 5) for _ in range(2)]
    if pad == "VALID":
        k = [min(n, x.shape[1 + i]) for i, n in enumerate(k)]
    s = [min(g.integer(1, 3), n) for n in k]
    op = g.choice(("AVERAGE_POOL_2D", "MAX_POOL_2D"))
    a = Pool2DAttributes(g.choice(ACTIVATIONS), pad, s[1], s[0], k[1], k[0])
    g.apply(op, [x], a, out=x.result, version=version)


@generator(2, QUANTIZED)
def quantized_pool(g: Builder) -> None:
    pool(g, image(g), 2)


@generator(2, QUANTIZED)
def quantized_resize(g: Builder) -> None:
    x = image(g)
    size = ints(*(g.choice((1, 2, 3, 4, 5, 7, 8, 10, 13)) for _ in range(2)))
    a = ResizeAttributes(*g.choice(((False, False), (True, False), (False, True))))
    op = g.choice(("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"))
    g.apply(op, [x, size], a, out=x.result, version=3)


def fixed(x: Value, scale: float, zero: int) -> Result:
    """A scale that the operator prescribes; the zero point is that of int8."""
    moved = zero + (128 if x.array.dtype == np.uint8 else 0)
    return Result(x.result.dtype, Quantization((scale,), (moved,)))


@generator(2, QUANTIZED)
def quantized_softmax(g: Builder) -> None:
    x = g.quantized((1, 2, 3, 4), lambda v: v.array.size > 0)
    if x.shape[-1] > 500:
        raise RefusedError("LiteRT aborts where 512 values or more are about the same")
    beta = g.choice((1.0, 1.0, 0.5, 2.0))
    y = fixed(x, 1 / 256, -128)
    g.apply("SOFTMAX", [x], SoftmaxAttributes(beta=beta), out=y, version=2)


@generator(1, QUANTIZED)
def quantized_rows(g: Builder) -> None:
    """LOG_SOFTMAX and L2_NORMALIZATION."""
    x = g.quantized((1, 2, 3, 4), lambda v: v.array.size > 0)
    if x.shape[-1] > 500:
        raise RefusedError("a very long row")
    if g.chance(0.5):
        g.apply("LOG_SOFTMAX", [x], out=fixed(x, 1 / 16, 127), version=2)
    else:
        out = fixed(x, 1 / 128, 0)
        g.apply("L2_NORMALIZATION", [x], BinaryAttributes(), out=out, version=2)


@generator(3, QUANTIZED)
def quantized_table(g: Builder) -> None:
    """Functions of one value."""
    x = g.quantized()
    op = g.choice(("LOGISTIC", "TANH", "RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1",
                   "HARD_SWISH", "ELU", "LEAKY_RELU", "ABS", "GELU", "EXP", "NEG"))  # fmt: skip
    attributes = None
    out = result(g, x, reach(x))
    if op == "LOGISTIC":
        out = fixed(x, 1 / 256, -128)
    elif op == "TANH":
        out = fixed(x, 1 / 128, 0)
    elif op == "LEAKY_RELU":
        attributes = LeakyReluAttributes(alpha=g.choice((0.1, 0.25, -0.3)))
    elif op == "GELU":
        attributes = GeluAttributes(approximate=g.chance(0.5))
    elif op == "EXP":
        out = result(g, x, float(np.exp(min(reach(x), 5))))
    elif op in ("NEG", "RELU_0_TO_1") or g.chance(0.2):
        out = x.result
    g.apply(op, [x], attributes or NoAttributes(), out=out, version=2)


@generator(1, QUANTIZED)
def quantized_positive_table(g: Builder) -> None:
    """Functions of values that a zero point keeps from being negative."""
    array = g.rng.integers(-128, 128, g.shape(g.integer(0, 4))).astype(np.int8)
    x = g.input(array, Quantization((float(np.float32(g.rng.uniform(0.01, 0.1))),), (-128,)))
    op = g.choice(("SQRT", "RSQRT"))
    g.apply(op, [x], out=result(g, x, 3.0), version=2 if op == "RSQRT" else 1)


@generator(1, QUANTIZED)
def quantized_prelu(g: Builder) -> None:
    x = g.quantized((1, 2, 3, 4))
    alpha = g.like(x, smaller(g, x.shape))
    g.apply("PRELU", [x, alpha], out=result(g, x, reach(x)))


@generator(2, QUANTIZED)
def quantized_reduce(g: Builder) -> None:
    x = g.quantized((1, 2, 3, 4, 5), lambda v: v.array.size > 0)
    axes = axes_of(g, x.rank)
    op = g.choice(("MEAN", "MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN"))
    if op == "SUM" and x.array.dtype == np.int8:
        op = "MEAN"  # LiteRT 2.3.0 writes -1 for a SUM of int8
    terms = int(np.prod([x.shape[a] for a in axes]))
    typical = reach(x) * (float(np.sqrt(terms)) if op == "SUM" else 1.0)
    is_same = op.startswith("REDUCE") or g.chance(0.3)
    out = x.result if is_same else result(g, x, typical)
    g.apply(op, [x, ints(*axes)], ReducerAttributes(g.chance(0.5)), out=out, version=2)


@generator(2, QUANTIZED)
def requantize(g: Builder) -> None:
    x = g.quantized()
    dtype = g.choice((DType.INT8, DType.UINT8))
    out = Result(dtype, g.scale(dtype, reach(x)))
    g.apply("QUANTIZE", [x], out=out, version=2)


@generator(1, QUANTIZED)
def dequantize(g: Builder) -> None:
    x = g.quantized()
    y = g.apply("DEQUANTIZE", [x], version=2)
    if g.chance(0.5):
        dtype = g.choice((DType.INT8, DType.UINT8))
        g.apply("QUANTIZE", [y], out=Result(dtype, g.scale(dtype, reach(x))))


@generator(1, QUANTIZED)
def quantize(g: Builder) -> None:
    x = g.input(g.floats(g.shape(g.integer(0, 5)), exact=g.chance(0.3), scale=4.0))
    dtype = g.choice((DType.INT8, DType.UINT8))
    g.apply("QUANTIZE", [x], out=Result(dtype, g.scale(dtype, 4.0)))


@generator(1.5, QUANTIZED)
def quantized_concatenation(g: Builder) -> None:
    """Parts of other scales, which uint8 has."""
    x = g.quantized((1, 2, 3, 4), lambda v: v.array.dtype == np.uint8)
    axis = g.integer(0, x.rank - 1)
    shape = list(x.shape)
    shape[axis] = g.integer(1, 6)
    values = g.rng.integers(0, 256, shape).astype(np.uint8)
    other = g.const(values, g.scale(DType.UINT8))
    parts = [x, other] if g.chance(0.5) else [other, x]
    from tflite_vk.ir.attributes import ConcatenationAttributes

    out = result(g, x, max(reach(x), reach(other)))
    g.apply("CONCATENATION", parts, ConcatenationAttributes("NONE", axis), out=out)


@generator(0.7, QUANTIZED)
def quantized_arg_max(g: Builder) -> None:
    x = g.quantized((1, 2, 3, 4), lambda v: v.array.size > 0)
    axis = np.array(g.integer(-x.rank, x.rank - 1), np.int32)
    op = g.choice(("ARG_MAX", "ARG_MIN"))
    g.apply(op, [x, axis], ArgAttributes(DType.INT32), out=DType.INT32, version=2)
