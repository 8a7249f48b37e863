"""Options of the custom operators we know, from the bytes a model carries for them.

Shared by both frontends: the flatbuffer's custom_options and the ABI's custom_initial_data are the
same bytes. Source: MediaPipe's transpose_conv_bias.cc, max_pool_argmax.cc, max_unpooling.cc and
TFLite's detection_postprocess.cc.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable, Sequence
from typing import Any

from flatbuffers import flexbuffers

from tflite_vk.ir.attributes import (
    ACTIVATIONS,
    Attributes,
    CustomAttributes,
    DetectionPostProcessAttributes,
    Padding,
    Pool2DAttributes,
    TransposeConvAttributes,
    UnreadAttributes,
)

_PADDINGS: dict[int, Padding] = {1: "SAME", 2: "VALID"}
"""TfLitePadding, in which 0 means unknown."""


class _UnreadableError(Exception):
    """The bytes are not what the operator's own kernel would read."""


def read_custom_options(name: str, data: bytes) -> Attributes:
    """The attributes of a custom operator.

    Unknown operators keep their bytes; known ones whose bytes make no sense are never accepted.
    """
    reader = _READERS.get(name)
    if reader is None:
        return CustomAttributes(data)
    try:
        return reader(data)
    except _UnreadableError as error:
        return UnreadAttributes(f"custom options of {name}: {error}")


def write_custom_options(name: str, attributes: Attributes) -> bytes:
    """The bytes that `read_custom_options` reads back as these attributes."""
    if isinstance(attributes, CustomAttributes):
        return attributes.data
    if name == "Convolution2DTransposeBias" and isinstance(attributes, TransposeConvAttributes):
        return struct.pack(
            "<5i",
            _padding_code(attributes.padding),
            attributes.stride_w,
            attributes.stride_h,
            ACTIVATIONS.index(attributes.fused_activation_function),
            0,
        )
    if name in _POOLS and isinstance(attributes, Pool2DAttributes):
        return struct.pack(
            "<10i",
            _padding_code(attributes.padding),
            attributes.stride_w,
            attributes.stride_h,
            attributes.filter_width,
            attributes.filter_height,
            ACTIVATIONS.index(attributes.fused_activation_function),
            *(0, 0, 0, 0),
        )
    if isinstance(attributes, DetectionPostProcessAttributes):
        return bytes(flexbuffers.Dumps(dataclasses.asdict(attributes)))
    raise TypeError(f"{name}: no custom options are written from {type(attributes).__name__}")


def _padding_code(padding: Padding) -> int:
    return next(code for code, name in _PADDINGS.items() if name == padding)


def _integers(data: bytes, names: Sequence[str], required: int) -> dict[str, int]:
    """The leading int32 members of a C structure; those past the end of the data are 0.

    Writers cut the structure short: MediaPipe's own models carry 12 of its 20 bytes.
    """
    given = len(data) // 4
    if given < required:
        raise _UnreadableError(f"{len(data)} bytes, at least {required * 4} needed")
    values = struct.unpack_from(f"<{min(given, len(names))}i", data)
    return {name: values[i] if i < len(values) else 0 for i, name in enumerate(names)}


def _padding(code: int) -> Padding:
    if code not in _PADDINGS:
        raise _UnreadableError(f"padding {code} is unknown")
    return _PADDINGS[code]


def _read_transpose_conv(data: bytes) -> Attributes:
    values = _integers(data, ("padding", "stride_w", "stride_h", "activation"), required=3)
    return TransposeConvAttributes(
        fused_activation_function=_activation(values["activation"]),
        padding=_padding(values["padding"]),
        stride_w=values["stride_w"],
        stride_h=values["stride_h"],
    )


def _read_pool(data: bytes) -> Attributes:
    names = ("padding", "stride_w", "stride_h", "filter_width", "filter_height", "activation")
    values = _integers(data, names, required=5)
    return Pool2DAttributes(
        fused_activation_function=_activation(values["activation"]),
        padding=_padding(values["padding"]),
        stride_w=values["stride_w"],
        stride_h=values["stride_h"],
        filter_width=values["filter_width"],
        filter_height=values["filter_height"],
    )


def _activation(code: int) -> Any:
    if not 0 <= code < len(ACTIVATIONS):
        raise _UnreadableError(f"activation {code} is unknown")
    return ACTIVATIONS[code]


def _read_detection_post_process(data: bytes) -> Attributes:
    try:
        options = flexbuffers.GetRoot(bytearray(data)).AsMap
        values: dict[str, Any] = {}
        for field in dataclasses.fields(DetectionPostProcessAttributes):
            kind = type(field.default)
            try:
                entry = options[field.name]
            except KeyError:
                if field.name not in ("detections_per_class", "use_regular_nms"):
                    raise
                continue  # the two that TFLite's kernel takes as optional
            values[field.name] = _flexbuffer_value(entry, kind)
    except Exception as error:  # the flexbuffers reader raises whatever a bad offset leads to
        raise _UnreadableError(f"no flexbuffer map of its options ({error!r})") from None
    return DetectionPostProcessAttributes(**values)


def _flexbuffer_value(entry: Any, kind: type) -> bool | int | float:
    if kind is bool:
        return bool(entry.AsBool)
    return int(entry.AsInt) if kind is int else float(entry.AsFloat)


_POOLS = frozenset({"MaxPoolingWithArgmax2D", "MaxUnpooling2D"})

_READERS: dict[str, Callable[[bytes], Attributes]] = {
    "Convolution2DTransposeBias": _read_transpose_conv,
    "MaxPoolingWithArgmax2D": _read_pool,
    "MaxUnpooling2D": _read_pool,
    "TFLite_Detection_PostProcess": _read_detection_post_process,
}
