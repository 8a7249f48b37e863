"""CONV_2D: sizes, strides, dilations, paddings, batches, groups, filters, fused chains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tests.support.case import Array, Case
from tests.support.half import to_half
from tests.support.numpy_conv import conv_2d
from tflite_vk.ir.attributes import BinaryAttributes, Conv2DAttributes
from tflite_vk.testing.model_writer import ModelWriter


def _output_size(size: int, kernel: int, stride: int, dilation: int, padding: str) -> int:
    extent = (kernel - 1) * dilation + 1
    return -(-size // stride) if padding == "SAME" else (size - extent) // stride + 1


@dataclass(frozen=True)
class Conv:
    """Builds a model of one convolution."""

    x: tuple[int, int, int, int]
    weights: tuple[int, int, int, int]
    attributes: Conv2DAttributes = Conv2DAttributes()
    has_bias: bool = True
    run_time_filter: bool = False
    half_weights: bool = False

    def values(self) -> tuple[Array, Array | None]:
        """Filter and bias, which float16 holds: `expected` serves fp16 mode too."""
        rng = np.random.default_rng(3)
        weights = to_half(rng.uniform(-1, 1, self.weights))
        bias = to_half(rng.uniform(-1, 1, self.weights[0])) if self.has_bias else None
        return weights, bias

    def output_shape(self) -> tuple[int, int, int, int]:
        a = self.attributes
        n, h, w, _ = self.x
        o, kh, kw, _ = self.weights
        return (
            n,
            _output_size(h, kh, a.stride_h, a.dilation_h_factor, a.padding),
            _output_size(w, kw, a.stride_w, a.dilation_w_factor, a.padding),
            o,
        )

    def add(self, w: ModelWriter) -> int:
        x = w.input(self.x)
        weights, bias = self.values()
        if self.run_time_filter:
            filter_id = w.input(self.weights)
        elif self.half_weights:
            filter_id = w.half_const(weights)
        else:
            filter_id = w.const(weights)
        inputs = [x, filter_id] if bias is None else [x, filter_id, w.const(bias)]
        return w.op("CONV_2D", inputs, [self.output_shape()], self.attributes)

    def __call__(self, w: ModelWriter) -> None:
        w.output(self.add(w))

    def expected(self, x: Array) -> list[Array]:
        weights, bias = self.values()
        y = conv_2d(x, weights, bias, self.attributes)
        return [np.tanh(y) if self.attributes.fused_activation_function == "TANH" else y]


def _a(
    padding: str = "SAME",
    s: tuple[int, int] = (1, 1),
    d: tuple[int, int] = (1, 1),
    act: str = "NONE",
) -> Conv2DAttributes:
    return Conv2DAttributes(
        fused_activation_function=act,  # type: ignore[arg-type]
        padding=padding,  # type: ignore[arg-type]
        stride_h=s[0],
        stride_w=s[1],
        dilation_h_factor=d[0],
        dilation_w_factor=d[1],
    )


def _named(prefix: str, conv: Conv) -> Case:
    a = conv.attributes
    x, w = ("x".join(map(str, s)) for s in (conv.x, conv.weights))
    name = (
        f"{prefix}_{x}_{w}_{a.padding}_s{a.stride_h}{a.stride_w}"
        f"_d{a.dilation_h_factor}{a.dilation_w_factor}_{a.fused_activation_function}"
    )
    return Case(name, conv)


CASES = [
    _named("CONV_2D", Conv(x, weights, attributes))
    for x, weights in (
        ((1, 5, 7, 3), (5, 3, 3, 3)),
        ((2, 8, 9, 8), (13, 3, 3, 8)),
        ((1, 7, 6, 37), (36, 1, 1, 37)),
        ((1, 1, 1, 4), (2, 1, 1, 4)),
        ((3, 9, 8, 1), (7, 5, 2, 1)),
    )
    for attributes in (_a(), _a("VALID"), _a(s=(2, 2)), _a("VALID", (2, 1)), _a(d=(2, 1)))
    if attributes.padding == "SAME" or (x[1] >= weights[1] and x[2] >= weights[2])
]
CASES += [
    _named("C23_activation", Conv((1, 8, 8, 16), (8, 3, 3, 16), _a(s=(2, 2), act=act)))
    for act in ("RELU", "RELU6", "RELU_N1_TO_1")
]
CASES += [
    _named("CONV_2D_wide", Conv((1, 20, 20, 32), (113, 1, 1, 32))),
    _named("CONV_2D_wide", Conv((1, 14, 14, 64), (128, 3, 3, 64))),
    _named("CONV_2D_half", Conv((1, 6, 5, 6), (9, 3, 3, 6), half_weights=True)),
    _named("C6_asymmetric_dilation", Conv((1, 9, 9, 5), (6, 3, 1, 5), _a(d=(2, 1)))),
    _named("C6_asymmetric_dilation", Conv((1, 9, 9, 5), (6, 1, 3, 5), _a(d=(1, 2)))),
    _named("C8_even_and_odd", Conv((1, 8, 8, 3), (4, 3, 3, 3), _a(s=(2, 2)))),
    _named("C8_even_and_odd", Conv((1, 7, 9, 3), (4, 3, 3, 3), _a(s=(2, 2)))),
    _named("C13_batch", Conv((5, 6, 6, 3), (8, 3, 3, 3), _a("VALID", act="RELU"))),
    _named("B13_odd_width", Conv((1, 9, 7, 3), (4, 3, 3, 3))),
    _named("J10_large_kernel", Conv((1, 23, 23, 3), (4, 11, 11, 3), _a(s=(4, 4)))),
    _named("CONV_2D_run_time_filter", Conv((1, 6, 7, 5), (6, 3, 3, 5), run_time_filter=True)),
]
# LiteRT's own kernels return zeros for C10 and C11 (bug reports), refuse a convolution without a
# bias, and ignore a fused TANH: NumPy is the oracle.
for _name, _conv in (
    ("C10_asymmetric_stride", Conv((1, 13, 14, 3), (4, 3, 3, 3), _a(s=(3, 4)))),
    ("C10_asymmetric_stride", Conv((1, 13, 14, 3), (4, 3, 3, 3), _a(s=(4, 3)))),
    ("C11_stride_beyond_kernel", Conv((1, 17, 18, 7), (16, 3, 3, 7), _a(s=(10, 10)))),
    ("C11_stride_beyond_kernel", Conv((1, 9, 8, 7), (5, 1, 1, 7), _a(s=(2, 2)))),
    ("CONV_2D_no_bias", Conv((1, 6, 5, 3), (8, 3, 3, 3), has_bias=False)),
    ("C12_pointwise_no_bias", Conv((1, 1, 1, 4), (2, 1, 1, 4), has_bias=False)),
    ("C23_activation", Conv((1, 8, 8, 16), (8, 3, 3, 16), _a(s=(2, 2), act="TANH"))),
):
    _case = _named(_name, _conv)
    CASES.append(Case(_case.name, _conv, expected=_conv.expected))


def _grouped(weights: tuple[int, int, int, int], channels: int) -> Callable[[ModelWriter], None]:
    return Conv((1, 8, 8, channels), weights)


CASES += [
    Case("C17_two_groups_of_3", _grouped((4, 3, 3, 3), 6)),
    Case("C17_four_groups_of_4", _grouped((16, 3, 3, 4), 16)),
    Case("C17_two_groups_of_8", _grouped((24, 1, 1, 8), 16)),
]


def _residual(w: ModelWriter) -> None:
    # CONV + RELU6 + ADD of a computed tensor + MUL by a constant: one dispatch.
    x = w.input((1, 6, 6, 7))
    shape = (1, 6, 6, 7)
    rng = np.random.default_rng(5)
    side = w.op("TANH", [x], [shape])
    weights = w.const(rng.uniform(-1, 1, (7, 3, 3, 7)).astype(np.float32))
    conv = w.op("CONV_2D", [x, weights, w.const(np.ones(7, np.float32))], [shape], _a(act="RELU6"))
    total = w.op("ADD", [side, conv], [shape], BinaryAttributes(fused_activation_function="RELU"))
    scale = w.const(rng.uniform(0.5, 2, 7).astype(np.float32))
    w.output(w.op("MUL", [total, scale], [shape], BinaryAttributes()))


def _both_outputs(w: ModelWriter) -> None:
    # B2: the first convolution's result is an output and is consumed.
    rng = np.random.default_rng(6)
    x = w.input((1, 5, 5, 3))
    shape = (1, 5, 5, 4)
    bias = w.const(np.zeros(4, np.float32))
    first = w.op(
        "CONV_2D",
        [x, w.const(rng.uniform(-1, 1, (4, 3, 3, 3)).astype(np.float32)), bias],
        [shape],
        _a(),
    )
    relu = w.op("RELU", [first], [shape])
    second = w.op(
        "CONV_2D",
        [relu, w.const(rng.uniform(-1, 1, (4, 1, 1, 4)).astype(np.float32)), bias],
        [shape],
        _a(),
    )
    w.output(first, second)


def _many_steps(w: ModelWriter) -> None:
    # More steps than one epilogue holds: the chain splits, the values stay.
    shape = (1, 5, 5, 6)
    rng = np.random.default_rng(8)
    value = Conv((1, 5, 5, 3), (6, 3, 3, 3)).add(w)
    for i in range(14):
        if i % 3 == 0:
            value = w.op("TANH", [value], [shape])
        else:
            operand = w.const(rng.uniform(0.5, 1.5, (6,) if i % 2 else ()).astype(np.float32))
            value = w.op("MUL" if i % 2 else "ADD", [value, operand], [shape], BinaryAttributes())
    w.output(value)


CASES += [
    Case("CONV_2D_residual_chain", _residual),
    Case("B2_intermediate_output", _both_outputs),
    Case("CONV_2D_many_steps", _many_steps),
]
