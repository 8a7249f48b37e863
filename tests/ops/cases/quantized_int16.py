"""Functions and SOFTMAX of int16, against LiteRT bit for bit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.support.case import Array, Case
from tests.support.quantized import per_tensor, quantized_input, whole_range
from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import (
    Attributes,
    GeluAttributes,
    LeakyReluAttributes,
    SoftmaxAttributes,
)
from tflite_vk.testing.model_writer import ModelWriter, TensorSpec

INT16 = DType.INT16

_ALL = (3, 149, 147)
"""Holds each value once, and has padding."""

_STANDARD = 1 / 32768

_FUNCTIONS: dict[str, tuple[str, Attributes | None, tuple[tuple[float, float], ...]]] = {
    "ABS": ("ABS", None, ((0.01, 0.01), (0.01, 0.013), (2.0, 0.7))),
    "EXP": ("EXP", None, ((1e-4, 8e-4), (3e-5, 1e-4), (1e-3, 0.1), (0.05, 0.05))),
    "LOG": ("LOG", None, ((1e-4, 4e-4), (0.03, 3e-4), (2.0, 1e-3))),
    "LOGISTIC": (
        "LOGISTIC",
        None,
        tuple((s, _STANDARD) for s in (2.0**-12, 2.0**-11, 2.0**-15, 1e-4, 3.3e-3, 0.7)),
    ),
    "RELU": ("RELU", None, ((0.01, 0.01), (0.01, 0.007), (3e-4, 1e-3))),
    "RELU6": ("RELU6", None, ((3e-4, 3e-4), (3e-4, 2.3e-4), (1e-3, 1e-4))),
    "RSQRT": ("RSQRT", None, ((1e-3, 1e-3), (0.02, 3e-4))),
    "TANH": (
        "TANH",
        None,
        tuple((s, _STANDARD) for s in (2.0**-12, 2.0**-11, 2.0**-10, 2.0**-15, 1e-4, 3.3e-3, 0.7)),
    ),
    "NEG": ("NEG", None, ((0.01, 0.01), (0.01, 0.02))),
    "SQRT": ("SQRT", None, ((0.01, 0.001), (3e-4, 1e-4), (1.3, 0.01))),
    # The second of these has an anchor at which erfcf is not the nearest float.
    "GELU": (
        "GELU",
        GeluAttributes(),
        ((3e-4, 3e-4), (3.8683541788486764e-05, 3.36653356498573e-05)),
    ),
    "GELU_tanh": ("GELU", GeluAttributes(approximate=True), ((3e-4, 3e-4), (1e-3, 5e-4))),
    "LEAKY_RELU": ("LEAKY_RELU", LeakyReluAttributes(alpha=0.3), ((0.01, 0.01), (0.01, 0.007))),
    "LEAKY_RELU_steep": ("LEAKY_RELU", LeakyReluAttributes(alpha=1.7), ((0.01, 0.02),)),
    "LEAKY_RELU_falling": ("LEAKY_RELU", LeakyReluAttributes(alpha=-0.2), ((0.01, 0.004),)),
}


def _function(
    op: str, attributes: Attributes | None, scales: tuple[float, float]
) -> Callable[[ModelWriter], None]:
    def build(w: ModelWriter) -> None:
        x = quantized_input(w, _ALL, INT16, (scales[0], 0))
        out = TensorSpec(_ALL, INT16, per_tensor(INT16, (scales[1], 0)))
        w.output(w.op(op, [x], [out], attributes, version=_VERSIONS.get(op, 3)))

    return build


_VERSIONS = {"EXP": 2, "HARD_SWISH": 1, "LEAKY_RELU": 2, "LOG": 2, "NEG": 1, "SQRT": 2}


def _every(op: str) -> dict[int, Array]:
    # TFLite's roots stop with an error where a value is negative.
    lowest = 0 if op in {"RSQRT", "SQRT"} else -32768
    return {0: np.resize(np.arange(lowest, 32768), _ALL).astype(np.int16)}


CASES = [
    Case(
        f"quantized_{name}_INT16_{i}",
        _function(op, attributes, scales),
        inputs=lambda rng, op=op: _every(op),
        exact=True,
    )
    for name, (op, attributes, pairs) in _FUNCTIONS.items()
    for i, scales in enumerate(pairs)
]
CASES += [
    Case(
        "quantized_HARD_SWISH_INT16_declined",
        _function("HARD_SWISH", None, (0.1, 0.1)),
        declined="HARD_SWISH",
    ),
]


def _softmax(shape: tuple[int, ...], scale: float, beta: float, spread: int) -> Case:
    def build(w: ModelWriter) -> None:
        x = quantized_input(w, shape, INT16, (scale, 0))
        out = TensorSpec(shape, INT16, per_tensor(INT16, (_STANDARD, 0)))
        w.output(w.op("SOFTMAX", [x], [out], SoftmaxAttributes(beta), version=3))

    def inputs(rng: np.random.Generator) -> dict[int, Array]:
        values = whole_range(rng, shape, INT16) // spread
        return {0: (values + 15 * (spread > 1)).astype(np.int16)}

    label = "x".join(map(str, shape))
    return Case(
        f"quantized_SOFTMAX_INT16_{label}_{scale}_{spread}", build, inputs=inputs, exact=True
    )


CASES += [
    _softmax(shape, scale, beta, spread)
    for shape, scale, beta in (
        ((1, 10), 3e-4, 1.0),
        ((3, 1001), 5e-4, 1.0),
        ((2, 5, 7, 3), 1e-3, 1.0),
        ((1, 37), 2e-4, 0.5),
        ((5, 2), 2e-3, 2.0),
        ((1, 113), 1e-5, 1.0),
        ((1, 1), 1e-3, 1.0),
        ((2, 40000), 1e-4, 1.0),
    )
    for spread in (1, 40)
]
