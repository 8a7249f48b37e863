"""Element types of tensors: TFLite's numbering and name, NumPy's type, and how the device stores them."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class DTypeInfo:
    """What one element type means on each side.

    Attributes:
        code: TfLiteType value, which the delegate ABI uses.
        schema_code: TensorType value, which the flatbuffer uses.
        numpy: NumPy type of the host array, None where NumPy has none.
        lanes_per_word: elements in one 32-bit device word; 0 where one takes more, or the device
            can't store it.
    """

    code: int
    schema_code: int
    numpy: npt.DTypeLike | None
    lanes_per_word: int


class DType(enum.Enum):
    """Element type, named as TFLite names it."""

    FLOAT32 = DTypeInfo(1, 0, np.float32, 1)
    FLOAT16 = DTypeInfo(10, 1, np.float16, 2)
    INT32 = DTypeInfo(2, 2, np.int32, 1)
    UINT8 = DTypeInfo(3, 3, np.uint8, 4)
    INT64 = DTypeInfo(4, 4, np.int64, 0)
    STRING = DTypeInfo(5, 5, None, 0)
    BOOL = DTypeInfo(6, 6, np.bool_, 1)
    INT16 = DTypeInfo(7, 7, np.int16, 2)
    COMPLEX64 = DTypeInfo(8, 8, np.complex64, 0)
    INT8 = DTypeInfo(9, 9, np.int8, 4)
    FLOAT64 = DTypeInfo(11, 10, np.float64, 0)
    COMPLEX128 = DTypeInfo(12, 11, np.complex128, 0)
    UINT64 = DTypeInfo(13, 12, np.uint64, 0)
    RESOURCE = DTypeInfo(14, 13, None, 0)
    VARIANT = DTypeInfo(15, 14, None, 0)
    UINT32 = DTypeInfo(16, 15, np.uint32, 1)
    UINT16 = DTypeInfo(17, 16, np.uint16, 0)
    INT4 = DTypeInfo(18, 17, None, 0)
    BFLOAT16 = DTypeInfo(19, 18, None, 0)
    INT2 = DTypeInfo(20, 19, None, 0)
    UINT4 = DTypeInfo(21, 20, None, 0)

    @property
    def numpy(self) -> np.dtype[np.generic]:
        """NumPy type of the host array; TypeError where NumPy has none."""
        if self.value.numpy is None:
            raise TypeError(f"{self.name} has no NumPy type")
        return np.dtype(self.value.numpy)

    @property
    def lanes_per_word(self) -> int:
        """Elements in one 32-bit device word; 0 where one takes more, or has no storage."""
        lanes: int = self.value.lanes_per_word
        return lanes

    @property
    def is_float(self) -> bool:
        """True for the floating types a kernel computes in."""
        return self in (DType.FLOAT32, DType.FLOAT16)

    @property
    def is_quantized(self) -> bool:
        """True for the types whose run-time values stand for reals by a scale and a zero point."""
        return self in (DType.INT8, DType.UINT8, DType.INT16)

    @classmethod
    def from_tflite(cls, code: int) -> DType | None:
        """The type with this TfLiteType number, or None for one this version doesn't know."""
        return _BY_CODE.get(code)

    @classmethod
    def from_schema(cls, code: int) -> DType | None:
        """The type with this flatbuffer TensorType number, or None."""
        return _BY_SCHEMA_CODE.get(code)


_BY_CODE = {t.value.code: t for t in DType}
_BY_SCHEMA_CODE = {t.value.schema_code: t for t in DType}
