"""Host arrays to device words and back (layout of `shape.py`, storage types of `tensor.glsl`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from tflite_vk.dtypes import DType
from tflite_vk.program import Words
from tflite_vk.shape import LANES, padded_elements, vectors_per_row

Storage = Literal["f32", "f16", "i32", "u32", "i64", "i8", "u8", "i16"]
"""How the device keeps elements; names the type in shaders. BOOL is u32, 0 or 1; i64 is two words,
the low one first."""

STORAGE_NUMPY: dict[Storage, npt.DTypeLike] = {
    "f32": np.float32, "f16": np.float16, "i32": np.int32, "u32": np.uint32,
    "i64": np.int64, "i8": np.int8, "u8": np.uint8, "i16": np.int16,
}  # fmt: skip

_STORAGE_OF: dict[DType, Storage] = {
    DType.FLOAT32: "f32",
    DType.FLOAT16: "f16",
    DType.INT32: "i32",
    DType.INT64: "i64",
    DType.BOOL: "u32",
    DType.UINT32: "u32",
    DType.INT8: "i8",
    DType.UINT8: "u8",
    DType.INT16: "i16",
}

FLOAT16_MAX = 65504.0


def storage_of(dtype: DType, *, half: bool = False) -> Storage | None:
    """Storage of run-time values of a type; None where the device has none.

    Args:
        dtype: TFLite's element type.
        half: float32 values are kept as float16 (precision="fp16").
    """
    if half and dtype is DType.FLOAT32:
        return "f16"
    return _STORAGE_OF.get(dtype)


def element_bytes(storage: Storage) -> int:
    """Bytes of one element."""
    return np.dtype(STORAGE_NUMPY[storage]).itemsize


def words_for(shape: Sequence[int], storage: Storage) -> int:
    """Words of a whole tensor; at least four, since Vulkan has no empty buffers."""
    return max(4, padded_elements(shape) * element_bytes(storage) // 4)


def tensor_view(words: Words, shape: Sequence[int], storage: Storage) -> npt.NDArray[np.generic]:
    """A tensor in device words as an array of its shape, without the padding lanes; no copy."""
    flat = words.view(STORAGE_NUMPY[storage])[: padded_elements(shape)]
    if not shape:
        return flat[:1].reshape(())
    return flat.reshape(*shape[:-1], vectors_per_row(shape) * LANES)[..., : shape[-1]]


def store(words: Words, array: npt.NDArray[np.generic], storage: Storage) -> None:
    """Write a host array into a device buffer's words; padding lanes keep what they held.

    float32 values beyond float16's range saturate at 65504 where storage is f16, so that they
    don't turn into infinities; infinities and NaN stay.
    """
    if storage == "f16" and array.dtype == np.float32:
        array = np.where(np.isinf(array), array, np.clip(array, -FLOAT16_MAX, FLOAT16_MAX))
    tensor_view(words, array.shape, storage)[...] = array


def pack(array: npt.NDArray[np.generic], storage: Storage) -> Words:
    """Device words of a constant; padding lanes are zero."""
    words = np.zeros(words_for(array.shape, storage), np.uint32)
    if array.size:
        store(words, array, storage)
    return words


def load(words: Words, out: npt.NDArray[np.generic], storage: Storage) -> None:
    """Read a tensor from device words into a host array of its shape."""
    out[...] = tensor_view(words, out.shape, storage)
