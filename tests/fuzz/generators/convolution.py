"""Convolutions, matrix products, pools, resizes."""

from __future__ import annotations

import numpy as np

from tests.fuzz.builder import MAX_ELEMENTS, ROUNDING, Builder, Value
from tests.fuzz.eager import RefusedError
from tests.fuzz.generators import generator
from tests.fuzz.generators.elementwise import ACTIVATIONS, fits_mantissa, positive
from tests.support.case import Array
from tflite_vk.ir.attributes import (
    BatchMatMulAttributes,
    Conv2DAttributes,
    Conv3DAttributes,
    DepthwiseConv2DAttributes,
    FullyConnectedAttributes,
    Padding,
    Pool2DAttributes,
    ResizeAttributes,
    TransposeConvAttributes,
)

CHANNELS = (1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17)


def padding(g: Builder) -> Padding:
    return g.choice(("SAME", "VALID"))


def image(g: Builder) -> Value:
    """A float value [batch, height, width, channels] with something in it."""
    x = g.float(rank=4, accept=lambda v: v.array.size > 0 and v.scale < 100)
    if max(x.shape) > 200:
        raise RefusedError("a very long image")
    return x


def weights(g: Builder, shape: tuple[int, ...], x: Value, terms: int) -> tuple[Array, float, float]:
    """A filter, and the eps and scale of sums of so many products with it."""
    w = g.floats(shape, exact=x.err == 0, scale=1.0)
    is_exact = x.err == 0 and fits_mantissa(x.array, w, terms + 1)
    if not is_exact:
        w = (w / np.float32(np.sqrt(max(1, terms)))).astype(np.float32)
    sums = x.scale * float(np.max(np.abs(w), initial=0)) * float(np.sqrt(max(1, terms)))
    return w, 0.0 if is_exact else 2 * ROUNDING, sums


def window(g: Builder, x: Value, pad: Padding, rank: int = 2) -> tuple[list[int], ...]:
    """Kernel sizes, strides, dilations that make at least one output."""
    kernel, stride, dilation = [], [], []
    for axis in range(rank):
        size = x.shape[1 + axis]
        d = g.choice((1, 1, 1, 2, 3))
        k = g.choice((1, 1, 2, 3, 3, 4, 5))
        while pad == "VALID" and (k - 1) * d + 1 > size:
            k, d = (k - 1, d) if k > 1 else (1, 1)
        # Above the kernel's extent the reference kernels' SAME padding goes below zero (C10, C11).
        extent = (k - 1) * d + 1
        s = min(g.choice((1, 1, 1, 2, 2, 3)), extent)
        kernel.append(k)
        stride.append(s)
        dilation.append(d)
    return kernel, stride, dilation


def bias(g: Builder, x: Value, channels: int) -> Array:
    return g.floats((channels,), exact=x.err == 0, scale=0.5)


@generator(4)
def conv_2d(g: Builder) -> None:
    x = image(g)
    pad = padding(g)
    k, s, d = window(g, x, pad)
    out = g.choice(CHANNELS)
    channels = x.shape[3]
    groups = [n for n in (2, 3, 4) if channels % n == 0 and out % n == 0]
    if groups and g.chance(0.15):
        channels //= g.choice(groups)
    if k[0] * k[1] * channels * out * x.array.size // x.shape[3] > 3_000_000:
        raise RefusedError("too much work")
    w, eps, scale = weights(g, (out, k[0], k[1], channels), x, k[0] * k[1] * channels)
    a = Conv2DAttributes(g.choice(ACTIVATIONS), pad, s[1], s[0], d[1], d[0])
    g.apply("CONV_2D", [x, w, bias(g, x, out)], a, eps=eps, scale=scale)


@generator(3)
def depthwise_conv_2d(g: Builder) -> None:
    depthwise(g, g.choice((1, 1, 1, 2, 3, 4)))


@generator(2)
def separable_conv_2d(g: Builder) -> None:
    """Two operators that a GPU computes in one kernel."""
    y = depthwise(g, 1)
    out = g.choice(CHANNELS)
    w, eps, scale = weights(g, (out, 1, 1, y.shape[3]), y, y.shape[3])
    a = Conv2DAttributes(g.choice(ACTIVATIONS), padding(g))
    g.apply("CONV_2D", [y, w, bias(g, y, out)], a, eps=eps, scale=scale)


