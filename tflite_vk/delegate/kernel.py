"""One partition in TFLite's execution plan: reads tensors of the arena, runs, writes others."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tflite_vk import tflite_abi as abi
from tflite_vk.delegate.abi import resize_tensor
from tflite_vk.errors import DeviceError, UnsupportedOpError
from tflite_vk.frontend.context import read_shape
from tflite_vk.ir.graph import Graph, Node, Tensor
from tflite_vk.ops import registry
from tflite_vk.passes.infer_shapes import infer_shapes
from tflite_vk.shape import Shape

Array = npt.NDArray[np.generic]

MAX_SHAPES = 4
"""Compiled programs a kernel keeps, one for each set of shapes, the last ones used."""

_DATA_OFFSET = abi.Tensor.data.offset
_BYTES_OFFSET = abi.Tensor.bytes.offset
_TENSOR_BYTES = ctypes.sizeof(abi.Tensor)
_TENSORS_OFFSET = abi.Context.tensors.offset


class Compiled(Protocol):
    """A graph ready to run, such as `tflite_vk.session.Session`."""

    def run(
        self,
        inputs: Mapping[int, Array],
        outputs: Mapping[int, Array],
        states: Mapping[int, Array],
    ) -> None:
        """Run on arrays by tensor id; states are read, then written."""
        ...

    def close(self) -> None:
        """Free device memory."""
        ...


Compile = Callable[[Graph], Compiled]


class Kernel:
    """A delegate kernel.

    TFLite calls `prepare` whenever shapes may have changed, with the shapes of all tensors
    propagated where they don't depend on values, and `invoke` from any thread, one at a time.
    """

    def __init__(self, graph: Graph, compile_graph: Compile, compiled: Compiled | None) -> None:
        """Stand for a partition.

        Args:
            graph: the partition with the shapes it was planned for; may have no nodes, where
                all of them were computed before running.
            compile_graph: makes another shape ready.
            compiled: the graph made ready, None to do so when it is first needed.
        """
        self._graph = graph
        self._compile = compile_graph
        self._compiled: dict[tuple[Shape, ...], tuple[Graph, Compiled]] = {}
        if compiled is not None:
            self._compiled[_key(graph)] = (graph, compiled)
        self._run: _Run | None = None
        self._process = os.getpid()
        self._is_closed = False

    def prepare(self, context: int, node: int) -> None:
        """Make ready for the present shapes, resizing the outputs where TFLite has not.

        Raises:
            UnsupportedOpError: a node can't run with these shapes.
            DeviceError: the device failed.
        """
        del node
        self._check()
        if not self._graph.nodes:
            return
        graph = self._with_present_shapes(context)
        for t in dict.fromkeys(graph.outputs):
            if read_shape(context, t) != graph.tensors[t].shape:
                resize_tensor(context, t, graph.tensors[t].shape)
        graph, compiled = self._ready(graph)
        if self._run is None or self._run.compiled is not compiled:
            self._run = _Run(graph, compiled)

    def invoke(self, context: int) -> None:
        """Run on the tensors as they are.

        Raises:
            DeviceError: the device failed, or is not this process's to use.
        """
        self._check()
        if not self._graph.nodes:
            return
        if self._run is None:
            raise DeviceError("invoked before it was prepared; call allocate_tensors() first")
        self._run(context)

    def free(self) -> None:
        """Free device memory and let go of the graph, whose constants are the model's memory."""
        self.close()
        self._graph = Graph("freed", {}, (), (), ())

    def close(self) -> None:
        """Free device memory; later calls raise DeviceError."""
        self._is_closed = True
        self._run = None
        compiled, self._compiled = self._compiled, {}
        if os.getpid() == self._process:
            for _, one in compiled.values():
                one.close()

    def _check(self) -> None:
        if self._is_closed:
            raise DeviceError("the delegate is closed; make a new delegate and a new interpreter")
        if os.getpid() != self._process:
            raise DeviceError(
                "this process was forked from the one that opened the device, which drivers don't "
                "allow; start processes with 'spawn', or open no device before the fork"
            )

    def _with_present_shapes(self, context: int) -> Graph:
        """The graph with the shapes that its inputs and variables have now."""
        graph = self._graph
        present = {t: read_shape(context, t) for t in (*graph.inputs, *_variables(graph))}
        if all(graph.tensors[t].shape == shape for t, shape in present.items()):
            return graph

        def infer(node: Node, graph: Graph) -> Sequence[Shape]:
            shapes = registry.infer_shapes(node, graph)
            # TFLite has propagated what doesn't depend on values.
            return [read_shape(context, t) for t in node.outputs] if shapes is None else shapes

        try:
            return infer_shapes(graph, infer, present)
        except ValueError as error:
            raise UnsupportedOpError(f"the new input shapes do not fit: {error}") from None

    def _ready(self, graph: Graph) -> tuple[Graph, Compiled]:
        key = _key(graph)
        found = self._compiled.pop(key, None)
        if found is None:
            while len(self._compiled) >= MAX_SHAPES:
                _, oldest = self._compiled.pop(next(iter(self._compiled)))
                oldest.close()
            found = (graph, self._compile_for(graph))
        self._compiled[key] = found
        return found

    def _compile_for(self, graph: Graph) -> Compiled:
        try:
            return self._compile(graph)
        except UnsupportedOpError as error:
            shapes = ", ".join(
                f"{graph.tensors[t].name!r} {list(graph.tensors[t].shape)}" for t in graph.inputs
            )
            raise UnsupportedOpError(
                f"{error}; it could with the shapes the model was loaded with, but not with "
                f"{shapes}; leave it to the CPU with option excluded_nodes"
            ) from None


