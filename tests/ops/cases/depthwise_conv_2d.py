"""DEPTHWISE_CONV_2D: multipliers, strides, dilations, paddings, both kernels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.support.case import Case
from tflite_vk.ir.attributes import DepthwiseConv2DAttributes
from tflite_vk.testing.model_writer import ModelWriter


def _depthwise(
    x: tuple[int, int, int, int],
    kernel: tuple[int, int],
    multiplier: int,
    attributes: DepthwiseConv2DAttributes,
    *,
    has_bias: bool = True,
    run_time_filter: bool = False,
) -> Callable[[ModelWriter], None]:
    def build(w: ModelWriter) -> None:
        rng = np.random.default_rng(4)
        n, h, width, c = x
        a = attributes
        oc = c * multiplier
        eh, ew = (
            (k - 1) * d + 1
            for k, d in zip(kernel, (a.dilation_h_factor, a.dilation_w_factor), strict=True)
        )
        if a.padding == "SAME":
            oh, ow = -(-h // a.stride_h), -(-width // a.stride_w)
        else:
            oh, ow = (h - eh) // a.stride_h + 1, (width - ew) // a.stride_w + 1
        shape = (1, *kernel, oc)
        source = w.input(x)
        weights = (
            w.input(shape)
            if run_time_filter
            else w.const(rng.uniform(-1, 1, shape).astype(np.float32))
        )
        bias = [w.const(rng.uniform(-1, 1, oc).astype(np.float32))] if has_bias else []
        inputs = [source, weights, *bias]
        w.output(w.op("DEPTHWISE_CONV_2D", inputs, [(n, oh, ow, oc)], attributes))

    return build


def _a(
    padding: str = "SAME", s: int = 1, d: int = 1, m: int = 1, act: str = "NONE"
) -> DepthwiseConv2DAttributes:
    return DepthwiseConv2DAttributes(
        fused_activation_function=act,  # type: ignore[arg-type]
        padding=padding,  # type: ignore[arg-type]
        stride_w=s,
        stride_h=s,
        dilation_w_factor=d,
        dilation_h_factor=d,
        depth_multiplier=m,
    )


CASES = [
    Case(
        f"DEPTHWISE_{'x'.join(map(str, x))}_k{k[0]}{k[1]}_m{m}_{p}_s{s}_d{d}",
        _depthwise(x, k, m, _a(p, s, d, m)),
    )
    for x in ((1, 9, 11, 5), (2, 8, 8, 16))
    for k in ((3, 3), (5, 5), (1, 3))
    for m in (1, 2, 3)
    for p, s, d in (("SAME", 1, 1), ("SAME", 2, 1), ("VALID", 1, 1), ("VALID", 2, 1))
]
CASES += [
    Case("C1_one_channel_m4", _depthwise((1, 32, 32, 1), (3, 3), 4, _a(m=4))),
    Case("C1_one_channel_m6", _depthwise((1, 32, 32, 1), (3, 3), 6, _a(m=6))),
    Case("C3_dilation_4", _depthwise((1, 13, 13, 8), (3, 3), 1, _a(d=4))),
    Case("C4_dilation_2_valid", _depthwise((1, 9, 9, 6), (3, 3), 1, _a("VALID", d=2))),
    Case("C4_dilation_2_same", _depthwise((1, 9, 9, 6), (3, 3), 1, _a(d=2))),
    Case("C5_dilation_2_pad", _depthwise((1, 5, 5, 4), (3, 3), 1, _a(d=2))),
    Case("DEPTHWISE_relu6", _depthwise((1, 7, 7, 12), (3, 3), 1, _a(s=2, act="RELU6"))),
    Case("DEPTHWISE_no_bias", _depthwise((1, 7, 5, 3), (3, 3), 1, _a(), has_bias=False)),
    Case("DEPTHWISE_large_stride", _depthwise((1, 29, 31, 3), (3, 3), 1, _a("VALID", s=7))),
    Case("DEPTHWISE_large_kernel", _depthwise((1, 40, 40, 3), (25, 25), 1, _a())),
    Case("H8_run_time_filter", _depthwise((1, 7, 6, 5), (3, 3), 1, _a(), run_time_filter=True)),
    Case(
        "H8_run_time_filter_m2", _depthwise((1, 7, 6, 5), (3, 3), 2, _a(m=2), run_time_filter=True)
    ),
]
