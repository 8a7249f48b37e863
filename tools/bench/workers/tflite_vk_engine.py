"""This package: `tflite_vk.Interpreter`, or LiteRT's with the delegate."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.protocol import Job, Worker, serve


class TfliteVk(Worker):
    """Both dispatchers and both front doors; the job's settings say which."""

    def start(self) -> str:
        """Import the package, with what it puts off until a name is used."""
        import tflite_vk

        assert tflite_vk.Interpreter is not None
        assert tflite_vk.VulkanDelegate is not None
        return f"tflite_vk {tflite_vk.__version__}"

    def load(self, job: Job) -> str:
        """Compile."""
        import tflite_vk

        settings = dict(job.settings)
        door = settings.pop("door")
        options = tflite_vk.DelegateOptions(
            precision="fp16" if job.precision == "fp16" else "fp32",
            cache_dir=job.cache_dir,
            model_token=Path(job.model).stem,
            **settings,
        )
        self._interpreter: Any
        if door == "delegate":
            from ai_edge_litert.interpreter import Interpreter

            delegate = tflite_vk.VulkanDelegate(options)
            self._interpreter = Interpreter(model_path=job.model, experimental_delegates=[delegate])
            report = delegate.report
        else:
            self._interpreter = tflite_vk.Interpreter(model_path=job.model, options=options)
            report = self._interpreter.report
        self._interpreter.allocate_tensors()
        indices = [d["index"] for d in self._interpreter.get_input_details()]
        self._inputs = list(zip(indices, job.arrays(), strict=True))
        self._outputs = [d["index"] for d in self._interpreter.get_output_details()]
        taken = f"{report.num_delegated} of {report.num_nodes} operators"
        return report.device if report.is_fully_delegated else f"{report.device}, {taken}"

    def run(self) -> Sequence[Any]:
        """Run once."""
        for index, value in self._inputs:
            self._interpreter.set_tensor(index, value)
        self._interpreter.invoke()
        return [self._interpreter.get_tensor(i) for i in self._outputs]


if __name__ == "__main__":
    serve(TfliteVk())