class _Run:
    """A compiled graph bound to the arena, which rarely moves between two invokes."""

    def __init__(self, graph: Graph, compiled: Compiled) -> None:
        self.compiled = compiled
        self._inputs: dict[int, Array] = {t: np.empty(0) for t in graph.inputs}
        self._outputs: dict[int, Array] = {t: np.empty(0) for t in graph.outputs}
        # TFLite's memory: it sets variables back, and nodes on the CPU may read them.
        self._states: dict[int, Array] = {t: np.empty(0) for t in _variables(graph)}
        self._bound: list[tuple[dict[int, Array], Tensor, int, int]] = [
            (arrays, graph.tensors[t], t * _TENSOR_BYTES // 8, _num_bytes(graph.tensors[t]))
            for arrays in (self._inputs, self._outputs, self._states)
            for t in arrays
        ]
        self._addresses: list[int] = [-1] * len(self._bound)
        self._tensors_at = -1
        self._tensors = memoryview(b"")

    def __call__(self, context: int) -> None:
        tensors_at: int = ctypes.c_void_p.from_address(context + _TENSORS_OFFSET).value or 0
        if tensors_at != self._tensors_at:
            self._look_at(tensors_at)
        for i, (arrays, tensor, at, num_bytes) in enumerate(self._bound):
            # Memory of another size would mean reading or writing past its end.
            held = self._tensors[at + _BYTES_OFFSET // 8]
            if held != num_bytes:
                raise DeviceError(
                    f"tensor {tensor.id} {tensor.name!r} holds {held} bytes, its shape "
                    f"{list(tensor.shape)} takes {num_bytes}; call allocate_tensors() first"
                )
            address = self._tensors[at + _DATA_OFFSET // 8]
            if address != self._addresses[i]:
                arrays[tensor.id] = _view(address, tensor)
                self._addresses[i] = address
        self.compiled.run(self._inputs, self._outputs, self._states)

    def _look_at(self, tensors_at: int) -> None:
        """See TFLite's array of tensors as 64-bit words: read so, a field costs no object."""
        count = max((at for _, _, at, _ in self._bound), default=0) * 8 + _TENSOR_BYTES
        memory = (ctypes.c_uint8 * count).from_address(tensors_at)
        self._tensors = memoryview(memory).cast("B").cast("Q")
        self._tensors_at = tensors_at


def _view(address: int, tensor: Tensor) -> Array:
    """A tensor's memory as an array."""
    dtype = tensor.dtype.numpy
    if not tensor.num_elements:
        return np.empty(tensor.shape, dtype)
    if not address:
        raise DeviceError(f"tensor {tensor.id} {tensor.name!r} has no memory")
    memory = memoryview((ctypes.c_uint8 * _num_bytes(tensor)).from_address(address))
    return np.frombuffer(memory, dtype).reshape(tensor.shape)


def _variables(graph: Graph) -> list[int]:
    return [t.id for t in graph.live_tensors() if t.is_variable]


def _num_bytes(tensor: Tensor) -> int:
    return tensor.num_elements * tensor.dtype.numpy.itemsize


def _key(graph: Graph) -> tuple[Shape, ...]:
    """Shapes of all run-time tensors."""
    return tuple(t.shape for t in graph.live_tensors() if not t.is_const)
