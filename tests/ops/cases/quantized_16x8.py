"""Products of int16 activations and int8 filters, and BATCH_MATMUL of int16, against LiteRT bit for bit."""

from __future__ import annotations

import dataclasses

import numpy as np

from tests.ops.cases import quantized_matmul
from tests.support.case import Array, Case
from tests.support.products import Product
from tests.support.quantized import whole_range
from tflite_vk.dtypes import DType

INT16, INT32, INT64 = DType.INT16, DType.INT32, DType.INT64

_CONV = "CONV_2D"
_DEPTHWISE = "DEPTHWISE_CONV_2D"
_DENSE = "FULLY_CONNECTED"
_TRANSPOSE = "TRANSPOSE_CONV"

_PRODUCTS = {
    "3x3": Product(_CONV, (1, 5, 7, 3), (5, 3, 3, 3)),
    "valid_stride_2": Product(_CONV, (2, 8, 9, 8), (13, 3, 3, 8), padding="VALID", stride=(2, 2)),
    "pointwise": Product(_CONV, (1, 7, 6, 37), (36, 1, 1, 37)),
    "one_pixel": Product(_CONV, (1, 1, 1, 4), (2, 1, 1, 4)),
    "dilation": Product(_CONV, (1, 9, 9, 5), (6, 3, 3, 5), dilation=(2, 1)),
    "beyond_32_bits": Product(_CONV, (1, 4, 5, 300), (7, 3, 3, 300)),
    "groups_of_4": Product(_CONV, (1, 8, 8, 16), (24, 3, 3, 4)),
    "groups_of_3": Product(_CONV, (1, 8, 8, 6), (4, 3, 3, 3)),
    "relu6": Product(_CONV, (2, 6, 6, 8), (9, 3, 3, 8), activation="RELU6", output_scale=2e-4),
    "depthwise": Product(_DEPTHWISE, (1, 5, 7, 3), (1, 3, 3, 3)),
    "depthwise_stride_2": Product(
        _DEPTHWISE, (2, 8, 9, 8), (1, 3, 3, 16), padding="VALID", stride=(2, 2)
    ),
    "depthwise_dilation": Product(_DEPTHWISE, (1, 7, 6, 37), (1, 3, 5, 37), dilation=(2, 2)),
    "depthwise_one_channel": Product(_DEPTHWISE, (1, 8, 8, 1), (1, 3, 3, 6)),
    "depthwise_beyond_32_bits": Product(
        _DEPTHWISE, (1, 30, 40, 5), (1, 28, 39, 5), lowest=True, output_scale=0.05
    ),
    "1x7x5": Product(_DENSE, (1, 7), (5, 7)),
    "37x130x7": Product(_DENSE, (37, 130), (7, 130)),
    "beyond_32_bits_1x4096x13": Product(_DENSE, (1, 4096), (13, 4096)),
    "flatten": Product(_DENSE, (1, 4, 4, 3), (5, 48)),
    "keep": Product(_DENSE, (2, 3, 48), (9, 48), keep=True, activation="RELU"),
    "no_bias": Product(_DENSE, (3, 10), (4, 10), bias_dtype=None),
    "large_bias": Product(_DENSE, (3, 10), (4, 10), bias=1 << 44, output_scale=4e2),
    "stride_2": Product(_TRANSPOSE, (1, 5, 4, 3), (7, 3, 3, 3), stride=(2, 2)),
    "valid": Product(_TRANSPOSE, (2, 4, 3, 9), (4, 4, 2, 9), stride=(3, 2), padding="VALID"),
    "transpose_no_bias": Product(_TRANSPOSE, (1, 3, 3, 5), (6, 2, 2, 5), bias_dtype=None),
    "transpose_beyond_32_bits": Product(_TRANSPOSE, (1, 3, 4, 1200), (5, 3, 3, 1200)),
}
_HAS_NARROW = {_CONV, _DENSE, _TRANSPOSE}

# A factor of 1/4 makes ties, which each of TFLite's three scalings rounds in its own way.
_TIES = {"input_scale": 0.5, "weight_scale": 0.5, "output_scale": 1.0}


