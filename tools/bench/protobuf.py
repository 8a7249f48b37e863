"""Just enough of protobuf's wire format to write an ONNX file without the package `onnx`.

Source: protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

Value = int | float | str | bytes
Field = tuple[int, Value]
"""A field's number and its value; messages are bytes already."""


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1  # negative numbers take ten bytes
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _field(number: int, value: Value) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    if isinstance(value, float):
        return _varint(number << 3 | 5) + struct.pack("<f", value)
    raw = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(raw)) + raw


def message(*fields: Field) -> bytes:
    """A message of fields in their order; a repeated field stands as often as it has values."""
    return b"".join(_field(number, value) for number, value in fields)


def repeated(number: int, values: Iterable[Value]) -> list[Field]:
    """A repeated field."""
    return [(number, value) for value in values]
