"""Functions of one int16 value as 65,536 results each, as TFLite's kernels compute them.

Source: LUTPopulateInt16 and LUTLookup of tflite/kernels/internal/common.h, and the kernels named at each
function. Zero points are 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_vk.ir.attributes import GeluAttributes, LeakyReluAttributes
from tflite_vk.ir.graph import Node, Tensor
from tflite_vk.ops.quantization import Multiplier, is_power_of_two, quantize_multiplier
from tflite_vk.ops.quantized.c_floats import c_float
from tflite_vk.ops.quantized.tables import gelu, gelu_tanh

Ints = npt.NDArray[np.int64]
Reals = npt.NDArray[np.floating[Any]]
F32 = np.float32

ANCHORS = 512
"""Steps of a table between whose ends TFLite interpolates."""

_LOWEST, _HIGHEST = -(1 << 15), (1 << 15) - 1


def _every_value() -> Ints:
    return np.arange(_LOWEST, _HIGHEST + 1, dtype=np.int64)


def _scale(tensor: Tensor) -> np.float32:
    assert tensor.quantization is not None
    return F32(tensor.quantization.scale[0])


def _round(values: Reals) -> Reals:
    """C's round()."""
    rounded: Reals = np.copysign(np.floor(np.abs(values) + values.dtype.type(0.5)), values)
    return rounded


def multiply(x: Ints, factor: Multiplier) -> Ints:
    """multiply_by_quantized of ops/quantization.py for arrays."""
    shifted = ((x << max(factor.shift, 0)) + (1 << 31)) % (1 << 32) - (1 << 31)
    high = (shifted * factor.value + (1 << 30)) >> 31
    exponent = max(-factor.shift, 0)
    mask = (1 << exponent) - 1
    result: Ints = (high >> exponent) + ((high & mask) > (mask >> 1) + (high < 0))
    return result


def anchors(
    input_scale: np.floating[Any],
    input_zero: int,
    output_scale: np.floating[Any],
    function: Callable[[float], float],
) -> Ints:
    """ANCHORS + 1 results, moved so that what lies halfway errs least.

    Args:
        input_scale: float32, or float64 where TFLite's kernel computes so.
        input_zero: zero point of the argument.
        output_scale: of the same type.
        function: on reals.
    """
    kind = type(input_scale)
    lowest, highest = (input_scale * kind(v - input_zero) for v in (_LOWEST, _HIGHEST))
    step = (highest - lowest) / kind(ANCHORS)
    inverse = kind(65536) / (output_scale * kind(_HIGHEST) - output_scale * kind(_LOWEST))
    starts = lowest + np.arange(ANCHORS + 1, dtype=kind) * step

    def steps(reals: Reals) -> Reals:
        results = np.array([function(float(r)) for r in reals], np.float64)
        scaled: Reals = results.astype(kind) * inverse
        return scaled

    with np.errstate(over="ignore", invalid="ignore"):
        ends = steps(starts)
        middles = steps(starts[:-1] + step / kind(2))
        samples = _round(ends[:-1])
        between = _round((ends[1:] + samples) / kind(2))
        bias = _round((between - _round(middles)) / kind(2))
        last = _round(steps(np.array([highest], kind)))
        table = np.concatenate([samples - bias, last])
    # What C++ makes of infinity less infinity.
    clipped: Ints = np.nan_to_num(np.clip(table, _LOWEST, _HIGHEST), nan=0.0).astype(np.int64)
    return clipped


def interpolate(values: Ints, table: Ints) -> Ints:
    """What TFLite reads from `anchors` for int16 arguments; its differences wrap in int16."""
    at, offset = ANCHORS // 2 + (values >> 7), values & 0x7F
    base = table[at]
    slope = (table[at + 1] - base).astype(np.int16).astype(np.int64)
    result: Ints = (base + ((slope * offset + 64) >> 7)).astype(np.int16).astype(np.int64)
    return result


def _from_reals(source: Tensor, result: Tensor, function: Callable[[float], float]) -> Ints:
    table = anchors(_scale(source), 0, _scale(result), function)
    return interpolate(_every_value(), table)


def _log(source: Tensor, result: Tensor) -> Ints:
    """Source: LogLUTPrepare of tflite/kernels/elementwise.cc."""
    lowest = float(F32(_LOWEST) * _scale(result))
    return _from_reals(source, result, lambda x: c_float("log")(x) if x > 0 else lowest)


def _rsqrt(source: Tensor, result: Tensor) -> Ints:
    """Source: GenericPrepare of tflite/kernels/elementwise.cc.

    Values below zero, which TFLite refuses while running, give the largest result.
    """
    highest = float(F32(_HIGHEST) * _scale(result))

    def function(x: float) -> float:
        return float(F32(1) / np.sqrt(F32(x))) if x > 0 else highest

    return _from_reals(source, result, function)


_SIGMOIDS_ABOVE = 0x800000000000000000000000000000800011009020440005C0467BAEFA7BD110
"""Bit i: TFLite's table of sigmoids is one above the rounded value."""


def _sigmoids() -> Ints:
    """sigmoid(i / 24) in steps of 2^-16, as sigmoid_table_uint16 of tflite/kernels/internal/common.h."""
    i = np.arange(256)
    rounded = np.round(65536 / (1 + np.exp(-i / 24))).astype(np.int64)
    above = [_SIGMOIDS_ABOVE >> k & 1 for k in range(256)]
    table: Ints = rounded + np.array(above, np.int64)
    return table


