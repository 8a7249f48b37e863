"""TensorFlow Lite models on any Vulkan GPU."""

__version__ = "0.1.0"
