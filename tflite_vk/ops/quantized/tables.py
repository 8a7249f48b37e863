"""Functions of one 8-bit value as 256 results each, built as TFLite's kernels build or compute them.

Source: LUTPopulate of tflite/kernels/internal/common.h, and the kernels named at each function.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from tflite_vk.ir.attributes import GeluAttributes, LeakyReluAttributes
from tflite_vk.ir.graph import Node, Tensor
from tflite_vk.ops.fixed_point import inverse_sqrt
from tflite_vk.ops.quantization import (
    BOUNDS,
    Multiplier,
    divide_by_pot,
    multiply_by_quantized,
    quantize_multiplier,
    round_half_away,
)
from tflite_vk.ops.quantized.c_floats import c_float

Table = npt.NDArray[np.uint32]
F32 = np.float32


def _scale(tensor: Tensor) -> np.float32:
    assert tensor.quantization is not None
    return F32(tensor.quantization.scale[0])


def _zero(tensor: Tensor) -> int:
    assert tensor.quantization is not None
    return tensor.quantization.zero_point[0]


def from_integers(source: Tensor, result: Tensor, function: Callable[[int], int]) -> Table:
    """The table of a function on the type's integers; results are clamped.

    Returns:
        256 words, the result's byte at the place of the argument's byte.
    """
    lowest, highest = BOUNDS[result.dtype]
    table = np.zeros(256, np.uint32)
    first, last = BOUNDS[source.dtype]
    for value in range(first, last + 1):
        table[value & 0xFF] = max(lowest, min(highest, function(value))) & 0xFF
    return table


def from_reals(source: Tensor, result: Tensor, function: Callable[[np.float32], float]) -> Table:
    """The table that LUTPopulate makes of a function on reals, all of it in float32."""
    inverse = F32(1) / _scale(result)
    zero = F32(_zero(result))

    def quantized(value: int) -> int:
        real = _scale(source) * F32(value - _zero(source))
        with np.errstate(over="ignore", invalid="ignore"):
            rescaled = float(np.clip(F32(function(real)) * inverse, -1e9, 1e9))
        return int(F32(round_half_away(rescaled)) + zero)

    return from_integers(source, result, quantized)


def requantized(source: Tensor, result: Tensor) -> Table:
    """Source: Requantize of tflite/kernels/internal/reference/requantize.h."""
    factor = quantize_multiplier(float(_scale(source)) / float(_scale(result)))

    def function(value: int) -> int:
        return multiply_by_quantized(value - _zero(source), factor) + _zero(result)

    return from_integers(source, result, function)


def _relu(source: Tensor, result: Tensor, low: float, high: float | None) -> Table:
    """Source: QuantizedReluX of tflite/kernels/activations.cc."""
    factor = quantize_multiplier(float(_scale(source) / _scale(result)))

    def bound(real: float) -> int:
        return _zero(result) + round_half_away(float(F32(real) / _scale(result)))

    least = bound(low)
    most = BOUNDS[result.dtype][1] if high is None else bound(high)

    def function(value: int) -> int:
        scaled = multiply_by_quantized(value - _zero(source), factor) + _zero(result)
        return min(most, max(least, scaled))

    return from_integers(source, result, function)


def _leaky_relu(source: Tensor, result: Tensor, alpha: float) -> Table:
    """Source: QuantizeLeakyRelu of tflite/kernels/internal/reference/leaky_relu.h."""
    kept = quantize_multiplier(float(_scale(source) / _scale(result)))
    slope = float(_scale(source) * F32(alpha) / _scale(result))
    leaked = quantize_multiplier(abs(slope))

    def function(value: int) -> int:
        x = value - _zero(source)
        if x >= 0:
            return multiply_by_quantized(x, kept) + _zero(result)
        y = multiply_by_quantized(x, leaked)
        return (-y if slope < 0 else y) + _zero(result)

    return from_integers(source, result, function)


def _abs(source: Tensor, result: Tensor) -> Table:
    """Source: AbsEvalQuantized of tflite/kernels/elementwise.cc."""
    factor = quantize_multiplier(float(_scale(source) / _scale(result)))
    rescales = _scale(source) != _scale(result)

    def function(value: int) -> int:
        x = abs(value - _zero(source))
        return (multiply_by_quantized(x, factor) if rescales else x) + _zero(result)

    return from_integers(source, result, function)


def _rsqrt(source: Tensor, result: Tensor) -> Table:
    """Source: RsqrtEvalQuantizedInt8 of tflite/kernels/elementwise.cc.

    Values below zero, which TFLite refuses while running, give the largest result.
    """
    shift = 20
    root = float(np.sqrt(_scale(source)))
    factor = quantize_multiplier(1.0 / float(F32(root) * _scale(result)))

    def function(value: int) -> int:
        x = value - _zero(source)
        if x <= 0:
            return BOUNDS[result.dtype][1]
        inverse = inverse_sqrt(x)
        scaled = multiply_by_quantized(1, Multiplier(inverse.value, inverse.shift + shift))
        return multiply_by_quantized(
            scaled, Multiplier(factor.value, factor.shift - shift)
        ) + _zero(result)

    return from_integers(source, result, function)


def _sqrt(source: Tensor, result: Tensor) -> Table:
    """Source: SqrtEvalQuantized of tflite/kernels/elementwise.cc, which cuts off, as this does.

    Values below zero, which TFLite refuses while running, count as zero.
    """

    def function(value: int) -> int:
        real = _scale(source) * F32(max(0, value - _zero(source)))
        return int(np.sqrt(real) / _scale(result)) + _zero(result)

    return from_integers(source, result, function)


def _saturate16(value: int) -> int:
    return max(-32768, min(32767, value))


def _multiply16(a: int, b: int) -> int:
    """gemmlowp's SaturatingRoundingDoublingHighMul of int16."""
    return 32767 if a == b == -32768 else (a * b + (1 << 14)) >> 15


