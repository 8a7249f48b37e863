"""Errors users can catch. Every message states fact, value, limit and next step."""


class Error(Exception):
    """Base of every error raised by tflite_vk."""


class ModelError(Error, ValueError):
    """The .tflite file is cut short, malformed, or contradicts itself; the message names the field."""


class UnsupportedOpError(Error, RuntimeError):
    """A node can't run on the device and no CPU fallback is there; the message names it and why.

    Attributes:
        node: TFLite's index of the node, None where it is about several.
    """

    def __init__(self, message: str, node: int | None = None) -> None:
        super().__init__(message)
        self.node = node


class DeviceError(Error, RuntimeError):
    """No usable Vulkan device, driver, loader or dispatcher, or the device failed."""


class OptionError(Error, ValueError):
    """An option, flag or environment variable has a value that means nothing."""


class ShaderError(Error, RuntimeError):
    """A compiled shader is missing or doesn't fit its dispatch; reinstall or rebuild the shaders."""
