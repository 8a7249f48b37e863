"""Options of builtin operators as TFLite has parsed them: builtin_op_data.h in ctypes.

The fields carry the names of our attributes, so that reading is one loop over the dataclass. Only
fields that every supported runtime has are declared: TFLite appends new ones at the end.

Source: LiteRT's tflite/converter/core/c/builtin_op_data.h.
"""

from __future__ import annotations

import ctypes
import dataclasses
from ctypes import c_bool, c_char_p, c_float, c_int, c_int32, c_size_t, c_void_p
from typing import Any

from tflite_vk.dtypes import DType
from tflite_vk.frontend.builtin_options import DTYPES, OPTIONS, STRINGS, WITHOUT_OPTIONS
from tflite_vk.ir import attributes as ir
from tflite_vk.tflite_abi import read_bytes

Fields = list[tuple[str, Any]]

_ACTIVATION: Fields = [("fused_activation_function", c_int)]
_STRIDES: Fields = [("padding", c_int), ("stride_w", c_int), ("stride_h", c_int)]
_DILATIONS: Fields = [("dilation_w_factor", c_int), ("dilation_h_factor", c_int)]
_CLIPS: Fields = [*_ACTIVATION, ("cell_clip", c_float), ("proj_clip", c_float)]
_BIAS_TYPE: Fields = [("quantized_bias_type", c_int)]
_ASYMMETRIC: Fields = [("asymmetric_quantize_inputs", c_bool)]
_BEGIN_TO_SHRINK: Fields = [
    (f"{name}_mask", c_int) for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
]
_CONV_3D: Fields = [
    *_STRIDES,
    ("stride_d", c_int),
    *_DILATIONS,
    ("dilation_d_factor", c_int),
    *_ACTIVATION,
]
_POOL: Fields = [*_STRIDES, ("filter_width", c_int), ("filter_height", c_int), *_ACTIVATION]
_RESIZE: Fields = [("align_corners", c_bool), ("half_pixel_centers", c_bool)]
_REDUCER: Fields = [("keep_dims", c_bool)]

