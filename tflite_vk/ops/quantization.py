"""Scales, zero points and clamps of quantized tensors, as TFLite's kernels derive them.

8-bit kernels compute in int8. A uint8 tensor becomes one by flipping the top bit of each byte, which
subtracts 128 from every element, from the zero point and from the bounds: `Affine` holds the numbers
after that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import Activation
from tflite_vk.ir.graph import Tensor
from tflite_vk.shape import LANES, round_up

FLIP_U8 = 0x80808080
"""Flips the top bit of each byte of a word: uint8 to int8 and back, 128 less and more."""

EIGHT_BIT = frozenset({DType.INT8, DType.UINT8})
INTEGERS = EIGHT_BIT | {DType.INT16}
"""Types that quantized tensors have while running."""

CLAMPS: frozenset[Activation] = frozenset({"NONE", "RELU", "RELU6", "RELU_N1_TO_1"})
"""Fused activations that quantized kernels know; TFLite refuses the others or ignores them."""


BOUNDS: dict[DType, tuple[int, int]] = {
    DType.INT8: (-128, 127),
    DType.UINT8: (0, 255),
    DType.INT16: (-32768, 32767),
    DType.INT32: (-(1 << 31), (1 << 31) - 1),
}
"""Lowest and highest value of integer types."""


def round_half_away(value: float) -> int:
    """C's round()."""
    return int(math.copysign(math.floor(abs(value) + 0.5), value))


@dataclass(frozen=True)
class Multiplier:
    """A real factor as TFLite's fixed point: value * 2^(shift - 31), value < 2^31."""

    value: int
    shift: int


def quantize_multiplier(real: float) -> Multiplier:
    """Fixed-point form of a factor >= 0.

    Source: QuantizeMultiplier of tflite/kernels/internal/quantization_util.cc.
    """
    if real == 0.0:
        return Multiplier(0, 0)
    fraction, shift = math.frexp(real)
    value = round_half_away(fraction * (1 << 31))
    if value == 1 << 31:
        value //= 2
        shift += 1
    return Multiplier(value, shift) if shift >= -31 else Multiplier(0, 0)


def is_power_of_two(scale: float) -> bool:
    """True where a scale is as near to a power of two as TFLite wants it.

    Source: CheckedLog2 of tflite/kernels/internal/quantization_util.cc.
    """
    log2 = math.log2(scale)
    return abs(log2 - round(log2)) < 1e-3


def multiply_by_quantized(x: int, multiplier: Multiplier) -> int:
    """What the device computes: MultiplyByQuantizedMultiplier with its two roundings, in int32.

    Source: tflite/kernels/internal/common.cc; SaturatingRoundingDoublingHighMul and
    RoundingDivideByPOT of gemmlowp's fixedpoint.h.
    """
    shifted = to_int32(x << max(multiplier.shift, 0))
    high = (shifted * multiplier.value + (1 << 30)) >> 31
    return divide_by_pot(high, max(-multiplier.shift, 0))


def divide_by_pot(x: int, exponent: int) -> int:
    """X / 2^exponent to nearest, ties away from zero."""
    mask = (1 << exponent) - 1
    return (x >> exponent) + ((x & mask) > (mask >> 1) + (x < 0))


def to_int32(x: int) -> int:
    """The value an int32 holds after an overflow."""
    return (x + (1 << 31)) % (1 << 32) - (1 << 31)


@dataclass(frozen=True)
class DoubleScale:
    """A positive double as mantissa * 2^-shift with 53 bits, for the device's exact product."""

    mantissa: int
    shift: int


def split_double(real: float) -> DoubleScale:
    """The parts of a double >= 0."""
    fraction, exponent = math.frexp(real)
    return DoubleScale(int(fraction * (1 << 53)), 53 - exponent if real else 0)


@dataclass(frozen=True)
class Affine:
    """Per-tensor quantization as kernels of int8 or int16 read it.

    Attributes:
        scale: real per step, a float32 value.
        zero_point: 128 less than the tensor's where it is uint8.
        flip: word that a kernel applies to each group with XOR.
        lowest, highest: bounds of the type, 128 less where it is uint8.
    """

    scale: float
    zero_point: int
    flip: int
    lowest: int
    highest: int


