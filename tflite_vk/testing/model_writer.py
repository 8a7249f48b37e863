"""Write real .tflite files: what the interpreter of LiteRT loads, from a few lines of Python.

w = ModelWriter()
x = w.input((1, 8, 8, 3))
k = w.const(kernel)                      # [O, H, W, I]
y = w.op("CONV_2D", [x, k], [(1, 8, 8, 4)], Conv2DAttributes(stride_w=1))
w.output(y)
data = w.build()
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import tflite

from tflite_vk.dtypes import DType
from tflite_vk.frontend.custom_options import write_custom_options
from tflite_vk.ir.attributes import Attributes, NoAttributes
from tflite_vk.ir.graph import NO_TENSOR, Quantization
from tflite_vk.shape import Shape
from tflite_vk.testing import serialize
from tflite_vk.testing.sparse import Sparsity, encode_sparse

_BUILTIN_CODES: dict[str, int] = {n: c for c, n in tflite.utils.BUILTIN_OPCODE2NAME.items()}


@dataclass(frozen=True)
class TensorSpec:
    """A tensor that an operator writes.

    Attributes:
        shape: static shape.
        dtype: element type.
        quantization: None for none.
        name: made up where empty.
        shape_signature: with -1 for unknown dimensions.
    """

    shape: Shape
    dtype: DType = DType.FLOAT32
    quantization: Quantization | None = None
    name: str = ""
    shape_signature: Shape | None = None


Out = TensorSpec | tuple[Shape, DType] | tuple[int, ...]
"""What an operator writes: all of it, shape and type, or the shape of a float32 tensor."""


@dataclass
class TensorRecord:
    """A tensor as the file will hold it."""

    spec: TensorSpec
    buffer: int = 0
    is_variable: bool = False
    sparsity: Sparsity | None = None


@dataclass(frozen=True)
class OperatorRecord:
    """An operator as the file will hold it."""

    code: tuple[int, str, int]  # builtin code, custom name, version
    op: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    attributes: Attributes | None
    custom_options: bytes | None
    intermediates: tuple[int, ...]


@dataclass
class SignatureRecord:
    """A signature as the file will hold it."""

    key: str
    subgraph: int
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]


@dataclass
class BufferPool:
    """Constants of the whole file; equal ones are stored once, as converters do."""

    buffers: list[bytes] = field(default_factory=lambda: [b""])
    _known: dict[bytes, int] = field(default_factory=dict)

    def add(self, data: bytes) -> int:
        """Index of the buffer with these bytes."""
        if data not in self._known:
            self._known[data] = len(self.buffers)
            self.buffers.append(data)
        return self._known[data]


class SubgraphWriter:
    """Builds one subgraph; every method that makes a tensor returns its index."""

    def __init__(self, pool: BufferPool, index: int, name: str) -> None:
        self.index = index
        self.name = name
        self.tensors: list[TensorRecord] = []
        self.operators: list[OperatorRecord] = []
        self.inputs: list[int] = []
        self.outputs: list[int] = []
        self._pool = pool

    def tensor(self, spec: Out) -> int:
        """A tensor that nothing writes yet."""
        return self._add(TensorRecord(_spec(spec)))

    def input(
        self,
        shape: Sequence[int],
        name: str = "",
        dtype: DType = DType.FLOAT32,
        quantization: Quantization | None = None,
        shape_signature: Sequence[int] | None = None,
    ) -> int:
        """A graph input."""
        signature = None if shape_signature is None else tuple(shape_signature)
        index = self.tensor(TensorSpec(tuple(shape), dtype, quantization, name, signature))
        self.inputs.append(index)
        return index

    def mark_input(self, tensor: int) -> None:
        """List a tensor that is there already, such as a constant, among the inputs."""
        self.inputs.append(tensor)

    def output(self, *tensors: int) -> None:
        """List tensors among the outputs; one may stand there twice or be an input."""
        self.outputs.extend(tensors)

    def const(
        self,
        value: npt.ArrayLike,
        name: str = "",
        dtype: DType | None = None,
        quantization: Quantization | None = None,
    ) -> int:
        """A constant.

        Args:
            value: its elements; INT4, INT2 and UINT4 one element each, STRING bytes or str.
            name: made up where empty.
            dtype: taken from the array where None, but then float64, which is what NumPy makes of
                everything and no model wants, becomes FLOAT32; Python ints become INT32.
            quantization: None for none.
        """
        array = np.asarray(value)
        if dtype is None and array.dtype == np.float64:
            array = array.astype(np.float32)
        elif array.dtype == np.int64 and not isinstance(value, (np.ndarray, np.generic)):
            array = array.astype(np.int32)
        kind = serialize.dtype_of(array) if dtype is None else dtype
        data = serialize.encode(array, kind)
        spec = TensorSpec(tuple(np.shape(array)), kind, quantization, name)
        return self._add(TensorRecord(spec, self._pool.add(data)))

    def half_const(self, value: npt.ArrayLike, name: str = "") -> int:
        """A float32 tensor that a DEQUANTIZE makes from float16 weights, as converters write it."""
        half = self.const(np.asarray(value, np.float16), name and f"{name}/half")
        shape = tuple(np.shape(value))
        return self.op("DEQUANTIZE", [half], [TensorSpec(shape, name=name)])

    def sparse_const(
        self,
        value: npt.NDArray[np.generic],
        block: Mapping[int, int] | None = None,
        name: str = "",
        quantization: Quantization | None = None,
    ) -> int:
        """A constant in TFLite's sparse encoding: compressed rows over the last dimension.

        Args:
            value: dense value.
            block: size of the dense block in each dimension that has one, such as {1: 4}.
            name: made up where empty.
            quantization: None for none.
        """
        sparsity, kept = encode_sparse(value, block or {})
        kind = serialize.dtype_of(value)
        spec = TensorSpec(tuple(value.shape), kind, quantization, name)
        buffer = self._pool.add(serialize.encode(kept, kind))
        return self._add(TensorRecord(spec, buffer, sparsity=sparsity))

    def variable(
        self,
        shape: Sequence[int],
        name: str = "",
        dtype: DType = DType.FLOAT32,
        quantization: Quantization | None = None,
    ) -> int:
        """State that is kept between invokes."""
        spec = TensorSpec(tuple(shape), dtype, quantization, name)
        return self._add(TensorRecord(spec, is_variable=True))

    def op(
        self,
        name: str,
        inputs: Sequence[int | None],
        outs: Sequence[Out] = (),
        attributes: Attributes | bytes | None = None,
        version: int = 1,
        intermediates: Sequence[int] = (),
    ) -> int:
        """An operator with one output.

        Args:
            name: of a builtin operator, else that of a custom one.
            inputs: tensors; None for an optional one that is absent.
            outs: its output.
            attributes: options; bytes are those of a custom operator; None leaves the table out.
            version: operator version.
            intermediates: tensors listed as the operator's intermediates.

        Returns:
            The output tensor.
        """
        outputs = self.multi_op(name, inputs, outs, attributes, version, intermediates)
        if len(outputs) != 1:
            raise ValueError(f"{name} has {len(outputs)} outputs: use multi_op")
        return outputs[0]

    def multi_op(
        self,
        name: str,
        inputs: Sequence[int | None],
        outs: Sequence[Out] = (),
        attributes: Attributes | bytes | None = None,
        version: int = 1,
        intermediates: Sequence[int] = (),
    ) -> tuple[int, ...]:
        """An operator with any number of outputs; the arguments are those of `op`."""
        outputs = tuple(self.tensor(out) for out in outs)
        self.op_into(name, inputs, outputs, attributes, version, intermediates)
        return outputs

    def op_into(
        self,
        name: str,
        inputs: Sequence[int | None],
        outputs: Sequence[int],
        attributes: Attributes | bytes | None = None,
        version: int = 1,
        intermediates: Sequence[int] = (),
    ) -> None:
        """An operator that writes tensors which are there already."""
        code = _BUILTIN_CODES.get(name)
        custom: bytes | None = None
        options = None if isinstance(attributes, bytes) else attributes
        if code is None:
            custom = attributes if isinstance(attributes, bytes) else _custom(name, options)
        elif isinstance(attributes, bytes):
            raise TypeError(f"{name} is builtin: its options are attributes, not bytes")
        else:
            serialize.check_attributes(name, options)
        self.operators.append(
            OperatorRecord(
                code=(tflite.BuiltinOperator.CUSTOM, name, version)
                if code is None
                else (code, "", version),
                op=name,
                inputs=tuple(NO_TENSOR if i is None else i for i in inputs),
                outputs=tuple(outputs),
                attributes=options,
                custom_options=custom,
                intermediates=tuple(intermediates),
            )
        )

    def _add(self, record: TensorRecord) -> int:
        self.tensors.append(record)
        return len(self.tensors) - 1


class ModelWriter(SubgraphWriter):
    """Builds a model; it is itself the writer of subgraph 0."""

    def __init__(self, description: str = "tflite_vk.testing", name: str = "main") -> None:
        pool = BufferPool()
        super().__init__(pool, 0, name)
        self.description = description
        self.pool = pool
        self.subgraphs: list[SubgraphWriter] = [self]
        self.signatures: list[SignatureRecord] = []
        self.metadata: list[tuple[str, int]] = []

    def subgraph(self, name: str = "") -> SubgraphWriter:
        """A further subgraph; its `index` is what attributes of control flow name."""
        index = len(self.subgraphs)
        writer = SubgraphWriter(self.pool, index, name or f"subgraph_{index}")
        self.subgraphs.append(writer)
        return writer

    def signature(
        self,
        key: str,
        inputs: Mapping[str, int],
        outputs: Mapping[str, int],
        subgraph: SubgraphWriter | None = None,
    ) -> None:
        """A signature: names for inputs and outputs of a subgraph, subgraph 0 where None."""
        index = 0 if subgraph is None else subgraph.index
        self.signatures.append(SignatureRecord(key, index, dict(inputs), dict(outputs)))

    def add_metadata(self, name: str, data: bytes) -> None:
        """A named block of bytes that TFLite ignores."""
        self.metadata.append((name, self.pool.add(data)))

    def build(self) -> bytes:
        """The bytes of the file."""
        return serialize.build(self)


def _spec(out: Out) -> TensorSpec:
    if isinstance(out, TensorSpec):
        return out
    if len(out) == 2 and isinstance(out[1], DType):
        shape, dtype = out
        return TensorSpec(tuple(shape), dtype)
    return TensorSpec(tuple(out))


def _custom(name: str, attributes: Attributes | None) -> bytes | None:
    if attributes is None or isinstance(attributes, NoAttributes):
        return None
    return write_custom_options(name, attributes)
