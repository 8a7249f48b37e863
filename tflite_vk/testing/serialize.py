"""The flatbuffer side of the model writer: records in, bytes out, by package `tflite`'s builders."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import flatbuffers
import numpy as np
import numpy.typing as npt
import tflite

from tflite_vk.dtypes import DType
from tflite_vk.frontend import builtin_options
from tflite_vk.ir.attributes import Attributes, NoAttributes, SubgraphAttributes

if TYPE_CHECKING:
    from tflite_vk.ir.graph import Quantization
    from tflite_vk.testing.model_writer import (
        ModelWriter,
        OperatorRecord,
        SignatureRecord,
        SubgraphWriter,
        TensorRecord,
    )
    from tflite_vk.testing.sparse import Dimension, Sparsity

SCHEMA_VERSION = 3
BUFFER_ALIGNMENT = 16
"""force_align of Buffer.data in the schema: kernels read constants in place with vector loads."""

_PACKED_BITS = {DType.INT4: 4, DType.UINT4: 4, DType.INT2: 2}
_MAX_DEPRECATED_CODE = 127


def dtype_of(array: npt.NDArray[np.generic] | np.generic) -> DType:
    """The element type of an array; objects, bytes and str are STRING."""
    if array.dtype.kind in "OSU":
        return DType.STRING
    for dtype in DType:
        if dtype.value.numpy is not None and dtype.numpy == array.dtype:
            return dtype
    raise TypeError(f"no TFLite element type for NumPy's {array.dtype}")


def encode(value: npt.NDArray[np.generic] | np.generic, dtype: DType) -> bytes:
    """The bytes of a buffer that holds the elements."""
    array = np.asarray(value)
    if dtype is DType.STRING:
        return _encode_strings(array)
    if dtype in _PACKED_BITS:
        return _pack(array, _PACKED_BITS[dtype])
    if dtype is DType.BFLOAT16:
        return (array.astype("<f4").view("<u4") >> 16).astype("<u2").tobytes()
    stored: npt.NDArray[np.generic] = array.astype(dtype.numpy.newbyteorder("<"))
    return stored.tobytes()


def _pack(array: npt.NDArray[np.generic], bits: int) -> bytes:
    """Elements of `bits` bits, the first in the low bits of each byte."""
    per_byte = 8 // bits
    flat = array.ravel().astype(np.int8).view(np.uint8) & ((1 << bits) - 1)
    padded = np.zeros(-(-flat.size // per_byte) * per_byte, np.uint8)
    padded[: flat.size] = flat
    shifts = (np.arange(per_byte) * bits).astype(np.uint8)
    packed: npt.NDArray[np.uint8] = np.bitwise_or.reduce(padded.reshape(-1, per_byte) << shifts, 1)
    return packed.tobytes()


def _encode_strings(array: npt.NDArray[np.generic]) -> bytes:
    """TFLite's string buffer: count, offsets of the strings and of the end, then their bytes."""
    items = [s.encode() if isinstance(s, str) else bytes(s) for s in array.ravel().tolist()]
    start = 4 * (len(items) + 2)
    offsets = start + np.cumsum([0, *(len(s) for s in items)])
    return np.array([len(items), *offsets], "<i4").tobytes() + b"".join(items)


def check_attributes(op: str, attributes: Attributes | None) -> None:
    """Fail where a builtin operator's attributes are not those of its options table."""
    table = builtin_options.OPTIONS.get(op)
    if attributes is None or isinstance(attributes, NoAttributes):
        return
    if table is None or type(attributes) is not table.attributes:
        expected = "NoAttributes" if table is None else table.attributes.__name__
        raise TypeError(f"{op} takes {expected}, not {type(attributes).__name__}")