def depthwise(g: Builder, multiplier: int) -> Value:
    x = image(g)
    pad = padding(g)
    k, s, d = window(g, x, pad)
    if g.chance(0.8):
        s = (
            [max(s)] * 2
            if pad == "VALID" or min((n - 1) * m + 1 for n, m in zip(k, d, strict=True)) >= max(s)
            else [1, 1]
        )
    w, eps, scale = weights(g, (1, k[0], k[1], x.shape[3] * multiplier), x, k[0] * k[1])
    a = DepthwiseConv2DAttributes(
        g.choice(ACTIVATIONS), pad, s[1], s[0], d[1], d[0], depth_multiplier=multiplier
    )
    b = bias(g, x, w.shape[3]) if g.chance(0.8) else None
    version = 2 if max(d) > 1 else 1
    return g.apply("DEPTHWISE_CONV_2D", [x, w, b], a, version=version, eps=eps, scale=scale)


@generator(2)
def transpose_conv(g: Builder) -> None:
    x = image(g)
    k = [g.integer(1, 4) for _ in range(2)]
    s = [g.integer(1, 3) for _ in range(2)]
    pad = padding(g)
    out = g.choice(CHANNELS)
    size = []
    for axis in range(2):
        n = x.shape[1 + axis]
        # Any of the sizes that a convolution brings down to n.
        if pad == "SAME":
            size.append(n * s[axis] - (g.integer(0, s[axis] - 1) if n > 1 else 0))
        else:
            size.append((n - 1) * s[axis] + k[axis] + (g.integer(0, s[axis] - 1)))
    shape = (x.shape[0], *size, out)
    if int(np.prod(shape)) > 2 * MAX_ELEMENTS:
        raise RefusedError("too much")
    w, eps, scale = weights(g, (out, *k, x.shape[3]), x, k[0] * k[1] * x.shape[3])
    a = TransposeConvAttributes("NONE", pad, s[1], s[0])
    inputs = [np.array(shape, np.int32), w, x]
    version = 1
    if g.chance(0.5):
        inputs.append(bias(g, x, out))
        version = 3
    g.apply("TRANSPOSE_CONV", inputs, a, version=version, eps=eps, scale=scale)


@generator(0.5)
def conv_3d(g: Builder) -> None:
    x = g.float(rank=5, accept=lambda v: v.array.size > 0 and v.scale < 100)
    pad = padding(g)
    k, s, d = window(g, x, pad, 3)
    out = g.choice(CHANNELS[:6])
    shape = (*k, x.shape[4], out)
    w, eps, scale = weights(g, shape, x, int(np.prod(shape[:4])))
    a = Conv3DAttributes(g.choice(ACTIVATIONS), pad, s[0], s[2], s[1], d[0], d[2], d[1])
    g.apply("CONV_3D", [x, w, bias(g, x, out)], a, eps=eps, scale=scale)


@generator(0.5)
def conv_3d_transpose(g: Builder) -> None:
    x = g.float(rank=5, accept=lambda v: v.array.size > 0 and v.scale < 100)
    k = [g.integer(1, 3) for _ in range(3)]
    s = [g.integer(1, 2) for _ in range(3)]
    out = g.choice(CHANNELS[:6])
    pad = padding(g)
    size = [
        n * stride if pad == "SAME" else (n - 1) * stride + width
        for n, stride, width in zip(x.shape[1:4], s, k, strict=True)
    ]
    shape = (x.shape[0], *size, out)
    if int(np.prod(shape)) > 2 * MAX_ELEMENTS:
        raise RefusedError("too much")
    w, eps, scale = weights(g, (*k, out, x.shape[4]), x, int(np.prod(k)) * x.shape[4])
    a = Conv3DAttributes("NONE", pad, s[0], s[2], s[1])
    inputs = [np.array(shape, np.int32), w, x, *([bias(g, x, out)] if g.chance(0.5) else [])]
    g.apply("CONV_3D_TRANSPOSE", inputs, a, eps=eps, scale=scale)


@generator(3)
def fully_connected(g: Builder) -> None:
    x = g.float(rank=(1, 2, 3, 4, 5), accept=lambda v: v.array.size > 0 and v.scale < 100)
    depth = x.shape[-1]
    if g.chance(0.25):
        depth = x.array.size // x.shape[0] if x.rank > 1 else x.array.size
    if depth > 500:
        raise RefusedError("a very long row")
    out = g.choice(CHANNELS)
    keep = depth == x.shape[-1] and g.chance(0.5)
    w, eps, scale = weights(g, (out, depth), x, depth)
    a = FullyConnectedAttributes(g.choice(ACTIVATIONS), keep_num_dims=keep)
    b = bias(g, x, out) if g.chance(0.7) else None
    inputs = [x, w, b] if b is not None or g.chance(0.5) else [x, w]
    version = 5 if keep else 6 if len(inputs) == 2 else 1
    g.apply("FULLY_CONNECTED", inputs, a, version=version, eps=eps, scale=scale)