def _to_sigmoid_steps(source: Tensor, most_shift: int) -> Ints:
    """All values in steps of 1 / (3 * 4096).

    Source: SigmoidPrepare and TanhPrepare of tflite/kernels/activations.cc.
    """
    scale = float(_scale(source))
    exponent = 12 + round(math.log2(scale))
    if is_power_of_two(scale) and 0 <= exponent <= most_shift:
        return _every_value() * (3 << exponent)
    multiplier, shift = scale * 4096.0 * 3.0, 0
    while multiplier <= 32767.0 / 2.0 and shift <= 30:
        multiplier *= 2.0
        shift += 1
    half = 1 << (shift - 1) if shift > 0 else 0
    steps: Ints = (_every_value() * int(multiplier) + half) >> shift
    return steps


def _between_sigmoids(magnitudes: Ints, bits: int) -> Ints:
    """The table's value at magnitudes / 2^bits, `bits` more fractional bits; 0 past its end."""
    table = _sigmoids()
    at = np.minimum(magnitudes >> bits, 254)
    rest = magnitudes & ((1 << bits) - 1)
    result: Ints = (table[at] << bits) + rest * (table[at + 1] - table[at])
    return np.where(magnitudes >> bits >= 255, 0, result)


def _logistic(source: Tensor, result: Tensor) -> Ints:
    """Source: Logistic of int16 in tflite/kernels/internal/reference/integer_ops/logistic.h."""
    del result
    x = _to_sigmoid_steps(source, 0)
    magnitudes = np.abs(x)
    y = np.where(magnitudes >> 9 >= 255, 0x7FFF << 10, _between_sigmoids(magnitudes, 9))
    return np.where(x >= 0, y + (1 << 9), (1 << 25) - y + (1 << 9) - 1) >> 10


def _tanh(source: Tensor, result: Tensor) -> Ints:
    """Source: Tanh of int16 in tflite/kernels/internal/reference/integer_ops/tanh.h."""
    del result
    x = _to_sigmoid_steps(source, 1)
    magnitudes = np.abs(x)
    y = np.where(magnitudes >> 8 >= 255, 0xFFFF << 8, _between_sigmoids(magnitudes, 8))
    y = np.where(x >= 0, y - (1 << 23) + (1 << 7), (1 << 23) - y + (1 << 7) - 1)
    return y >> 8


def _leaky_relu(source: Tensor, result: Tensor, alpha: float) -> Ints:
    """Source: QuantizeLeakyRelu of tflite/kernels/internal/reference/leaky_relu.h."""
    x = _every_value()
    kept = quantize_multiplier(float(_scale(source) / _scale(result)))
    slope = float(_scale(source) * F32(alpha) / _scale(result))
    leaked = multiply(x, quantize_multiplier(abs(slope)))
    return np.where(x >= 0, multiply(x, kept), -leaked if slope < 0 else leaked)


def _relu(source: Tensor, result: Tensor, most: float | None) -> Ints:
    """Source: QuantizedReluX of tflite/kernels/activations.cc."""
    factor = quantize_multiplier(float(_scale(source) / _scale(result)))
    highest = _HIGHEST if most is None else int(_round(np.array(F32(most) / _scale(result))))
    return np.clip(multiply(_every_value(), factor), 0, highest)


def _abs(source: Tensor, result: Tensor) -> Ints:
    """Source: AbsEvalQuantized of tflite/kernels/elementwise.cc."""
    x = np.abs(_every_value())
    if _scale(source) == _scale(result):
        return x
    return multiply(x, quantize_multiplier(float(_scale(source) / _scale(result))))


def _negated(source: Tensor, result: Tensor) -> Ints:
    """Source: Negate of tflite/kernels/internal/reference/reference_ops.h; scales mean nothing to it."""
    del source, result
    x = _every_value()
    return np.where(x == _LOWEST, _LOWEST, -x)


def _sqrt(source: Tensor, result: Tensor) -> Ints:
    """Source: SqrtEvalQuantized of tflite/kernels/elementwise.cc, which cuts off, as this does.

    Values below zero, which TFLite refuses while running, count as zero.
    """
    real = _scale(source) * np.maximum(_every_value(), 0).astype(np.float32)
    roots: Ints = (np.sqrt(real) / _scale(result)).astype(np.int64)
    return roots


_FUNCTIONS: dict[str, Callable[[Tensor, Tensor], Ints]] = {
    "ABS": _abs,
    "EXP": lambda x, y: _from_reals(x, y, c_float("exp")),
    "LOG": _log,
    "LOGISTIC": _logistic,
    "NEG": _negated,
    "RELU": lambda x, y: _relu(x, y, None),
    "RELU6": lambda x, y: _relu(x, y, 6.0),
    "RSQRT": _rsqrt,
    "SQRT": _sqrt,
    "TANH": _tanh,
}

OPERATORS = frozenset({*_FUNCTIONS, "GELU", "LEAKY_RELU"})
"""Operators that TFLite has int16 kernels for."""


def words_of(values: Ints) -> npt.NDArray[np.uint32]:
    """Results for -32768 and up, clamped, two in a word, in the order of the arguments' bits."""
    halves = np.clip(values, _LOWEST, _HIGHEST).astype(np.int16)
    return np.ascontiguousarray(np.roll(halves, 1 << 15)).view(np.uint32)


def table16_of(node: Node, source: Tensor, result: Tensor) -> npt.NDArray[np.uint32]:
    """The table of a node's operator between two int16 tensors, in words."""
    if isinstance(node.attributes, LeakyReluAttributes):
        return words_of(_leaky_relu(source, result, node.attributes.alpha))
    if isinstance(node.attributes, GeluAttributes):
        function = gelu_tanh if node.attributes.approximate else gelu
        return words_of(_from_reals(source, result, lambda x: function(F32(x))))
    return words_of(_FUNCTIONS[node.op](source, result))