def build(model: ModelWriter) -> bytes:
    """The bytes of the model."""
    b = flatbuffers.Builder(1024 + 2 * sum(len(data) for data in model.pool.buffers))
    buffers = _vector(b, [_buffer(b, data) for data in model.pool.buffers])
    codes = list(dict.fromkeys(o.code for g in model.subgraphs for o in g.operators))
    subgraphs = _vector(b, [_subgraph(b, g, codes) for g in model.subgraphs])
    operator_codes = _vector(b, [_operator_code(b, *code) for code in codes])
    signatures = _vector(b, [_signature(b, s) for s in model.signatures])
    metadata = _vector(b, [_metadata(b, name, buffer) for name, buffer in model.metadata])
    description = b.CreateString(model.description)
    root = _table(
        b,
        "Model",
        Version=SCHEMA_VERSION,
        OperatorCodes=operator_codes,
        Subgraphs=subgraphs,
        Description=description,
        Buffers=buffers,
        Metadata=metadata if model.metadata else None,
        SignatureDefs=signatures if model.signatures else None,
    )
    b.Finish(root, b"TFL3")
    return bytes(b.Output())


def _table(b: Any, name: str, **fields: Any) -> int:
    """A table with the given fields; None leaves a field out."""
    getattr(tflite, f"{name}Start")(b)
    for field, value in fields.items():
        if value is not None:
            getattr(tflite, f"{name}Add{field}")(b, value)
    end: int = getattr(tflite, f"{name}End")(b)
    return end


def _vector(b: Any, offsets: Sequence[int]) -> int:
    b.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        b.PrependUOffsetTRelative(offset)
    end: int = b.EndVector()
    return end


def _numbers(b: Any, values: Sequence[Any] | None, dtype: npt.DTypeLike) -> int | None:
    """A vector of numbers; None where there is none to write."""
    if values is None:
        return None
    array = np.asarray(values, dtype)
    if not array.size:
        return _vector(b, [])
    end: int = b.CreateNumpyVector(array)
    return end


def _buffer(b: Any, data: bytes) -> int:
    if not data:
        return _table(b, "Buffer")
    b.StartVector(1, len(data), BUFFER_ALIGNMENT)
    b.head = b.Head() - len(data)
    b.Bytes[b.Head() : b.Head() + len(data)] = data
    return _table(b, "Buffer", Data=b.EndVector())


def _operator_code(b: Any, code: int, custom: str, version: int) -> int:
    name = b.CreateString(custom) if custom else None
    return _table(
        b,
        "OperatorCode",
        DeprecatedBuiltinCode=min(code, _MAX_DEPRECATED_CODE),
        BuiltinCode=code,
        CustomCode=name,
        Version=version,
    )


def _subgraph(b: Any, graph: SubgraphWriter, codes: Sequence[tuple[int, str, int]]) -> int:
    tensors = _vector(b, [_tensor(b, t, i) for i, t in enumerate(graph.tensors)])
    operators = _vector(b, [_operator(b, o, codes.index(o.code)) for o in graph.operators])
    inputs = _numbers(b, graph.inputs, np.int32)
    outputs = _numbers(b, graph.outputs, np.int32)
    name = b.CreateString(graph.name)
    return _table(
        b, "SubGraph", Tensors=tensors, Inputs=inputs, Outputs=outputs, Operators=operators, Name=name
    )  # fmt: skip


def _tensor(b: Any, record: TensorRecord, index: int) -> int:
    spec = record.spec
    name = b.CreateString(spec.name or f"tensor_{index}")
    shape = _numbers(b, spec.shape, np.int32)
    signature = _numbers(b, spec.shape_signature, np.int32)
    quantization = None if spec.quantization is None else _quantization(b, spec.quantization)
    sparsity = None if record.sparsity is None else _sparsity(b, record.sparsity)
    return _table(
        b,
        "Tensor",
        Shape=shape,
        Type=spec.dtype.value.schema_code,
        Buffer=record.buffer,
        Name=name,
        Quantization=quantization,
        IsVariable=record.is_variable,
        Sparsity=sparsity,
        ShapeSignature=signature,
        HasRank=True,
    )


def _quantization(b: Any, quantization: Quantization) -> int:
    scale = _numbers(b, quantization.scale, np.float32)
    zero_point = _numbers(b, quantization.zero_point, np.int64)
    return _table(
        b,
        "QuantizationParameters",
        Scale=scale,
        ZeroPoint=zero_point,
        QuantizedDimension=quantization.axis,
    )