def _extremes(shape: tuple[int, ...]) -> dict[int, Array]:
    return {0: np.full(shape, -32768, np.int16)}


def _small(rng: np.random.Generator, shape: tuple[int, ...]) -> dict[int, Array]:
    return {0: rng.integers(-20, 21, shape).astype(np.int16)}


def _case(name: str, product: Product) -> Case:
    return Case(
        f"quantized_16x8_{product.op}_{name}",
        product,
        inputs=lambda rng: {0: whole_range(rng, product.x, INT16)},
        exact=True,
    )


def _narrow(product: Product) -> Product:
    return dataclasses.replace(product, bias_dtype=INT32, bias=1 << 20)


CASES = [
    case
    for name, product in _PRODUCTS.items()
    for case in (
        _case(name, product),
        _case(f"{name}_per_channel", dataclasses.replace(product, per_channel=True)),
    )
]
CASES += [
    _case(f"{name}_int32_bias{kind}", _narrow(dataclasses.replace(product, per_channel=kind != "")))
    for name, product in _PRODUCTS.items()
    if product.op in _HAS_NARROW and product.bias_dtype is not None
    if "beyond" not in name and "large" not in name
    for kind in ("", "_per_channel")
]
_SMALL = {
    _CONV: Product(_CONV, (2, 5, 6, 5), (9, 1, 1, 5), bias=1000),
    _DENSE: Product(_DENSE, (30, 9), (7, 9), bias=1000),
    _TRANSPOSE: Product(_TRANSPOSE, (2, 5, 6, 5), (9, 1, 1, 5), bias=1000),
    _DEPTHWISE: Product(_DEPTHWISE, (2, 5, 6, 9), (1, 1, 1, 9), bias=1000),
}
CASES += [
    Case(
        f"quantized_16x8_{op}_{bias.name}_ties",
        dataclasses.replace(product, bias_dtype=bias, **_TIES),
        inputs=lambda rng, shape=product.x: _small(rng, shape),
        exact=True,
    )
    for op, product in _SMALL.items()
    for bias in (INT64, INT32)
    if bias is INT64 or op in _HAS_NARROW
]
CASES += [
    Case(
        f"quantized_16x8_{product.op}_extreme_sums",
        dataclasses.replace(product, lowest=True, output_scale=scale, bias=1 << 33),
        inputs=lambda rng, shape=product.x: _extremes(shape),
        exact=True,
    )
    for product, scale in (
        (Product(_CONV, (1, 3, 3, 512), (5, 3, 3, 512)), 0.7),
        (Product(_DENSE, (5, 5000), (6, 5000)), 0.8),
        (Product(_TRANSPOSE, (1, 3, 3, 2000), (5, 2, 2, 2000)), 1.2),
    )
]


def _declined(name: str, product: Product, reason: str) -> Case:
    return Case(f"quantized_16x8_{product.op}_declines_{name}", product, declined=reason)


CASES += [
    _declined(
        "untold_int32_bias",
        dataclasses.replace(_SMALL[_DEPTHWISE], bias_dtype=INT32),
        "bias is INT32",
    ),
    _declined(
        "sums_of_48_bits", dataclasses.replace(_SMALL[_DENSE], bias=(1 << 48) - 1), "48 bits"
    ),
    _declined(
        "large_factor",
        dataclasses.replace(_SMALL[_CONV], input_scale=9.0, weight_scale=9.0, output_scale=0.1),
        "output scale is too small",
    ),
]

CASES += [
    Case(case.name.replace("INT8", "INT16"), product, inputs=product.whole_range, exact=True)
    for case in quantized_matmul.CASES
    if isinstance(case.build, quantized_matmul.Product)
    for product in [dataclasses.replace(case.build, dtype=INT16)]
]
CASES += [
    Case(case.name.replace("INT8", "INT16xINT8"), product, inputs=product.whole_range, exact=True)
    for case in quantized_matmul.CASES
    if isinstance(case.build, quantized_matmul.Product)
    for product in [dataclasses.replace(case.build, dtype=INT16, right=DType.INT8)]
]