def hard_swish_factors(source: Tensor, result: Tensor) -> tuple[Multiplier, Multiplier]:
    """Factors on the output and inside the ramp, in float32 as HardSwishPrepare computes them."""
    fine = F32(1 / 128) * _scale(source)
    ramp = F32(3) / F32(32768)
    return quantize_multiplier(float(fine / _scale(result))), quantize_multiplier(
        float(fine / ramp)
    )


def _to_int16(value: int) -> int:
    return 32767 if value >= (1 << 31) - 1 - (1 << 15) else (value + (1 << 15)) >> 16


def _hard_swish(source: Tensor, result: Tensor) -> Table:
    """Source: HardSwish of tflite/kernels/internal/reference/hard_swish.h, in 16-bit fixed point."""
    output, ramp = hard_swish_factors(source, result)

    def function(value: int) -> int:
        fine = (value - _zero(source)) << 7
        scaled = _multiply16(fine, _to_int16(output.value))
        x = fine
        if ramp.shift > 0:
            x = _saturate16(x << (ramp.shift - 1))
        x = _multiply16(x, _to_int16(ramp.value))
        if ramp.shift > 0:
            x = _saturate16(x << 1)
        if ramp.shift < 0:
            x = divide_by_pot(x, -ramp.shift)
        x = (x + (1 << 15)) >> 1
        product = x * scaled
        high = product >> 15 if product >= 0 else -(-product >> 15)
        return divide_by_pot(high, -output.shift) + _zero(result)

    return from_integers(source, result, function)


def _log(source: Tensor, result: Tensor) -> Table:
    """Source: LogLUTPrepare of tflite/kernels/elementwise.cc."""
    lowest = F32(BOUNDS[result.dtype][0] - _zero(result)) * _scale(result)
    return from_reals(
        source, result, lambda x: c_float("log")(float(x)) if x > 0 else float(lowest)
    )


def _logistic(x: np.float32) -> float:
    with np.errstate(over="ignore"):
        return float(F32(1) / (F32(1) + F32(c_float("exp")(-float(x)))))


def gelu(x: np.float32) -> float:
    """GELU by erfc.

    Source: GeluTransform of tflite/kernels/internal/reference/gelu.h.
    """
    return float(F32(0.5) * x * F32(c_float("erfc")(float(x * F32(-math.sqrt(0.5))))))


def gelu_tanh(x: np.float32) -> float:
    """GELU by tanh.

    Source: GeluTransformApproximate of the same file.
    """
    inner = F32(math.sqrt(2 / math.pi)) * (x + F32(0.044715) * x * x * x)
    return float(F32(0.5) * x * (F32(1) + F32(c_float("tanh")(float(inner)))))


def _negated(value: int) -> int:
    return -128 if value == -128 else -value


_REALS: dict[str, Callable[[np.float32], float]] = {
    "ELU": lambda x: c_float("expm1")(float(x)) if x < 0 else float(x),
    "EXP": lambda x: c_float("exp")(float(x)),
    "LOGISTIC": _logistic,
    "TANH": lambda x: c_float("tanh")(float(x)),
}
_INTEGERS: dict[str, Callable[[Tensor, Tensor], Table]] = {
    "ABS": _abs,
    "HARD_SWISH": _hard_swish,
    "LOG": _log,
    "NEG": lambda x, y: from_integers(x, y, _negated),
    "QUANTIZE": requantized,
    "RELU": functools.partial(_relu, low=0.0, high=None),
    "RELU6": functools.partial(_relu, low=0.0, high=6.0),
    "RELU_0_TO_1": functools.partial(_relu, low=0.0, high=1.0),
    "RELU_N1_TO_1": functools.partial(_relu, low=-1.0, high=1.0),
    "RSQRT": _rsqrt,
    "SQRT": _sqrt,
}

ONLY_INT8 = frozenset({"ABS", "ELU", "EXP", "LOG", "NEG", "RSQRT", "SQRT"})
"""Operators that TFLite has no uint8 kernel for."""


def table_of(node: Node, source: Tensor, result: Tensor) -> Table:
    """The table of a node's operator between two 8-bit tensors."""
    if isinstance(node.attributes, LeakyReluAttributes):
        return _leaky_relu(source, result, node.attributes.alpha)
    if isinstance(node.attributes, GeluAttributes):
        return from_reals(source, result, gelu_tanh if node.attributes.approximate else gelu)
    if node.op in _REALS:
        return from_reals(source, result, _REALS[node.op])
    return _INTEGERS[node.op](source, result)