def affine(tensor: Tensor) -> Affine:
    """Quantization of an int8, uint8 or int16 tensor; TFLite takes 1 and 0 where there is none."""
    q = tensor.quantization
    scale, zero_point = (q.scale[0], q.zero_point[0]) if q is not None else (0.0, 0)
    if tensor.dtype is DType.INT16:
        return Affine(scale, zero_point, 0, -32768, 32767)
    is_u8 = tensor.dtype is DType.UINT8
    return Affine(scale, zero_point - 128 * is_u8, FLIP_U8 if is_u8 else 0, -128, 127)


def check_affine(tensor: Tensor, role: str) -> str | None:
    """Reason where a tensor isn't quantized by one positive scale."""
    q = tensor.quantization
    if q is None:
        return f"{role} is {tensor.dtype.name} without a scale"
    if not q.is_per_tensor:
        return f"{role} has {len(q.scale)} scales (supported: 1)"
    if not (q.scale[0] > 0 and math.isfinite(q.scale[0])):
        return f"{role} has scale {q.scale[0]} (supported: above 0)"
    return None


def same_quantization(a: Tensor, b: Tensor) -> bool:
    """True where equal integers mean equal reals."""
    return affine(a) == affine(b)


def divide_float32(a: float, b: float) -> float:
    """A / b in float32."""
    return float(np.float32(a) / np.float32(b))


def activation_bounds(activation: Activation, result: Tensor) -> tuple[int, int]:
    """Lowest and highest integer that a fused activation lets through, as `Affine` counts.

    Source: CalculateActivationRangeQuantized of tflite/kernels/kernel_util.cc.
    """
    q = affine(result)
    reals: dict[Activation, tuple[float | None, float | None]] = {
        "RELU": (0.0, None),
        "RELU6": (0.0, 6.0),
        "RELU_N1_TO_1": (-1.0, 1.0),
    }
    low, high = reals.get(activation, (None, None))

    def quantized(real: float) -> int:
        return q.zero_point + round_half_away(divide_float32(real, q.scale))

    lowest = q.lowest if low is None else max(q.lowest, quantized(low))
    highest = q.highest if high is None else min(q.highest, quantized(high))
    return lowest, highest


def check_activation(activation: Activation) -> str | None:
    """Reason where a quantized kernel has no such fused activation."""
    if activation in CLAMPS:
        return None
    return f"fused activation {activation} of integers has no kernel (supported: {', '.join(sorted(CLAMPS))})"


def byte_word(value: int) -> int:
    """A word with the byte in all four lanes."""
    return (value & 0xFF) * 0x01010101


def channel_words(
    bias: npt.NDArray[np.int64], scales: Sequence[float], *, as_double: bool
) -> npt.NDArray[np.int32]:
    """What the device adds and multiplies for each output channel (channels.glsl).

    Args:
        bias: int32 values, possibly past their range: sums wrap as TFLite's do.
        scales: real factor of each channel, or one for all.
        as_double: keep the factors as doubles.

    Returns:
        For each group of four channels: biases, multipliers, shifts, upper mantissa bits.
    """
    channels = len(bias)
    words = np.zeros((4, round_up(channels, LANES)), np.int64)
    words[0, :channels] = bias
    for i, scale in enumerate(scales):
        which = slice(i, channels if len(scales) == 1 else i + 1)
        if as_double:
            double = split_double(scale)
            words[1, which] = double.mantissa & 0xFFFFFFFF
            words[2, which] = double.shift
            words[3, which] = double.mantissa >> 32
        else:
            fixed = quantize_multiplier(scale)
            words[1, which], words[2, which] = fixed.value, fixed.shift
    groups = words.reshape(4, -1, LANES).transpose(1, 0, 2)
    return groups.astype(np.uint64).astype(np.uint32).view(np.int32)
