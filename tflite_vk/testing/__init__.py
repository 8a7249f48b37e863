"""Tools for tests and benchmarks: real .tflite files from a few lines of Python."""

from tflite_vk.testing.model_writer import ModelWriter, SubgraphWriter, TensorSpec

__all__ = ["ModelWriter", "SubgraphWriter", "TensorSpec"]
