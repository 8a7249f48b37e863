"""Raw calls of the PyPI package `vulkan`: structures, results and error texts.

The package's own wrappers allocate on each call and drop nested temporaries too early; its cffi
library underneath does neither. Pointers in a structure don't keep what they point to alive, so
a caller holds every structure in a variable until the call that reads it has returned.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tflite_vk.errors import DeviceError
from tflite_vk.runtime.vulkan.probe import load_vulkan

TIMEOUT = 2
OUT_OF_HOST_MEMORY = -1
OUT_OF_DEVICE_MEMORY = -2
DEVICE_LOST = -4
OUT_OF_MEMORY = (OUT_OF_HOST_MEMORY, OUT_OF_DEVICE_MEMORY)


class VulkanCallError(DeviceError):
    """A Vulkan call failed.

    Attributes:
        result: its VkResult.
    """

    def __init__(self, message: str, result: int) -> None:
        super().__init__(message)
        self.result = result


class Api:
    """The `vulkan` package, its cffi types (`ffi`) and its functions (`lib`).

    Raises:
        DeviceError: the package or the Vulkan loader is missing.
    """

    def __init__(self) -> None:
        self.vk: Any = load_vulkan()
        self.ffi: Any = self.vk.ffi
        self.lib: Any = self.vk.lib
        self._results: dict[int, str] = {
            value: name
            for name, value in vars(self.vk).items()
            if isinstance(value, int)
            and (name.startswith("VK_ERROR_") or name in ("VK_TIMEOUT", "VK_NOT_READY"))
        }

    def struct(self, kind: str, /, **fields: Any) -> Any:
        """A zeroed structure with its sType and the fields given, behind a pointer."""
        out = self.ffi.new(f"{kind}*")
        if hasattr(out, "sType"):
            # The wrapper of each structure has its sType as the default of its first parameter.
            out.sType = getattr(self.vk, kind).__defaults__[0]
        for name, value in fields.items():
            setattr(out, name, value)
        return out

    def array(self, kind: str, handles: Iterable[Any]) -> Any:
        """A C array of handles."""
        return self.ffi.new(f"{kind}[]", list(handles))

    def name(self, result: int) -> str:
        """Vulkan's name of a result, such as VK_ERROR_DEVICE_LOST."""
        return self._results.get(result, f"VkResult {result}")

    def check(self, result: int, what: str) -> None:
        """Raise unless a call succeeded.

        Args:
            result: what the call returned.
            what: what was being done, for the message.

        Raises:
            VulkanCallError: the result is an error.
        """
        if result < 0:
            raise VulkanCallError(f"{what} failed ({self.name(result)})", result)

    def create(self, function: Any, kind: str, owner: Any, info: Any, what: str) -> Any:
        """Call a `vkCreate...` function; returns the handle.

        Raises:
            VulkanCallError: it failed.
        """
        out = self.ffi.new(f"{kind}*")
        self.check(function(owner, info, self.ffi.NULL, out), what)
        return out[0]
