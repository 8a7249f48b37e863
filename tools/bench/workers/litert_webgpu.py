"""LiteRT's own GPU path: CompiledModel with the WebGPU accelerator."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence
from typing import Any

import numpy as np

from bench.protocol import CannotRunError, Job, Worker, serve


class LiteRtWebGpu(Worker):
    """A CompiledModel; fp32 asks the accelerator to keep to it."""

    def start(self) -> str:
        """Import LiteRT."""
        try:
            import ai_edge_litert.compiled_model  # noqa: F401
        except ImportError as error:
            raise CannotRunError(f"no CompiledModel in ai-edge-litert ({error})") from None
        return f"LiteRT {importlib.metadata.version('ai-edge-litert')} WebGPU"

    def load(self, job: Job) -> str:
        """Compile."""
        from ai_edge_litert import compiled_model as litert

        options = litert.Options(
            hardware_accelerators=litert.HardwareAccelerator.GPU,
            gpu_options=litert.GpuOptions(enforce_f32=job.precision == "fp32"),
        )
        try:
            model = litert.CompiledModel.from_file(job.model, options=options)
        except RuntimeError as error:
            raise CannotRunError(f"LiteRT can't compile for WebGPU: {_first(error)}") from None
        if not model.is_fully_accelerated():
            raise CannotRunError("LiteRT's WebGPU accelerator does not take the whole model")
        self._model: Any = model
        self._inputs = model.create_input_buffers(0)
        self._outputs = model.create_output_buffers(0)
        self._values = [np.ascontiguousarray(a) for a in job.arrays()]
        details = [buffer.get_tensor_details() for buffer in self._outputs]
        self._results = [(d["shape"], np.dtype(d["dtype"])) for d in details]
        return "WebGPU"

    def run(self) -> Sequence[Any]:
        """Run once."""
        for buffer, value in zip(self._inputs, self._values, strict=True):
            buffer.write(value)
        self._model.run_by_index(0, self._inputs, self._outputs)
        return [
            buffer.read(int(np.prod(shape)), dtype).reshape(shape)
            for buffer, (shape, dtype) in zip(self._outputs, self._results, strict=True)
        ]


def _first(error: Exception) -> str:
    """The first line of a message that is full of traces."""
    lines = [line.strip(" └") for line in str(error).splitlines()]
    return next((line for line in lines if line), "no message")[:200]


if __name__ == "__main__":
    serve(LiteRtWebGpu())