FIELDS: dict[str, Fields] = {
    "CONV_2D": [*_STRIDES, *_ACTIVATION, *_DILATIONS, *_BIAS_TYPE],
    "DEPTHWISE_CONV_2D": [*_STRIDES, ("depth_multiplier", c_int), *_ACTIVATION, *_DILATIONS],
    "CONV_3D": _CONV_3D,
    "CONV_3D_TRANSPOSE": _CONV_3D,
    "TRANSPOSE_CONV": [*_STRIDES, *_ACTIVATION, *_BIAS_TYPE],
    "AVERAGE_POOL_2D": _POOL,
    "MAX_POOL_2D": _POOL,
    "L2_POOL_2D": _POOL,
    "FULLY_CONNECTED": [
        *_ACTIVATION,
        ("weights_format", c_int),
        ("keep_num_dims", c_bool),
        *_ASYMMETRIC,
        *_BIAS_TYPE,
    ],
    "ADD": [*_ACTIVATION, ("pot_scale_int16", c_bool)],
    "SUB": [*_ACTIVATION, ("pot_scale_int16", c_bool)],
    "MUL": _ACTIVATION,
    "DIV": _ACTIVATION,
    "L2_NORMALIZATION": _ACTIVATION,
    "CONCATENATION": [("axis", c_int), *_ACTIVATION],
    "SOFTMAX": [("beta", c_float)],
    "BATCH_MATMUL": [("adj_x", c_bool), ("adj_y", c_bool), *_ASYMMETRIC],
    "RESIZE_BILINEAR": _RESIZE,
    "RESIZE_NEAREST_NEIGHBOR": _RESIZE,
    "RESHAPE": [("new_shape", c_int32 * 8), ("new_shape_size", c_int)],
    "SQUEEZE": [("squeeze_dims", c_int32 * 8), ("squeeze_dims_size", c_int)],
    "STRIDED_SLICE": [*_BEGIN_TO_SHRINK, ("offset", c_bool)],
    "GATHER": [("axis", c_int), ("batch_dims", c_int)],
    **dict.fromkeys(
        ("MEAN", "SUM", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_ANY", "REDUCE_ALL"),
        _REDUCER,
    ),
    "SPLIT": [("num_splits", c_int)],
    "SPLIT_V": [("num_splits", c_int)],
    "PACK": [("values_count", c_int), ("axis", c_int)],
    "UNPACK": [("num", c_int), ("axis", c_int)],
    "ONE_HOT": [("axis", c_int)],
    "CAST": [("in_data_type", c_int), ("out_data_type", c_int)],
    "LEAKY_RELU": [("alpha", c_float)],
    "MIRROR_PAD": [("mode", c_int)],
    "SPACE_TO_DEPTH": [("block_size", c_int)],
    "DEPTH_TO_SPACE": [("block_size", c_int)],
    "CUMSUM": [("exclusive", c_bool), ("reverse", c_bool)],
    "GELU": [("approximate", c_bool)],
    "LSTM": [*_CLIPS, ("kernel_type", c_int), *_ASYMMETRIC],
    "UNIDIRECTIONAL_SEQUENCE_LSTM": [
        *_CLIPS,
        ("time_major", c_bool),
        *_ASYMMETRIC,
        ("diagonal_recurrent_tensors", c_bool),
    ],
    "BIDIRECTIONAL_SEQUENCE_LSTM": [
        *_CLIPS,
        ("merge_outputs", c_bool),
        ("time_major", c_bool),
        *_ASYMMETRIC,
    ],
    "RNN": [*_ACTIVATION, *_ASYMMETRIC],
    "UNIDIRECTIONAL_SEQUENCE_RNN": [("time_major", c_bool), *_ACTIVATION, *_ASYMMETRIC],
    "BIDIRECTIONAL_SEQUENCE_RNN": [
        ("time_major", c_bool),
        *_ACTIVATION,
        ("merge_outputs", c_bool),
        *_ASYMMETRIC,
    ],
    "SVDF": [("rank", c_int), *_ACTIVATION, *_ASYMMETRIC],
    "ARG_MAX": [("output_type", c_int)],
    "ARG_MIN": [("output_type", c_int)],
    "SHAPE": [("out_type", c_int)],
    "LOCAL_RESPONSE_NORMALIZATION": [
        ("radius", c_int),
        ("bias", c_float),
        ("alpha", c_float),
        ("beta", c_float),
    ],
    "FAKE_QUANT": [
        ("min", c_float),
        ("max", c_float),
        ("num_bits", c_int),
        ("narrow_range", c_bool),
    ],
    "REVERSE_SEQUENCE": [("seq_dim", c_int), ("batch_dim", c_int)],
    "VAR_HANDLE": [("container", c_char_p), ("shared_name", c_char_p)],
    "STABLEHLO_COMPOSITE": [
        ("name", c_char_p),
        ("decomposition_subgraph_index", c_int32),
        ("composite_attributes", c_void_p),
        ("composite_attributes_size", c_size_t),
        ("version", c_int32),
    ],
    "IF": [("then_subgraph_index", c_int), ("else_subgraph_index", c_int)],
    "WHILE": [("cond_subgraph_index", c_int), ("body_subgraph_index", c_int)],
    "CALL_ONCE": [("init_subgraph_index", c_int)],
}
"""Fields of each operator's structure, in C order. An array is followed by its size."""


def _structure(op: str, fields: Fields) -> type[ctypes.Structure]:
    return type(f"{op}_PARAMS", (ctypes.Structure,), {"_fields_": fields})


STRUCTURES: dict[str, type[ctypes.Structure]] = {
    op: _structure(op, fields) for op, fields in FIELDS.items()
}

_ENUMS: dict[str, tuple[str | None, ...]] = {
    "fused_activation_function": ir.ACTIVATIONS,
    "padding": (None, "SAME", "VALID"),
    "weights_format": ("DEFAULT", "SHUFFLED4x16INT8"),
    "kernel_type": ("FULL", "BASIC"),
    "mode": (None, "REFLECT", "SYMMETRIC"),
}
"""Attribute fields that are strings for us and numbers in C, in C's numbering."""


_NO_TYPE = 0


def read_builtin_data(op: str, address: int | None) -> ir.Attributes:
    """The attributes of a builtin operator from its parameter structure.

    Args:
        op: TFLite's name.
        address: TfLiteNode.builtin_data.
    """
    if op in WITHOUT_OPTIONS:
        return ir.NoAttributes()
    table = OPTIONS.get(op)
    structure = STRUCTURES.get(op)
    if table is None or structure is None:
        return ir.UnreadAttributes(f"options of {op} are not read")
    if not address:
        return ir.UnreadAttributes(f"{op} has no options")
    data = structure.from_address(address)
    if table.attributes is ir.SubgraphAttributes:
        return ir.SubgraphAttributes(tuple(getattr(data, name) for name, _ in FIELDS[op]))
    values: dict[str, Any] = {}
    for field in dataclasses.fields(table.attributes):
        if not hasattr(data, field.name):
            continue  # a class serves several structures, such as ADD's and MUL's
        if field.name in DTYPES and getattr(data, field.name) == _NO_TYPE:
            continue  # the file has no options table; kernels go by their tensors
        value = _read_field(field.name, data)
        if isinstance(value, ir.UnreadAttributes):
            return value
        values[field.name] = value
    return table.attributes(**values)


def _read_field(name: str, data: Any) -> Any:
    raw = getattr(data, name)
    if name in _ENUMS:
        names = _ENUMS[name]
        known = names[raw] if 0 <= raw < len(names) else None
        return known or ir.UnreadAttributes(f"{name} {raw} is unknown")
    if name in DTYPES:
        return DType.from_tflite(raw) or ir.UnreadAttributes(f"{name} {raw} is unknown")
    if name in STRINGS:
        return (raw or b"").decode("utf-8", "replace")
    if name == "composite_attributes":
        return read_bytes(raw, data.composite_attributes_size)
    if isinstance(raw, ctypes.Array):
        size = getattr(data, f"{name}_size")
        if not 0 <= size <= len(raw):
            return ir.UnreadAttributes(f"{name} has {size} entries (at most {len(raw)})")
        return tuple(raw[:size])
    return raw
