"""Filters of int4, in integer and in float models, against LiteRT bit for bit."""

from __future__ import annotations

import dataclasses

from tests.ops.cases import hybrid
from tests.support.case import Case
from tests.support.products import Product
from tests.support.quantized import whole_range
from tflite_vk.dtypes import DType

INT4, INT8, INT16, INT32, INT64 = DType.INT4, DType.INT8, DType.INT16, DType.INT32, DType.INT64

_CONV = "CONV_2D"
_DEPTHWISE = "DEPTHWISE_CONV_2D"
_DENSE = "FULLY_CONNECTED"

_PRODUCTS = {
    # An odd number of weights leaves half a byte.
    "3x3": Product(_CONV, (1, 5, 7, 3), (5, 3, 3, 3)),
    "valid_stride_2": Product(_CONV, (2, 8, 9, 8), (13, 3, 3, 8), padding="VALID", stride=(2, 2)),
    "pointwise": Product(_CONV, (2, 7, 6, 37), (36, 1, 1, 37), activation="RELU"),
    "depthwise": Product(_DEPTHWISE, (1, 5, 7, 3), (1, 3, 3, 3)),
    "depthwise_multiplier": Product(
        _DEPTHWISE, (2, 8, 9, 5), (1, 3, 3, 15), padding="VALID", stride=(2, 2)
    ),
    "depthwise_dilation": Product(_DEPTHWISE, (1, 9, 6, 37), (1, 3, 3, 37), dilation=(2, 2)),
    "1x7x5": Product(_DENSE, (1, 7), (5, 7)),
    "37x130x7": Product(_DENSE, (37, 130), (7, 130)),
    "1x515x257": Product(_DENSE, (1, 515), (257, 515)),
    "keep": Product(_DENSE, (2, 3, 48), (9, 48), keep=True),
    "lowest": Product(_DENSE, (3, 30), (4, 30), lowest=True),
}


def _case(name: str, product: Product) -> Case:
    return Case(
        f"quantized_{product.dtype.name}_x_INT4_{product.op}_{name}",
        product,
        inputs=lambda rng: {0: whole_range(rng, product.x, product.dtype)},
        exact=True,
    )


_TYPES = {
    INT8: {"bias_dtype": INT32, "input_scale": 0.05, "weight_scale": 0.11, "bias": 300},
    INT16: {"bias_dtype": INT64},
}

CASES = [
    _case(f"{name}{'_per_channel' if per_channel else ''}", product)
    for name, base in _PRODUCTS.items()
    for dtype, others in _TYPES.items()
    if dtype is INT8 or base.op != _DEPTHWISE
    for per_channel in (False, True)
    for product in [
        dataclasses.replace(base, dtype=dtype, filter_dtype=INT4, per_channel=per_channel, **others)
    ]
]
CASES += [
    Case(case.name.replace("hybrid", "hybrid_INT4"), build, case.inputs, exact=True)
    for case in hybrid.CASES
    if isinstance(case.build, (hybrid.Rows, hybrid.Window)) and case.declined is None
    if not isinstance(case.build, hybrid.Window) or not case.build.depthwise
    for build in [dataclasses.replace(case.build, dtype=INT4)]
]
CASES += [
    Case(
        "quantized_INT16_x_INT4_DEPTHWISE_CONV_2D_declined",
        dataclasses.replace(_PRODUCTS["depthwise"], filter_dtype=INT4),
        declined="filter of a INT16 input is INT4",
    ),
    Case(
        "quantized_INT8_x_INT4_TRANSPOSE_CONV_declined",
        Product(
            "TRANSPOSE_CONV",
            (1, 5, 4, 3),
            (7, 3, 3, 3),
            dtype=INT8,
            filter_dtype=INT4,
            bias_dtype=INT32,
        ),
        declined="filter is INT4",
    ),
]
