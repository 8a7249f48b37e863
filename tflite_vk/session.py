"""A graph compiled for a device and run on host arrays: the core both front doors share."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from tflite_vk.ir.graph import Graph, Tensor
from tflite_vk.layout import STORAGE_NUMPY, load, store
from tflite_vk.lowering import Lowered, lower
from tflite_vk.memory import plan_memory
from tflite_vk.program import Words
from tflite_vk.runtime.device import Device

Array = npt.NDArray[np.generic]


class Session:
    """One graph on one device. Safe for several threads: a run holds a lock.

    Attributes:
        graph: the graph as given.
        lowered: the program and how tensors meet its buffers.
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
        profiling: bool = False,
        guard_words: int = 0,
    ) -> None:
        """Compile.

        Args:
            graph: a verified graph whose every node is supported.
            device: an open device.
            precision: "fp32" or "fp16": storage of run-time float values on the device.
            fusion: fuse elementwise operators.
            fp32_ops: operators that keep float32 in "fp16", by TFLite's names.
            profiling: time every dispatch.
            guard_words: words of a known pattern behind every allocation (tests).

        Raises:
            UnsupportedOpError: a node that partitioning should have left out.
            DeviceError: the device has no memory left, or refuses a pipeline.
        """
        self.graph = graph
        self.lowered: Lowered = lower(
            graph, device.info, half=precision == "fp16", fusion=fusion, fp32_ops=fp32_ops
        )
        self.plan = plan_memory(self.lowered.program)
        self._lock = threading.Lock()
        self.executable = device.compile(
            self.lowered.program, self.plan, profiling=profiling, guard_words=guard_words
        )

    def run(self, inputs: Mapping[int, Array], outputs: Mapping[int, Array]) -> None:
        """Run once.

        Args:
            inputs: array of each run-time graph input by tensor id, in its shape and type.
            outputs: arrays that take the graph outputs wanted, by tensor id.

        Raises:
            DeviceError: the device failed.
        """
        with self._lock:
            for tensor_id in dict.fromkeys(self.graph.inputs):
                if tensor_id in self.lowered.buffer:
                    self._store(tensor_id, inputs[tensor_id])
            if self.lowered.program.dispatches:
                self.executable.run()
            for tensor_id, out in outputs.items():
                self._fetch(tensor_id, out, inputs)

    def _tensor(self, tensor_id: int) -> Tensor:
        return self.lowered.graph.tensors[tensor_id]

    def _store(self, tensor_id: int, array: Array) -> None:
        storage = self.lowered.storage[tensor_id]
        words = self.executable.input_words(self.lowered.buffer[tensor_id])
        store(words, array.reshape(-1) if tensor_id in self.lowered.flat else array, storage)

    def _fetch(self, tensor_id: int, out: Array, inputs: Mapping[int, Array]) -> None:
        tensor = self._tensor(tensor_id)
        if tensor.data is not None:
            out[...] = tensor.data
            return
        if tensor_id in inputs and tensor_id in self.graph.inputs:
            out[...] = inputs[tensor_id]
            return
        if tensor.num_elements == 0:
            return
        storage = self.lowered.storage[tensor_id]
        words = self._words_of(self.lowered.buffer[tensor_id])
        if tensor_id not in self.lowered.flat:
            load(words, out, storage)
        else:
            view = words.view(STORAGE_NUMPY[storage])[: out.size]
            out[...] = view.reshape(out.shape)

    def _words_of(self, buffer: int) -> Words:
        """Content of a buffer after a run; an output may live in an input's or a constant's."""
        described = self.lowered.program.buffers[buffer]
        if described.data is not None and described.kind == "constant":
            return described.data
        if described.kind == "input":
            return self.executable.input_words(buffer)
        return self.executable.output_words(buffer)

    def reset_states(self) -> None:
        """Set variables back to their first content."""
        with self._lock:
            self.executable.reset_states()

    def allocate_outputs(self, tensor_ids: Sequence[int]) -> dict[int, Array]:
        """Empty host arrays for outputs."""
        return {t: np.empty(self._tensor(t).shape, self._tensor(t).dtype.numpy) for t in tensor_ids}

    def close(self) -> None:
        """Free device memory. Later runs raise DeviceError."""
        with self._lock:
            self.executable.close()
