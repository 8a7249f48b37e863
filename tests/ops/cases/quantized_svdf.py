"""SVDF of int8, against LiteRT bit for bit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.support.case import Case
from tests.support.quantized import whole_range
from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import Activation, SvdfAttributes
from tflite_vk.ir.graph import Quantization
from tflite_vk.testing.model_writer import ModelWriter, TensorSpec


def _q(scale: float, zero: int = 0) -> Quantization:
    return Quantization((float(np.float32(scale)),), (zero,))


def _svdf(
    batch: int,
    inputs: int,
    units: int,
    memory: int,
    rank: int,
    *,
    bias: bool = True,
    activation: Activation = "RELU",
    state_scale: float = 2e-4,
) -> Callable[[ModelWriter], None]:
    def build(w: ModelWriter) -> None:
        rng = np.random.default_rng(29)
        filters = units * rank
        features = rng.integers(-127, 128, (filters, inputs)).astype(np.int8)
        times = rng.integers(-32767, 32768, (filters, memory)).astype(np.int16)
        operands = [
            w.input((batch, inputs), dtype=DType.INT8, quantization=_q(0.03, 13)),
            w.const(features, quantization=_q(0.01)),
            w.const(times, quantization=_q(1e-5)),
            None,
            w.variable((batch, filters * memory), dtype=DType.INT16, quantization=_q(state_scale)),
        ]
        if bias:
            values = rng.integers(-(1 << 20), 1 << 20, units).astype(np.int32)
            operands[3] = w.const(values, quantization=_q(state_scale * 1e-5))
        a = SvdfAttributes(fused_activation_function=activation, rank=rank)
        out = TensorSpec((batch, units), DType.INT8, _q(0.02 * float(np.sqrt(inputs * rank)), -9))
        w.output(w.op("SVDF", operands, [out], a, version=3))

    return build


_MODELS = {
    "rank1": (_svdf(2, 3, 5, 7, 1), (2, 3)),
    "rank2": (_svdf(3, 6, 5, 10, 2), (3, 6)),
    "many_rows": (_svdf(9, 12, 7, 4, 3), (9, 12)),
    "no_bias": (_svdf(1, 37, 13, 4, 1, bias=False), (1, 37)),
    "memory1": (_svdf(2, 5, 6, 1, 1), (2, 5)),
    "narrow_state": (_svdf(2, 30, 6, 5, 2, state_scale=2e-5), (2, 30)),
}

CASES = [
    Case(
        f"quantized_SVDF_{name}",
        build,
        inputs=lambda rng, shape=shape: {0: whole_range(rng, shape, DType.INT8)},
        exact=True,
    )
    for name, (build, shape) in _MODELS.items()
]
CASES += [
    Case(
        "quantized_SVDF_without_RELU",
        _svdf(2, 3, 5, 7, 1, activation="NONE"),
        declined="activation NONE",
    )
]
