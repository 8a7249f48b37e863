"""TRANSPOSE_CONV and Convolution2DTransposeBias: kernels, strides, paddings, sizes, channels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.support.case import Array, Case
from tests.support.half import to_half
from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import Activation, Padding, TransposeConvAttributes
from tflite_vk.testing.model_writer import ModelWriter

Pair = tuple[int, int]


def _a(padding: Padding, stride: Pair, activation: Activation = "NONE") -> TransposeConvAttributes:
    return TransposeConvAttributes(
        fused_activation_function=activation,
        padding=padding,
        stride_w=stride[1],
        stride_h=stride[0],
    )


def _weights(shape: tuple[int, ...]) -> Array:
    """Values that float16 holds, so that NumPy's result is fp16 mode's too."""
    return to_half(np.random.default_rng(3).uniform(-1, 1, shape))


def _build(
    x: tuple[int, ...],
    kernel: Pair,
    channels: int,
    size: Pair,
    a: TransposeConvAttributes,
    *,
    has_bias: bool = False,
    runtime: bool = False,
    half: bool = False,
    runtime_size: bool = False,
    follow: bool = False,
) -> Callable[[ModelWriter], None]:
    def build(w: ModelWriter) -> None:
        out = (x[0], *size, channels)
        shape = (
            w.input((4,), dtype=DType.INT32) if runtime_size else w.const(np.array(out, np.int32))
        )
        data = w.input(x)
        value = _weights((channels, *kernel, x[3]))
        const = w.half_const if half else w.const
        weights = w.input(value.shape) if runtime else const(value)
        inputs = [shape, weights, data]
        if has_bias:
            inputs.append(const(_weights((channels,))))
        version = 4 if a.fused_activation_function != "NONE" else 3 if has_bias else 1
        y = w.op("TRANSPOSE_CONV", inputs, [out], a, version=version)
        if follow:
            y = w.op("ADD", [y, w.input(out)], [out])
        w.output(y)

    return build


def _same(size: int, stride: int) -> int:
    return size * stride


def _valid(size: int, kernel: int, stride: int) -> int:
    return (size - 1) * stride + kernel


CASES = [
    Case(
        f"TRANSPOSE_CONV_{padding}_k{kernel[0]}x{kernel[1]}_s{stride[0]}x{stride[1]}_{'x'.join(map(str, x))}_{channels}",
        _build(
            x,
            kernel,
            channels,
            (
                _same(x[1], stride[0]) if padding == "SAME" else _valid(x[1], kernel[0], stride[0]),
                _same(x[2], stride[1]) if padding == "SAME" else _valid(x[2], kernel[1], stride[1]),
            ),
            _a(padding, stride),
        ),
    )
    for padding in ("SAME", "VALID")
    for x, kernel, stride, channels in (
        ((1, 5, 5, 3), (3, 3), (2, 2), 4),
        ((2, 3, 7, 5), (2, 2), (2, 2), 7),
        ((1, 4, 3, 8), (4, 4), (2, 2), 3),
        ((3, 3, 5, 6), (3, 2), (1, 3), 5),
        ((1, 1, 9, 4), (1, 5), (1, 2), 6),
        ((1, 6, 4, 7), (1, 1), (3, 2), 2),
        ((1, 3, 4, 2), (2, 3), (4, 5), 9),
        ((1, 8, 8, 37), (5, 5), (1, 1), 13),
    )
]
CASES += [
    Case(
        f"C19_TRANSPOSE_CONV_5x5_to_{n}x{n}_{padding}",
        _build((1, 5, 5, 3), (3, 3), 6, (n, n), _a(padding, (2, 2))),
    )
    for n, padding in ((9, "SAME"), (10, "SAME"), (11, "VALID"), (12, "VALID"))
]
CASES += [
    Case(
        f"C20_TRANSPOSE_CONV_1_by_{width}_then_ADD",
        _build((1, 1, 6, 5), (1, 3), 5, (1, width), _a("SAME", (1, 2)), follow=True),
    )
    for width in (11, 12)
]
CASES += [
    Case(
        "C21_TRANSPOSE_CONV_2x2_s1_SAME_ones",
        _build((1, 2, 2, 1), (2, 2), 1, (2, 2), _a("SAME", (1, 1))),
        inputs=lambda rng: {0: np.ones((1, 2, 2, 1), np.float32)},
    )
]
CASES += [
    Case(
        f"C24_TRANSPOSE_CONV_{channels}_inputs",
        _build((1, 4, 5, channels), (3, 3), 6, (8, 10), _a("SAME", (2, 2))),
    )
    for channels in (1, 2, 3, 5, 6, 7, 8, 9)
]
CASES += [
    Case(
        f"C25_TRANSPOSE_CONV_misfit_{h}x{w}_{padding}",
        _build((1, 3, 4, 3), (3, 3), 2, (h, w), _a(padding, (2, 2))),
        declined="output size" if padding == "SAME" or h > 2 else "VALID window",
    )
    for h, w in ((20, 3), (1, 1), (30, 31))
    for padding in ("SAME", "VALID")
]
CASES += [
    Case(
        "C25_TRANSPOSE_CONV_VALID_kernel_past_output",
        _build((1, 2, 2, 3), (8, 8), 2, (1, 3), _a("VALID", (4, 4))),
        declined="VALID window of 8",
    ),
    Case(
        "TRANSPOSE_CONV_bias",
        _build((2, 4, 5, 6), (3, 3), 5, (8, 10), _a("SAME", (2, 2)), has_bias=True),
    ),
    Case(
        "TRANSPOSE_CONV_run_time_filter",
        _build((2, 4, 5, 6), (3, 3), 5, (8, 10), _a("SAME", (2, 2)), runtime=True),
    ),
    Case(
        "TRANSPOSE_CONV_run_time_filter_and_bias",
        _build((1, 4, 5, 7), (2, 3), 4, (8, 10), _a("SAME", (2, 2)), runtime=True, has_bias=True),
    ),
    Case(
        "TRANSPOSE_CONV_float16_filter_and_bias",
        _build((1, 4, 5, 6), (3, 3), 5, (8, 10), _a("SAME", (2, 2)), has_bias=True, half=True),
    ),
    Case(
        "TRANSPOSE_CONV_RELU",
        _build((1, 4, 5, 6), (3, 3), 5, (8, 10), _a("SAME", (2, 2), "RELU"), has_bias=True),
    ),
    Case(
        "TRANSPOSE_CONV_fused_ADD",
        _build((1, 4, 5, 6), (3, 3), 5, (8, 10), _a("SAME", (2, 2)), follow=True),
    ),
    Case(
        "TRANSPOSE_CONV_size_at_run_time",
        _build((1, 4, 5, 6), (3, 3), 5, (8, 10), _a("SAME", (2, 2)), runtime_size=True),
        declined="input 0 is INT32",
    ),
    Case(
        "I3_TRANSPOSE_CONV_70000_rows",
        _build((1, 35000, 2, 3), (2, 2), 3, (70000, 4), _a("SAME", (2, 2))),
    ),
]


def _build_bias(
    x: tuple[int, ...], kernel: Pair, channels: int, size: Pair, a: TransposeConvAttributes
) -> Callable[[ModelWriter], None]:
    def build(w: ModelWriter) -> None:
        weights = w.const(_weights((channels, *kernel, x[3])))
        bias = w.const(_weights((channels,)))
        inputs = [w.input(x), weights, bias]
        w.output(w.op("Convolution2DTransposeBias", inputs, [(x[0], *size, channels)], a))

    return build


def _scatter(
    kernel: Pair, channels: int, size: Pair, a: TransposeConvAttributes
) -> Callable[[Array], list[Array]]:
    """As MediaPipe's kernel adds each input into the outputs it reaches."""

    def expected(x: Array) -> list[Array]:
        n, h, w, ic = x.shape
        weights = _weights((channels, *kernel, ic)).astype(np.float64)
        y = np.zeros((n, *size, channels)) + _weights((channels,))
        top = max(0, (h - 1) * a.stride_h + kernel[0] - size[0]) // 2
        left = max(0, (w - 1) * a.stride_w + kernel[1] - size[1]) // 2
        for iy, ix, ky, kx in np.ndindex(h, w, *kernel):
            oy, ox = iy * a.stride_h - top + ky, ix * a.stride_w - left + kx
            if 0 <= oy < size[0] and 0 <= ox < size[1]:
                y[:, oy, ox] += x[:, iy, ix] @ weights[:, ky, kx].T
        return [y.astype(np.float32)]

    return expected


