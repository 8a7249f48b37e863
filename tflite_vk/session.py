"""A graph compiled for a device and run on host arrays: the core both front doors share."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tflite_vk.cache.compile_cache import CompileCache
from tflite_vk.compiler import CompileSettings, compile_graph
from tflite_vk.fp16 import OutputWatch, check_conversions
from tflite_vk.ir.graph import Graph, Tensor
from tflite_vk.layout import STORAGE_NUMPY, tensor_view
from tflite_vk.ops.repack import host_storage
from tflite_vk.ops.sizes import Effort
from tflite_vk.options import DelegateOptions
from tflite_vk.program import Words
from tflite_vk.runtime.device import Device
from tflite_vk.shape import num_elements

Array = npt.NDArray[np.generic]


@dataclass(frozen=True)
class _Input:
    """A run-time input and where its values go.

    Attributes:
        tensor_id: its tensor.
        buffer: its buffer.
        view: its values on the device, in the tensor's shape.
    """

    tensor_id: int
    buffer: int
    view: Array

    def fill(self, array: Array) -> None:
        """Write values for the next run."""
        self.view[...] = array


@dataclass(frozen=True)
class _State:
    """A variable that the host keeps.

    Attributes:
        tensor_id: its tensor.
        before: its values on the device when a run starts.
        after: when it has ended; None where they stay the same.
    """

    tensor_id: int
    before: Array
    after: Array | None


class Session:
    """One graph on one device. Safe for several threads: a run holds a lock.

    Attributes:
        graph: the graph as given.
        lowered: the program, without the content of constants, and how tensors meet its buffers.
            Out of a cache it has of its graph the inputs and outputs only.
        plan: where its buffers lie.
    """

    def __init__(
        self,
        graph: Graph,
        device: Device,
        *,
        precision: str = "fp32",
        fusion: bool = True,
        fp32_ops: Collection[str] = (),
        tuning: Effort = "off",
        profiling: bool = False,
        guard_words: int = 0,
        host_states: bool = False,
        cache: CompileCache | None = None,
    ) -> None:
        """Compile.

        Args:
            graph: a verified graph whose every node is supported.
            device: an open device.
            precision: "fp32" or "fp16": storage of run-time float values on the device.
            fusion: make one kernel of several operators.
            fp32_ops: operators that keep float32 in "fp16", by TFLite's names.
            tuning: how many sizes of a kernel to try on the device.
            profiling: time every dispatch.
            guard_words: words of a known pattern behind every allocation (tests).
            host_states: `run` is given the variables, and changes them; else they stay on the device.
            cache: where compiled programs are kept between processes.

        Raises:
            UnsupportedOpError: a node that partitioning should have left out.
            DeviceError: the device has no memory left, refuses a pipeline, or converts float16
                wrongly and precision is "fp16".
        """
        if precision == "fp16":
            check_conversions(device)
        self._watch = OutputWatch(graph) if precision == "fp16" else None
        self.graph = graph
        settings = CompileSettings(precision, fusion, tuple(fp32_ops), tuning, host_states)
        self.lowered, self.plan = compile_graph(graph, device, settings, cache)
        self._lock = threading.Lock()
        self.executable = device.compile(
            self.lowered.program, self.plan, profiling=profiling, guard_words=guard_words
        )
        self._runs_dispatches = bool(self.lowered.program.dispatches)
        self._inputs = [
            self._make_input(t) for t in dict.fromkeys(graph.inputs) if t in self.lowered.buffer
        ]
        self._passed_on = frozenset(graph.inputs)
        self._outputs = {t: self._make_output(t) for t in dict.fromkeys(graph.outputs)}
        self._states = [self._make_state(t) for t in self.lowered.states]
        # The device has the weights by now; a second copy on the host would serve nobody.
        self.lowered = replace(self.lowered, program=self.lowered.program.without_constants())

    @classmethod
    def of(
        cls,
        graph: Graph,
        device: Device,
        options: DelegateOptions,
        cache: CompileCache | None = None,
        *,
        host_states: bool = False,
    ) -> Session:
        """Compile as options say; see `__init__`."""
        return cls(
            graph,
            device,
            precision=options.precision,
            fusion=options.fusion,
            fp32_ops=options.fp32_ops,
            tuning=options.tuning,
            profiling=options.profiling,
            host_states=host_states,
            cache=cache,
        )

    def run(
        self,
        inputs: Mapping[int, Array],
        outputs: Mapping[int, Array],
        states: Mapping[int, Array] | None = None,
    ) -> None:
        """Run once. Allocates nothing.

        Args:
            inputs: array of each run-time graph input by tensor id, in its shape and type.
            outputs: arrays that take the graph outputs wanted, by tensor id.
            states: arrays of the variables by tensor id, read and then written; needed where the
                host keeps them.

        Raises:
            DeviceError: the device failed.
        """
        with self._lock:
            if self._inputs:
                # Asked anew each time: it raises where the device is closed and its memory gone.
                self.executable.input_words(self._inputs[0].buffer)
            for port in self._inputs:
                port.fill(inputs[port.tensor_id])
            for state in self._states:
                assert states is not None
                state.before[...] = states[state.tensor_id]
            if self._runs_dispatches:
                self.executable.run()
            for tensor_id, out in outputs.items():
                self._fetch(tensor_id, out, inputs)
            for state in self._states:
                if state.after is not None and states is not None:
                    states[state.tensor_id][...] = state.after
            if self._watch is not None:
                self._watch.look(inputs, outputs)

    def _tensor(self, tensor_id: int) -> Tensor:
        return self.lowered.graph.tensors[tensor_id]

    def _make_input(self, tensor_id: int) -> _Input:
        buffer = self.lowered.buffer[tensor_id]
        view = self._view(tensor_id, self.executable.input_words(buffer))
        return _Input(tensor_id, buffer, view)

    def _make_state(self, tensor_id: int) -> _State:
        found = self.lowered.states[tensor_id]
        before = self._view(tensor_id, self.executable.input_words(found.before))
        if found.after is None:
            return _State(tensor_id, before, None)
        after = self._view(tensor_id, self.executable.output_words(found.after))
        return _State(tensor_id, before, after)

    def _make_output(self, tensor_id: int) -> Array | None:
        """What an output is read from; None where there is nothing to read on the device."""
        tensor = self._tensor(tensor_id)
        if tensor.data is not None:
            return tensor.data
        if tensor_id in self._passed_on or not tensor.num_elements:
            return None
        return self._view(tensor_id, self._words_of(self.lowered.buffer[tensor_id]))

    def _view(self, tensor_id: int, words: Words) -> Array:
        """An input or output in its buffer, in the tensor's shape."""
        tensor = self._tensor(tensor_id)
        shape, storage = tensor.shape, host_storage(tensor)
        if tensor_id not in self.lowered.flat:
            return tensor_view(words, shape, storage)
        flat = words.view(STORAGE_NUMPY[storage])
        return flat[: num_elements(shape)].reshape(shape)

    def _fetch(self, tensor_id: int, out: Array, inputs: Mapping[int, Array]) -> None:
        if tensor_id in self._passed_on and tensor_id in inputs:
            out[...] = inputs[tensor_id]
            return
        source = self._outputs[tensor_id]
        if source is not None:
            out[...] = source

    def _words_of(self, buffer: int) -> Words:
        """Content of a buffer after a run; an output may live in an input's or a constant's."""
        described = self.lowered.program.buffers[buffer]
        if described.data is not None and described.kind == "constant":
            return described.data
        if described.kind == "input":
            return self.executable.input_words(buffer)
        return self.executable.output_words(buffer)

    def reset_states(self) -> None:
        """Set variables that the device keeps back to their first content."""
        with self._lock:
            self.executable.reset_states()

    def allocate_outputs(self, tensor_ids: Sequence[int]) -> dict[int, Array]:
        """Empty host arrays for outputs."""
        return {t: np.empty(self._tensor(t).shape, self._tensor(t).dtype.numpy) for t in tensor_ids}

    def close(self) -> None:
        """Free device memory. Later runs raise DeviceError."""
        with self._lock:
            self.executable.close()
            self._inputs, self._outputs, self._states = [], {}, []  # views keep memory alive
            self._runs_dispatches = True  # so that a later run learns that it is closed
