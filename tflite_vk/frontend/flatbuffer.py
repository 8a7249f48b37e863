"""A .tflite file becomes graphs: one per subgraph, with the signatures that name their tensors.

Nothing but ModelError comes out of here, whatever the bytes; it names the field, its value and the
limit. Weights stay where they are in the file, as read-only views, where their alignment allows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import tflite

from tflite_vk.dtypes import DType
from tflite_vk.errors import ModelError
from tflite_vk.frontend.builtin_options import builtin_name, read_builtin_options
from tflite_vk.frontend.checked import CheckedFile, View
from tflite_vk.frontend.constants import Constants, is_fixed_size, storage_bytes
from tflite_vk.frontend.custom_options import read_custom_options
from tflite_vk.frontend.dynamic import mark_dynamic
from tflite_vk.frontend.order import check_order
from tflite_vk.ir.attributes import (
    Attributes,
    StablehloCompositeAttributes,
    SubgraphAttributes,
)
from tflite_vk.ir.graph import NO_TENSOR, Graph, Node, Quantization, Tensor
from tflite_vk.shape import Shape, num_elements

if TYPE_CHECKING:
    import os

IDENTIFIER = b"TFL3"
SCHEMA_VERSION = 3
MAX_TENSOR_BYTES = 2**63 - 1
"""TFLite refuses a tensor whose size overflows size_t; so does every 64-bit host."""

_EXTERNAL_BUFFER_SLOT = 10
_HEADER_BYTES = 8
_OTHER_FORMATS = {
    b"version https://git-lfs": "it is a Git LFS pointer: fetch the file itself with git lfs pull",
    b"PK\x03\x04": "it is a zip archive: unpack the .tflite file inside",
    b"\x1f\x8b": "it is gzip-compressed: decompress it first",
    b"\x89HDF": "it is an HDF5 file (Keras): convert it to TensorFlow Lite first",
}


@dataclass(frozen=True)
class Signature:
    """Names for the inputs and outputs of one subgraph.

    Attributes:
        key: what the caller asks for.
        subgraph: index of the subgraph it runs.
        inputs: tensor id by name.
        outputs: tensor id by name.
    """

    key: str
    subgraph: int
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]


@dataclass(frozen=True, eq=False)
class Model:
    """A model file.

    Attributes:
        subgraphs: subgraph 0 is what the interpreter runs; control flow names the others.
        signatures: in file order.
        description: who wrote it, for people.
        metadata: names of the metadata entries.
    """

    subgraphs: tuple[Graph, ...]
    signatures: tuple[Signature, ...] = ()
    description: str = ""
    metadata: tuple[str, ...] = ()


@dataclass(frozen=True)
class _OperatorCode:
    name: str
    version: int
    is_custom: bool


def load_model(path: str | os.PathLike[str]) -> Model:
    """The model in a file.

    Raises:
        ModelError: the file can't be read or is no well-formed model.
    """
    return read_model(read_file(path), Path(path).name)


def read_file(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a model file; ModelError where it can't be read."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        reason = error.strerror or str(error)
        raise ModelError(f"{Path(path)}: can't read the model file: {reason}") from None


def read_model(data: bytes | bytearray | memoryview, source: str = "model") -> Model:
    """The model in a block of bytes.

    Args:
        data: a whole .tflite file; bytes are used in place, anything else is copied.
        source: what error messages call it.

    Raises:
        ModelError: the bytes are no well-formed model.
    """
    content = data if isinstance(data, bytes) else bytes(data)
    _check_header(content, source)
    file = CheckedFile(memoryview(content), source)
    root = View(file, tflite.Model(), file.u32(0), "")
    version = root.number("Version")
    if version != SCHEMA_VERSION:
        raise root.error("Version", f"schema version {version} ({SCHEMA_VERSION} supported)")
    codes = [_read_operator_code(code) for code in root.tables("OperatorCodes")]
    constants = Constants(file, list(root.tables("Buffers")))
    views = list(root.tables("Subgraphs"))
    if not views:
        raise root.error("Subgraphs", "the model has none (at least 1)")
    reader = _SubgraphReader(file, codes, constants, len(views))
    subgraphs = tuple(reader.read(view) for view in views)
    return Model(
        subgraphs=subgraphs,
        signatures=_read_signatures(root, subgraphs),
        description=root.text("Description") or "",
        metadata=tuple(entry.text("Name") or "" for entry in root.tables("Metadata")),
    )


def _check_header(data: bytes, source: str) -> None:
    for magic, advice in _OTHER_FORMATS.items():
        if data.startswith(magic):
            raise ModelError(f"{source}: not a TensorFlow Lite model: {advice}")
    if len(data) < _HEADER_BYTES:
        raise ModelError(
            f"{source}: {len(data)} bytes are no TensorFlow Lite model"
            f" (at least {_HEADER_BYTES}): the file is empty or cut short"
        )
    if data[4:8] != IDENTIFIER:
        raise ModelError(
            f"{source}: file identifier {data[4:8]!r} ({IDENTIFIER!r} expected):"
            " not a TensorFlow Lite model"
        )


def _read_operator_code(view: View) -> _OperatorCode:
    # Files from before schema 3a hold the code in an int8 only; later ones in both while it fits.
    code = max(view.number("DeprecatedBuiltinCode"), view.number("BuiltinCode"))
    if code < 0:
        raise view.error("BuiltinCode", f"{code} is negative")
    version = view.number("Version")
    if code != tflite.BuiltinOperator.CUSTOM:
        return _OperatorCode(builtin_name(code), version, is_custom=False)
    name = view.text("CustomCode")
    if not name:
        raise view.error("CustomCode", "is missing or empty for a custom operator")
    return _OperatorCode(name, version, is_custom=True)


class _SubgraphReader:
    """Reads subgraphs of one file."""

    def __init__(
        self,
        file: CheckedFile,
        codes: list[_OperatorCode],
        constants: Constants,
        num_subgraphs: int,
    ) -> None:
        self._file = file
        self._codes = codes
        self._constants = constants
        self._num_subgraphs = num_subgraphs

    def read(self, view: View) -> Graph:
        tensor_views = list(view.tables("Tensors"))
        count = len(tensor_views)
        inputs = self._indices(view, "Inputs", count)
        outputs = self._indices(view, "Outputs", count)
        operators = list(view.tables("Operators"))
        nodes = tuple(self._node(op, index, count) for index, op in enumerate(operators))
        written = {*inputs, *(t for node in nodes for t in node.outputs)}
        tensors = {
            index: self._tensor(tensor, index, is_written=index in written)
            for index, tensor in enumerate(tensor_views)
        }
        nodes = tuple(
            self._with_intermediates(node, op, tensors)
            for node, op in zip(nodes, operators, strict=True)
        )
        graph = Graph(view.text("Name") or "", tensors, nodes, inputs, outputs)
        check_order(graph, view)
        return mark_dynamic(graph)

    def _indices(
        self, view: View, field: str, count: int, *, is_optional: bool = False
    ) -> tuple[int, ...]:
        indices = view.numbers(field) or ()
        for position, index in enumerate(indices):
            if not 0 <= index < count and not (is_optional and index == NO_TENSOR):
                raise view.error(
                    field, f"entry {position} is tensor {index}, the subgraph has {count} tensors"
                )
        return indices

    def _node(self, view: View, index: int, count: int) -> Node:
        opcode = view.number("OpcodeIndex")
        if opcode >= len(self._codes):
            raise view.error("OpcodeIndex", f"{opcode}, the model has {len(self._codes)} codes")
        code = self._codes[opcode]
        if code.is_custom:
            attributes = read_custom_options(code.name, self._custom_options(view))
        else:
            attributes = read_builtin_options(code.name, view)
            self._check_subgraphs(view, attributes)
        return Node(
            index=index,
            op=code.name,
            inputs=self._indices(view, "Inputs", count, is_optional=True),
            outputs=self._indices(view, "Outputs", count),
            attributes=attributes,
            version=code.version,
            is_custom=code.is_custom,
        )

    def _with_intermediates(self, node: Node, view: View, tensors: Mapping[int, Tensor]) -> Node:
        indices = self._indices(view, "Intermediates", len(tensors))
        if not indices:
            return node
        return replace(node, intermediates=tuple(tensors[i].quantization for i in indices))

    def _custom_options(self, view: View) -> bytes:
        if view.has("LargeCustomOptionsSize"):
            offset = view.number("LargeCustomOptionsOffset")
            size = view.number("LargeCustomOptionsSize")
            if offset > 1 and size:
                if offset + size > self._file.size:
                    raise view.error(
                        "LargeCustomOptionsOffset",
                        f"bytes {offset} to {offset + size} lie outside the file of"
                        f" {self._file.size} bytes",
                    )
                view.charge("LargeCustomOptionsSize", size)
                return bytes(self._file.data[offset : offset + size])
        return view.raw("CustomOptions") or b""

    def _check_subgraphs(self, view: View, attributes: Attributes) -> None:
        named: tuple[int, ...] = ()
        if isinstance(attributes, SubgraphAttributes):
            named = attributes.subgraphs
        elif isinstance(attributes, StablehloCompositeAttributes):
            named = (attributes.decomposition_subgraph_index,)
        for index in named:
            if not 0 <= index < self._num_subgraphs:
                raise view.error(
                    "BuiltinOptions",
                    f"names subgraph {index}, the model has {self._num_subgraphs} subgraphs",
                )

    def _tensor(self, view: View, index: int, *, is_written: bool) -> Tensor:
        dtype = DType.from_schema(view.number("Type"))
        if dtype is None:
            raise view.error("Type", f"element type {view.number('Type')} is unknown here")
        shape = self._shape(view, dtype)
        buffer = view.number("Buffer")
        if buffer and buffer >= len(self._constants):
            raise view.error("Buffer", f"{buffer}, the model has {len(self._constants)} buffers")
        if view.has_slot(_EXTERNAL_BUFFER_SLOT):
            raise view.error("", "its value is in another file, which is not read here")
        data = self._constants.value(view, buffer, dtype, shape)
        is_variable = view.number("IsVariable")
        if data is not None and is_variable:
            raise view.error("IsVariable", f"a variable can't have a value (buffer {buffer})")
        if data is None and not is_written and not is_variable and num_elements(shape) == 0:
            # An empty constant, such as the axes of a reduction over none, has an empty buffer.
            data = self._constants.empty(dtype, shape)
        return Tensor(
            id=index,
            name=view.text("Name") or "",
            shape=shape,
            dtype=dtype,
            data=data,
            quantization=_quantization(view, shape),
            shape_signature=_shape_signature(view, shape),
            is_variable=is_variable,
            is_sparse=data is not None and view.table("Sparsity") is not None,
        )

    def _shape(self, view: View, dtype: DType) -> Shape:
        shape = view.numbers("Shape") or ()
        for axis, size in enumerate(shape):
            if size < 0:
                raise view.error("Shape", f"dimension {axis} of {list(shape)} is negative")
        if is_fixed_size(dtype) and storage_bytes(dtype, num_elements(shape)) > MAX_TENSOR_BYTES:
            raise view.error(
                "Shape", f"{list(shape)} of {dtype.name} is over {MAX_TENSOR_BYTES} bytes"
            )
        return shape


def _shape_signature(view: View, shape: Shape) -> Shape | None:
    signature = view.numbers("ShapeSignature")
    if not signature:
        return None
    if len(signature) != len(shape):
        raise view.error("ShapeSignature", f"rank {len(signature)}, the shape's is {len(shape)}")
    for axis, size in enumerate(signature):
        if size < -1:
            raise view.error("ShapeSignature", f"dimension {axis} is {size} (at least -1)")
    return signature if -1 in signature else None


def _quantization(view: View, shape: Shape) -> Quantization | None:
    """Scales and zero points by the rules of TFLite's own loader."""
    table = view.table("Quantization")
    scale = table.numbers("Scale") if table is not None else None
    if table is None or not scale:
        return None
    zero_point = table.numbers("ZeroPoint") or ()
    axis = table.number("QuantizedDimension")
    if len(zero_point) != len(scale):
        raise table.error("ZeroPoint", f"{len(zero_point)} values for {len(scale)} scales")
    if axis < 0 or (shape and axis >= len(shape)):
        raise table.error("QuantizedDimension", f"{axis}, the tensor has {len(shape)} dimensions")
    if len(scale) != 1 and shape and len(scale) != shape[axis]:
        raise table.error(
            "Scale", f"{len(scale)} values for dimension {axis} of {list(shape)} ({shape[axis]})"
        )
    return Quantization(scale, zero_point, axis)


def _read_signatures(root: View, subgraphs: tuple[Graph, ...]) -> tuple[Signature, ...]:
    found: dict[str, Signature] = {}
    for view in root.tables("SignatureDefs"):
        key = view.text("SignatureKey") or ""
        if key in found:
            raise view.error("SignatureKey", f"{key!r} stands twice")
        index = view.number("SubgraphIndex")
        if index >= len(subgraphs):
            raise view.error("SubgraphIndex", f"{index}, the model has {len(subgraphs)} subgraphs")
        graph = subgraphs[index]
        inputs = _tensor_map(view, "Inputs", graph.inputs)
        outputs = _tensor_map(view, "Outputs", graph.outputs)
        found[key] = Signature(key, index, inputs, outputs)
    return tuple(found.values())


def _tensor_map(view: View, field: str, allowed: tuple[int, ...]) -> Mapping[str, int]:
    out: dict[str, int] = {}
    known = set(allowed)
    for entry in view.tables(field):
        name, index = entry.text("Name") or "", entry.number("TensorIndex")
        if index not in known:
            kind = field[:-1].lower()
            raise entry.error("TensorIndex", f"tensor {index} is no {kind} of its subgraph")
        out[name] = index
    return out