def _sparsity(b: Any, sparsity: Sparsity) -> int:
    order = _numbers(b, sparsity.traversal_order, np.int32)
    block_map = _numbers(b, sparsity.block_map, np.int32)
    dimensions = _vector(b, [_dimension(b, d) for d in sparsity.dimensions])
    return _table(
        b, "SparsityParameters", TraversalOrder=order, BlockMap=block_map, DimMetadata=dimensions
    )


def _dimension(b: Any, dimension: Dimension) -> int:
    if dimension.segments is None or dimension.indices is None:
        return _table(
            b, "DimensionMetadata", Format=tflite.DimensionType.DENSE, DenseSize=dimension.size
        )
    kind = tflite.SparseIndexVector.Int32Vector
    segments = _table(b, "Int32Vector", Values=_numbers(b, dimension.segments, np.int32))
    indices = _table(b, "Int32Vector", Values=_numbers(b, dimension.indices, np.int32))
    return _table(
        b,
        "DimensionMetadata",
        Format=tflite.DimensionType.SPARSE_CSR,
        ArraySegmentsType=kind,
        ArraySegments=segments,
        ArrayIndicesType=kind,
        ArrayIndices=indices,
    )


def _operator(b: Any, record: OperatorRecord, code: int) -> int:
    union, kind, options = _options(b, record)
    custom = record.custom_options
    custom_options = None if custom is None else b.CreateByteVector(custom)
    inputs = _numbers(b, record.inputs, np.int32)
    outputs = _numbers(b, record.outputs, np.int32)
    intermediates = _numbers(b, record.intermediates or None, np.int32)
    fields: dict[str, Any] = {
        "OpcodeIndex": code,
        "Inputs": inputs,
        "Outputs": outputs,
        "CustomOptions": custom_options,
        "Intermediates": intermediates,
    }
    if options is not None:
        fields |= {f"{union}Type": kind, union: options}
    return _table(b, "Operator", **fields)


def _options(b: Any, record: OperatorRecord) -> tuple[str, int, int | None]:
    """Union field, its type and the table of the operator's options; None for no table."""
    table = builtin_options.OPTIONS.get(record.op)
    attributes = record.attributes
    if table is None or attributes is None or isinstance(attributes, NoAttributes):
        return "BuiltinOptions", 0, None
    fields: dict[str, Any] = {}
    if isinstance(attributes, SubgraphAttributes):
        fields = dict(zip(table.subgraph_fields, attributes.subgraphs, strict=True))
    else:
        for field in dataclasses.fields(attributes):
            name = builtin_options.accessor(field.name)
            value = getattr(attributes, field.name)
            if hasattr(tflite, f"{table.name}Add{name}"):
                fields[name] = _field(b, field.name, value)
            elif value != field.default:
                raise TypeError(f"{record.op} has no option {field.name}")
    kind: int = getattr(getattr(tflite, table.union), table.name)
    return table.union, kind, _table(b, table.name, **fields)


def _field(b: Any, name: str, value: Any) -> Any:
    """The value of an attribute as the builder takes it."""
    if name in builtin_options.ENUMS:
        return builtin_options.ENUMS[name].index(value)
    if name in builtin_options.DTYPES:
        return 0 if value is None else value.value.schema_code
    if name in builtin_options.VECTORS:
        return _numbers(b, value, np.int32)
    if name in builtin_options.STRINGS:
        return b.CreateString(value)
    return b.CreateByteVector(value) if name in builtin_options.BYTES else value


def _signature(b: Any, record: SignatureRecord) -> int:
    def maps(tensors: Any) -> int:
        return _vector(
            b,
            [
                _table(b, "TensorMap", Name=name, TensorIndex=index)
                for name, index in [(b.CreateString(n), i) for n, i in tensors.items()]
            ],
        )

    inputs, outputs = maps(record.inputs), maps(record.outputs)
    key = b.CreateString(record.key)
    return _table(
        b,
        "SignatureDef",
        Inputs=inputs,
        Outputs=outputs,
        SignatureKey=key,
        SubgraphIndex=record.subgraph,
    )


def _metadata(b: Any, name: str, buffer: int) -> int:
    return _table(b, "Metadata", Name=b.CreateString(name), Buffer=buffer)
