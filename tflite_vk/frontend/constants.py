"""Buffers of a model as arrays: in place where they can be, unpacked or expanded where they can't."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tflite_vk.dtypes import DType
from tflite_vk.frontend.sparse import expand
from tflite_vk.shape import Shape, ceil_div, num_elements

if TYPE_CHECKING:
    from tflite_vk.frontend.checked import CheckedFile, View

Array = npt.NDArray[Any]

_PACKED_BITS = {DType.INT4: 4, DType.UINT4: 4, DType.INT2: 2}
_OPAQUE = frozenset({DType.RESOURCE, DType.VARIANT})

_NOTHING: Array = np.empty(0, np.uint8)

MAX_EXPANSION = 1024
"""How many times the size of the file all sparse constants together may expand to.

A kilobyte can ask for gigabytes; a real pruned model stays below a hundred times.
"""


def storage_bytes(dtype: DType, elements: int) -> int:
    """Bytes of a buffer with so many elements of a fixed-size type."""
    if dtype in _PACKED_BITS:
        return ceil_div(elements * _PACKED_BITS[dtype], 8)
    return elements * (2 if dtype is DType.BFLOAT16 else dtype.numpy.itemsize)


def is_fixed_size(dtype: DType) -> bool:
    """True where the number of elements gives the number of bytes."""
    return dtype not in _OPAQUE and dtype is not DType.STRING


class Constants:
    """The buffers of one model, decoded on first use and once for each element type.

    Without the cache, thousands of tensors that name one buffer would each unpack it again.
    """

    def __init__(self, file: CheckedFile, buffers: list[View]) -> None:
        self._file = file
        self._buffers = buffers
        self._flat: dict[tuple[int, DType], Array] = {}
        self._expansion_left = MAX_EXPANSION * file.size + (1 << 20)

    def __len__(self) -> int:
        return len(self._buffers)

    def value(self, tensor: View, buffer: int, dtype: DType, shape: Shape) -> Array | None:
        """The value of a constant tensor in its shape, None where its buffer is empty.

        Raises:
            ModelError: the buffer and the tensor do not fit each other.
        """
        raw = self._raw(self._buffers[buffer]) if buffer else None
        if raw is None or raw.size == 0:
            return None
        if dtype in _OPAQUE:
            raise tensor.error("Buffer", f"a {dtype.name} tensor can't be constant")
        sparsity = tensor.table("Sparsity")
        if sparsity is not None:
            return self._sparse(sparsity, raw, dtype, shape)
        flat = self._decoded(tensor, buffer, raw, dtype, num_elements(shape))
        return flat.reshape(shape)

    def empty(self, dtype: DType, shape: Shape) -> Array | None:
        """The value of a constant without elements; None for a type that has no values."""
        if dtype in _OPAQUE:
            return None
        kind = np.dtype(object) if dtype is DType.STRING else _numbers(_NOTHING, dtype).dtype
        return np.empty(shape, kind)

    def _raw(self, buffer: View) -> Array | None:
        """Bytes of a buffer: in its vector, or past the flatbuffer in models of over 2 GB."""
        if buffer.has("Size"):
            offset, size = buffer.number("Offset"), buffer.number("Size")
            if offset > 1:
                if offset + size > self._file.size:
                    raise buffer.error(
                        "Offset",
                        f"bytes {offset} to {offset + size} lie outside the file of"
                        f" {self._file.size} bytes",
                    )
                return np.frombuffer(self._file.data, np.uint8, size, offset)
        return buffer.array("Data")

    def _decoded(self, tensor: View, buffer: int, raw: Array, dtype: DType, elements: int) -> Array:
        if dtype is not DType.STRING:
            expected = storage_bytes(dtype, elements)
            if raw.size != expected:
                raise tensor.error(
                    "Buffer",
                    f"buffer {buffer} holds {raw.size} bytes, {elements} elements of"
                    f" {dtype.name} take {expected}",
                )
        key = (buffer, dtype)
        if key not in self._flat:
            flat = _strings(tensor, raw) if dtype is DType.STRING else _numbers(raw, dtype)
            flat.setflags(write=False)
            self._flat[key] = flat
        flat = self._flat[key]
        if flat.size < elements or (dtype is DType.STRING and flat.size != elements):
            raise tensor.error("Buffer", f"{flat.size} elements stored, {elements} in the shape")
        return flat[:elements]

    def _sparse(self, sparsity: View, raw: Array, dtype: DType, shape: Shape) -> Array:
        if not is_fixed_size(dtype):
            raise sparsity.error("", f"a {dtype.name} tensor can't be sparse")
        is_packed = dtype in _PACKED_BITS
        if not is_packed and raw.size % storage_bytes(dtype, 1):
            raise sparsity.error("", f"{raw.size} bytes are no whole number of {dtype.name}")
        values = _numbers(raw, dtype)
        self._expansion_left -= num_elements(shape) * values.dtype.itemsize
        if self._expansion_left < 0:
            raise sparsity.error(
                "", f"sparse constants expand to over {MAX_EXPANSION} times the size of the file"
            )
        dense = expand(sparsity, values, shape, is_packed=is_packed)
        dense.setflags(write=False)
        return dense


def _numbers(raw: Array, dtype: DType) -> Array:
    """All elements of a buffer; packed types become one element each, as int8 or uint8."""
    if dtype in _PACKED_BITS:
        return _unpack(raw, _PACKED_BITS[dtype], signed=dtype is not DType.UINT4)
    if dtype is DType.BOOL:
        # NumPy's loops rely on 0 and 1; a file may say "true" with any other byte.
        flags: Array = raw != 0
        return flags
    kind = np.dtype(np.uint16) if dtype is DType.BFLOAT16 else dtype.numpy
    whole: Array = raw[: raw.size // kind.itemsize * kind.itemsize].view(kind.newbyteorder("<"))
    return whole.astype(kind, copy=not whole.flags.aligned)


def _unpack(raw: Array, bits: int, *, signed: bool) -> Array:
    """Elements of `bits` bits, the first in the low bits of each byte, sign-extended."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    parts = (raw[:, None] >> shifts) & np.uint8((1 << bits) - 1)
    flat = parts.reshape(-1).astype(np.uint8)
    if not signed:
        return flat
    return (flat << np.uint8(8 - bits)).view(np.int8) >> np.int8(8 - bits)


def _strings(tensor: View, raw: Array) -> Array:
    """Strings of TFLite's string buffer, as bytes: count, offsets and the end, then the bytes."""
    if raw.size < 8:
        raise tensor.error("Buffer", f"{raw.size} bytes are no string buffer (at least 8)")
    words = raw[: raw.size // 4 * 4].view("<i4")
    count = int(words[0])
    if not 0 <= count <= words.size - 2:
        raise tensor.error("Buffer", f"{count} strings do not fit {raw.size} bytes")
    offsets = words[1 : count + 2].astype(np.int64)
    if offsets[0] < 0 or offsets[-1] > raw.size or np.any(np.diff(offsets) < 0):
        raise tensor.error("Buffer", f"string offsets run backwards or past {raw.size} bytes")
    data = raw.tobytes()
    out = np.empty(count, object)
    for i in range(count):
        out[i] = data[offsets[i] : offsets[i + 1]]
    return out
