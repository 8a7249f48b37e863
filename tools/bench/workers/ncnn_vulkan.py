"""ncnn's Vulkan backend on a graph of its own with random weights: for times only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bench.protocol import CannotRunError, Job, Worker, serve


class NcnnVulkan(Worker):
    """A .param file; the inputs of the job are not used, since ncnn's graphs have their own."""

    def start(self) -> str:
        """Import ncnn."""
        try:
            import ncnn
        except ImportError as error:
            raise CannotRunError(f"ncnn is not installed in this Python ({error})") from None
        return f"ncnn {ncnn.__version__} Vulkan"

    def load(self, job: Job) -> str:
        """Load the graph."""
        import ncnn

        if not ncnn.get_gpu_count():
            raise CannotRunError("ncnn finds no Vulkan device")
        net = ncnn.Net()
        net.opt.use_vulkan_compute = True
        half = job.precision == "fp16"
        net.opt.use_fp16_packed = half
        net.opt.use_fp16_storage = half
        net.opt.use_fp16_arithmetic = half
        net.load_param(job.model)
        net.load_model(ncnn.DataReaderFromEmpty())
        self._net: Any = net
        self._extract = job.settings["outputs"]
        rng = np.random.default_rng(0)
        shape = tuple(job.settings["input_shape"])
        self._input = ncnn.Mat(rng.random(shape, np.float32))
        return str(ncnn.get_gpu_info(ncnn.get_default_gpu_index()).device_name())

    def run(self) -> Sequence[Any]:
        """Run once."""
        extractor = self._net.create_extractor()
        extractor.input("data", self._input)
        results = [extractor.extract(name) for name in self._extract]
        for name, (status, _) in zip(self._extract, results, strict=True):
            if status:
                raise RuntimeError(f"ncnn can't compute {name!r} (status {status})")
        return [np.array(mat) for _, mat in results]


if __name__ == "__main__":
    serve(NcnnVulkan())
