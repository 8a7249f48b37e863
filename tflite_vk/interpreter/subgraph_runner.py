"""One subgraph held for running: host arrays for its ends, and a compiled session for each shape."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_vk.errors import UnsupportedOpError
from tflite_vk.interpreter.details import numpy_type
from tflite_vk.interpreter.plan import SubgraphPlan
from tflite_vk.ir.graph import Graph, Tensor
from tflite_vk.passes.infer_shapes import with_shape
from tflite_vk.session import Session
from tflite_vk.shape import Shape

Array = npt.NDArray[Any]

MAX_SESSIONS = 4
"""Compiled programs kept for each subgraph; the one unused for longest frees its device memory."""


class NotTakenError(Exception):
    """With these shapes the device does not run the whole subgraph; holds the plan."""

    def __init__(self, plan: SubgraphPlan) -> None:
        super().__init__(str(plan.report))
        self.plan = plan


class SubgraphRunner:
    """Runs a subgraph whose every operator the device takes.

    Attributes:
        graph: as read.
        current: with the shapes of the last allocation, and of inputs resized since.
        is_allocated: True where it may run.
    """

    def __init__(
        self,
        graph: Graph,
        plan: Callable[[Mapping[int, Shape]], SubgraphPlan],
        compile_graph: Callable[[Graph], Session],
    ) -> None:
        """Nothing is compiled yet.

        Args:
            graph: as read.
            plan: decides for shapes of the inputs by tensor id; ValueError where they don't fit.
            compile_graph: makes a session of a planned graph.
        """
        self.graph = graph
        self.current = graph
        self.is_allocated = False
        self._plan = plan
        self._compile = compile_graph
        self._arrays: dict[int, Array] = {}
        self._inputs: dict[int, Array] = {}
        self._outputs: dict[int, Array] = {}
        self._sessions: OrderedDict[tuple[Shape, ...], tuple[Session, Graph]] = OrderedDict()
        self._session: Session | None = None

    def resize(self, tensor_id: int, shape: Sequence[int], *, strict: bool) -> None:
        """Change the shape of an input; takes effect at the next allocation."""
        if tensor_id not in self.graph.inputs or self.graph.tensors[tensor_id].is_const:
            raise RuntimeError(f"Cannot resize tensor {tensor_id}: it is no input of the model")
        tensor = self.current.tensors[tensor_id]
        new = tuple(int(d) for d in shape)
        if any(d < 0 for d in new):
            raise RuntimeError(f"Cannot resize input {tensor_id}: {list(new)} has a negative size")
        if strict:
            _check_strict(tensor, new)
        if new == tensor.shape:
            return
        self.current = self.current.with_(tensors=[with_shape(tensor, new)])
        self.is_allocated = False

    def plan(self) -> SubgraphPlan:
        """What the device takes with the present input shapes.

        Raises:
            RuntimeError: the shapes do not fit an operator; names it.
        """
        shapes = {t: self.current.tensors[t].shape for t in self.graph.inputs}
        try:
            return self._plan(shapes)
        except ValueError as error:
            raise RuntimeError(f"Cannot allocate tensors: {error}") from None

    def allocate(self) -> None:
        """Compile for the present input shapes, unless that has been done, and make host arrays.

        Raises:
            NotTakenError: with these shapes an operator has to run on the CPU.
            RuntimeError: the shapes do not fit an operator.
            DeviceError: the device has no memory left.
        """
        if self.is_allocated:
            return
        key = tuple(self.current.tensors[t].shape for t in self.graph.inputs)
        if key not in self._sessions:
            plan = self.plan()
            if not plan.is_taken:
                raise NotTakenError(plan)
            try:
                self._sessions[key] = self._compile(plan.graph), plan.graph
            except UnsupportedOpError as error:
                if error.node is None:
                    raise
                raise NotTakenError(plan.without(error.node, str(error))) from None
            if len(self._sessions) > MAX_SESSIONS:
                _, (oldest, _) = self._sessions.popitem(last=False)
                oldest.close()
        self._sessions.move_to_end(key)
        self._session, self.current = self._sessions[key]
        # TFLite sets variables back whenever it allocates, and so after each change of a shape.
        self._session.reset_states()
        self._make_arrays()
        self.is_allocated = True

    def _make_arrays(self) -> None:
        """Arrays of the ends in their present shapes; an unchanged input keeps its content."""
        old = self._arrays
        self._arrays = {}
        for tensor_id in dict.fromkeys((*self.graph.inputs, *self.graph.outputs)):
            tensor = self.current.tensors[tensor_id]
            if tensor.is_const:
                continue
            array = old.get(tensor_id)
            if array is None or array.shape != tensor.shape:
                array = np.zeros(tensor.shape, numpy_type(tensor.dtype))
            self._arrays[tensor_id] = array
        self._inputs = {t: self._arrays[t] for t in self.graph.inputs if t in self._arrays}
        self._outputs = {t: a for t, a in self._arrays.items() if t not in self._inputs}

    def set(self, tensor_id: int, value: npt.ArrayLike) -> None:
        """Copy a value into an input."""
        tensor = self._tensor(tensor_id)
        array = np.asarray(value)
        if not self.is_allocated:
            raise ValueError(
                "Cannot set tensor: Tensor is unallocated. Try calling allocate_tensors() first"
            )
        if tensor_id not in self.graph.inputs or tensor.is_const:
            kind = "a constant" if tensor.is_const else "no input of the model"
            raise ValueError(f"Cannot set tensor: Tensor {tensor_id} {tensor.name!r} is {kind}")
        target = self._arrays[tensor_id]
        if array.dtype != target.dtype:
            raise ValueError(
                f"Cannot set tensor: Got value of type {array.dtype.name.upper()} but expected type"
                f" {tensor.dtype.name} for input {tensor_id}, name: {tensor.name}"
            )
        if array.ndim != target.ndim:
            raise ValueError(
                f"Cannot set tensor: Dimension mismatch. Got {array.ndim} but expected"
                f" {target.ndim} for input {tensor_id}."
            )
        for axis, (got, expected) in enumerate(zip(array.shape, target.shape, strict=True)):
            if got != expected:
                raise ValueError(
                    f"Cannot set tensor: Dimension mismatch. Got {got} but expected {expected}"
                    f" for dimension {axis} of input {tensor_id}."
                )
        np.copyto(target, array)

    def view(self, tensor_id: int) -> Array:
        """The array of a constant, an input or an output itself, not a copy."""
        tensor = self._tensor(tensor_id)
        check_readable(self.graph, tensor_id)
        if tensor.data is not None:
            # Folded float16 weights are kept as they are in the file.
            return tensor.data.astype(numpy_type(tensor.dtype), copy=False)
        if not self.is_allocated:
            raise ValueError("Tensor data is null. Run allocate_tensors() first")
        return self._arrays[tensor_id]

    def run(self) -> None:
        """Run once, from the input arrays into the output arrays."""
        if not self.is_allocated or self._session is None:
            raise RuntimeError(
                "Invoke called on model that is not ready. Call allocate_tensors() first"
            )
        self._session.run(self._inputs, self._outputs)

    def values(self) -> dict[int, Array]:
        """Content of the inputs, for whoever takes over."""
        return dict(self._inputs)

    def reset_variables(self) -> None:
        """Set variables back to zero."""
        for session, _ in self._sessions.values():
            session.reset_states()

    def close(self) -> None:
        """Free device memory."""
        for session, _ in self._sessions.values():
            session.close()
        self._sessions.clear()
        self._session = None
        self.is_allocated = False

    def _tensor(self, tensor_id: int) -> Tensor:
        return find_tensor(self.current, tensor_id)


def find_tensor(graph: Graph, tensor_id: int) -> Tensor:
    """The tensor with TFLite's index; ValueError where there is none."""
    if tensor_id not in graph.tensors:
        raise ValueError(
            f"Invalid tensor index {tensor_id} exceeds max tensor index {len(graph.tensors) - 1}"
        )
    return graph.tensors[tensor_id]


def check_readable(graph: Graph, tensor_id: int) -> None:
    """ValueError unless the tensor is a constant or an end of the graph."""
    tensor = find_tensor(graph, tensor_id)
    if not tensor.is_const and tensor_id not in graph.inputs and tensor_id not in graph.outputs:
        kind = "variable" if tensor.is_variable else "intermediate"
        raise ValueError(
            f"Cannot get tensor: Tensor {tensor_id} {tensor.name!r} is {kind}, and its value stays on"
            " the device. Add it to the outputs of the model to read it"
        )


def _check_strict(tensor: Tensor, shape: Shape) -> None:
    if len(shape) != tensor.rank:
        raise RuntimeError(
            f"Cannot resize input {tensor.id} strictly: rank {len(shape)}, its own is {tensor.rank}"
        )
    signature = tensor.shape_signature or tensor.shape
    for axis, (new, old, declared) in enumerate(zip(shape, tensor.shape, signature, strict=True)):
        if new != old and declared != -1:
            raise RuntimeError(
                f"Attempting to resize dimension {axis} of tensor {tensor.id} with value {old} to"
                f" {new}. With strict=True only dimensions that are -1 in shape_signature"
                f" {list(signature)} may change."
            )
