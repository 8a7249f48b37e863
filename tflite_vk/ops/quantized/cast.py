"""CAST to and from int8, uint8 and int16; scales mean nothing to it.

Source: tflite/kernels/cast.cc: floats saturate, wider integers wrap.
"""

from __future__ import annotations

from tflite_vk.dtypes import DType
from tflite_vk.ops.cast import Cast
from tflite_vk.ops.registry import register


@register
class QuantizedCast(Cast):
    """The same values in another element type."""

    kind = "quantized"
    dtypes = Cast.dtypes | {DType.INT8, DType.UINT8, DType.INT16}
    notes = "floats saturate and NaN becomes the highest value, as in TFLite; wider integers wrap"
