"""ONNX Runtime's WebGPU execution provider, on the same weights in ONNX's layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.protocol import CannotRunError, Job, Worker, serve

_WEBGPU = "WebGpuExecutionProvider"


class OnnxRuntimeWebGpu(Worker):
    """An InferenceSession that may not fall back to the CPU in silence."""

    def start(self) -> str:
        """Import ONNX Runtime."""
        try:
            import onnxruntime
        except ImportError as error:
            raise CannotRunError(f"onnxruntime is not installed in this Python ({error})") from None
        return f"ONNX Runtime {onnxruntime.__version__} WebGPU"

    def load(self, job: Job) -> str:
        """Load."""
        import onnxruntime

        provider = str(job.settings.get("provider", _WEBGPU))
        if provider not in onnxruntime.get_available_providers():
            raise CannotRunError(
                f"this onnxruntime has no {provider}; pip install onnxruntime-webgpu"
            )
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        self._session: Any = onnxruntime.InferenceSession(job.model, options, providers=[provider])
        if self._session.get_providers()[0] != provider:
            raise CannotRunError(f"{provider} does not start here")
        names = [i.name for i in self._session.get_inputs()]
        # Rank 4 is NHWC in TFLite and NCHW in ONNX.
        values = [a.transpose(0, 3, 1, 2).copy() if a.ndim == 4 else a for a in job.arrays()]
        self._inputs = dict(zip(names, values, strict=True))
        return provider.removesuffix("ExecutionProvider")

    def run(self) -> Sequence[Any]:
        """Run once."""
        outputs: Sequence[Any] = self._session.run(None, self._inputs)
        return outputs


if __name__ == "__main__":
    serve(OnnxRuntimeWebGpu())
