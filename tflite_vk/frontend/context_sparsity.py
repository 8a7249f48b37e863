"""Sparse constants that TFLite holds in memory, expanded by the reader of sparse constants in files.

`TfLiteSparsity` and the flatbuffer's SparsityParameters say the same; the classes here answer the
questions that `frontend.sparse` asks of a file's tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from tflite_vk import tflite_abi as abi
from tflite_vk.dtypes import DType
from tflite_vk.errors import ModelError
from tflite_vk.frontend.constants import _numbers
from tflite_vk.frontend.sparse import expand
from tflite_vk.shape import Shape

if TYPE_CHECKING:
    from tflite_vk.frontend.checked import View

_PACKED = frozenset({DType.INT4, DType.UINT4, DType.INT2})
_INT32_VECTOR = 1
_NO_VECTOR = 0


class _Table:
    """Answers as a flatbuffer table would."""

    def error(self, field: str, fact: str) -> ModelError:
        return ModelError(f"sparsity {field}: {fact}")


class _Vector(_Table):
    def __init__(self, values: tuple[int, ...]) -> None:
        self._values = values

    def array(self, field: str) -> npt.NDArray[np.int32]:
        del field
        return np.array(self._values, np.int32)


class _Level(_Table):
    def __init__(self, metadata: abi.DimensionMetadata) -> None:
        self._numbers: dict[str, int] = {
            "Format": metadata.format,
            "DenseSize": metadata.dense_size,
            "ArraySegmentsType": _INT32_VECTOR if metadata.array_segments else _NO_VECTOR,
            "ArrayIndicesType": _INT32_VECTOR if metadata.array_indices else _NO_VECTOR,
        }
        self._vectors = {
            "ArraySegments": abi.read_ints(metadata.array_segments),
            "ArrayIndices": abi.read_ints(metadata.array_indices),
        }

    def number(self, field: str) -> int:
        return self._numbers[field]

    def table_of(self, field: str, kind: str) -> _Vector:
        del kind
        return _Vector(self._vectors[field])


class _Sparsity(_Table):
    def __init__(self, sparsity: abi.Sparsity) -> None:
        self._sparsity = sparsity

    def numbers(self, field: str) -> tuple[int, ...]:
        is_order = field == "TraversalOrder"
        return abi.read_ints(
            self._sparsity.traversal_order if is_order else self._sparsity.block_map
        )

    def tables(self, field: str) -> Iterator[_Level]:
        del field
        levels = self._sparsity.dim_metadata
        return (_Level(levels[i]) for i in range(self._sparsity.dim_metadata_size))


def expand_sparse(
    sparsity: abi.Sparsity, raw: npt.NDArray[np.uint8], dtype: DType, shape: Shape
) -> npt.NDArray[np.generic]:
    """The dense value of a sparse constant.

    Args:
        sparsity: TfLiteTensor.sparsity.
        raw: bytes of the stored elements.
        dtype: element type.
        shape: dense shape.

    Raises:
        ModelError: the parameters contradict each other, the shape or the number of values.
    """
    values = _numbers(raw, dtype)
    adapter = cast("View", _Sparsity(sparsity))
    dense: npt.NDArray[Any] = expand(adapter, values, shape, is_packed=dtype in _PACKED)
    dense.setflags(write=False)
    return dense