@generator(3)
def batch_matmul(g: Builder) -> None:
    x = g.float(rank=(2, 3, 4, 5), accept=lambda v: v.array.size > 0 and v.scale < 100)
    adj_x, adj_y = g.chance(0.3), g.chance(0.3)
    depth = x.shape[-2] if adj_x else x.shape[-1]
    columns = g.choice(CHANNELS)
    batch = tuple(1 if g.chance(0.3) else n for n in x.shape[:-2])[g.integer(0, x.rank - 2) :]
    shape = (*batch, columns, depth) if adj_y else (*batch, depth, columns)
    y, eps, scale = weights(g, shape, x, depth)

    def fits(v: Value) -> bool:
        return v.is_float and v.shape == shape and v is not x

    other = g.pick(fits)
    if other is not None and g.chance(0.5):
        is_exact = not (x.err or other.err) and fits_mantissa(x.array, other.array, depth)
        eps = 0.0 if is_exact else 2 * ROUNDING
        scale = x.scale * other.scale * float(np.sqrt(depth))
    elif g.chance(0.3):
        other = g.input(y)
    else:
        other = g.const(y)
    g.apply(
        "BATCH_MATMUL",
        [x, other],
        BatchMatMulAttributes(adj_x, adj_y),
        eps=eps,
        scale=scale,
    )


@generator()
def attention(g: Builder) -> None:
    """softmax(x y^T) x: bug reports A5, G8."""
    x = g.float(rank=(3, 4), accept=lambda v: v.array.size > 0 and v.scale < 5)
    if x.shape[-2] > 64:
        raise RefusedError("many rows")
    depth = x.shape[-1]
    scores = g.apply(
        "BATCH_MATMUL", [x, x], BatchMatMulAttributes(adj_y=True),
        eps=2 * ROUNDING, scale=x.scale**2 * depth,
    )  # fmt: skip
    from tflite_vk.ir.attributes import BinaryAttributes, SoftmaxAttributes

    mask = np.where(g.rng.random(scores.shape[-2:]) < 0.2, -8, 0).astype(np.float32)
    scores = g.apply("ADD", [scores, mask], BinaryAttributes(), eps=ROUNDING)
    p = g.apply("SOFTMAX", [scores], SoftmaxAttributes(beta=1.0), eps=1e-5)
    g.apply("BATCH_MATMUL", [p, x], BatchMatMulAttributes(), eps=2 * ROUNDING, scale=x.scale)


@generator(2)
def pool_2d(g: Builder) -> None:
    x = image(g)
    op = g.choice(("AVERAGE_POOL_2D", "MAX_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"))
    if op == "L2_POOL_2D":
        # The root is steep where a window holds only zeros.
        x = positive(g)
        if x.rank != 4:
            x = g.reshape(x, g.factor(x.array.size, 4))
        if max(x.shape) > 200:
            raise RefusedError("a very long image")
    pad = padding(g)
    k = [g.integer(1, 5) for _ in range(2)]
    if pad == "VALID":
        k = [min(n, x.shape[1 + i]) for i, n in enumerate(k)]
    if g.chance(0.1):
        k = list(x.shape[1:3])
    s = [min(g.integer(1, 3), n) for n in k]
    a = Pool2DAttributes(g.choice(ACTIVATIONS), pad, s[1], s[0], k[1], k[0])
    eps = {"AVERAGE_POOL_2D": 2 * ROUNDING, "L2_POOL_2D": 3 * ROUNDING}.get(op, 0.0)
    g.apply(op, [x], a, eps=eps, scale=x.scale if op == "AVERAGE_POOL_2D" else 0.0)


@generator(2)
def resize(g: Builder) -> None:
    x = image(g)
    size = np.array([g.choice((1, 2, 3, 4, 5, 7, 8, 10, 13)) for _ in range(2)], np.int32)
    align, half = g.choice(((False, False), (True, False), (False, True)))
    a = ResizeAttributes(align, half)
    version = 3 if half else 1
    if g.chance(0.5):
        g.apply("RESIZE_BILINEAR", [x, size], a, version=version, eps=ROUNDING, scale=x.scale)
    else:
        g.apply("RESIZE_NEAREST_NEIGHBOR", [x, size], a, version=version)
