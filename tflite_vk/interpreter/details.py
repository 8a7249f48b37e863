"""Tensor details with LiteRT's dictionary keys and value types."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflite_vk.dtypes import DType
from tflite_vk.ir.graph import Tensor

_NUMPY_TYPES: dict[DType, type[np.generic]] = {
    DType.STRING: np.bytes_,
    DType.RESOURCE: np.object_,
    DType.VARIANT: np.object_,
    DType.INT4: np.int8,
    DType.INT2: np.int8,
    DType.UINT4: np.uint8,
}


def numpy_type(dtype: DType) -> type[np.generic] | None:
    """NumPy's scalar type of the arrays that hold an element type, None where it has none."""
    if dtype in _NUMPY_TYPES:
        return _NUMPY_TYPES[dtype]
    return None if dtype.value.numpy is None else dtype.numpy.type


def tensor_details(tensor: Tensor) -> dict[str, Any]:
    """What `get_input_details` and the like say of a tensor."""
    q = tensor.quantization
    shape = np.array(tensor.shape, np.int32)
    signature = tensor.shape_signature
    return {
        "name": tensor.name,
        "index": tensor.id,
        "shape": shape,
        "shape_signature": shape.copy() if signature is None else np.array(signature, np.int32),
        "dtype": numpy_type(tensor.dtype),
        # The old form, which has one scale and no place for more.
        "quantization": (q.scale[0], q.zero_point[0]) if q and q.is_per_tensor else (0.0, 0),
        "quantization_parameters": {
            "scales": np.array(q.scale if q else (), np.float32),
            "zero_points": np.array(q.zero_point if q else (), np.int32),
            "quantized_dimension": q.axis if q else 0,
            "block_size": 0,
        },
        "sparsity_parameters": {},
    }