CASES += [
    Case(
        f"Convolution2DTransposeBias_{padding}_k{kernel[0]}x{kernel[1]}_s{stride[0]}x{stride[1]}_to_{size[0]}x{size[1]}",
        _build_bias(x, kernel, channels, size, _a(padding, stride)),
        expected=_scatter(kernel, channels, size, _a(padding, stride)),
        why="custom operator of MediaPipe",
    )
    for x, kernel, stride, padding, size, channels in (
        ((1, 4, 4, 8), (2, 2), (2, 2), "SAME", (8, 8), 4),
        ((2, 5, 7, 5), (3, 3), (2, 2), "SAME", (9, 13), 3),
        ((1, 5, 7, 5), (3, 3), (2, 2), "SAME", (10, 14), 3),
        ((1, 4, 6, 3), (3, 3), (2, 2), "SAME", (8, 12), 7),
        ((1, 3, 4, 6), (3, 2), (2, 3), "VALID", (7, 11), 5),
        ((1, 3, 4, 6), (1, 1), (1, 1), "SAME", (3, 4), 1),
    )
]
CASES += [
    Case(
        "Convolution2DTransposeBias_wrong_size",
        _build_bias((1, 4, 4, 8), (2, 2), 4, (9, 8), _a("SAME", (2, 2))),
        declined="declared [1, 9, 8, 4]",
    )
]
