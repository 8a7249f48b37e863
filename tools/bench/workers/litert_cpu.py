"""LiteRT on the CPU, with XNNPACK."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence
from typing import Any

from bench.protocol import CannotRunError, Job, Worker, serve


class LiteRtCpu(Worker):
    """LiteRT's interpreter as users run it."""

    def start(self) -> str:
        """Import LiteRT."""
        try:
            import ai_edge_litert.interpreter  # noqa: F401
        except ImportError as error:
            raise CannotRunError(f"ai-edge-litert is not installed ({error})") from None
        return f"LiteRT {importlib.metadata.version('ai-edge-litert')}"

    def load(self, job: Job) -> str:
        """Load."""
        from ai_edge_litert.interpreter import Interpreter

        threads = int(job.settings["threads"])
        self._interpreter: Any = Interpreter(model_path=job.model, num_threads=threads)
        self._interpreter.allocate_tensors()
        indices = [d["index"] for d in self._interpreter.get_input_details()]
        self._inputs = list(zip(indices, job.arrays(), strict=True))
        self._outputs = [d["index"] for d in self._interpreter.get_output_details()]
        return f"CPU, {threads} thread{'s' * (threads != 1)}"

    def run(self) -> Sequence[Any]:
        """Run once."""
        for index, value in self._inputs:
            self._interpreter.set_tensor(index, value)
        self._interpreter.invoke()
        return [self._interpreter.get_tensor(i) for i in self._outputs]


if __name__ == "__main__":
    serve(LiteRtCpu())
