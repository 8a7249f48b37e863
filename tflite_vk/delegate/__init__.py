"""The delegate for LiteRT's interpreter."""

from tflite_vk.delegate.delegate import VulkanDelegate, load_delegate

__all__ = ["VulkanDelegate", "load_delegate"]
