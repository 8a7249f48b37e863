"""TensorFlow Lite models on any Vulkan GPU.

    import tflite_vk
    from ai_edge_litert.interpreter import Interpreter

    delegate = tflite_vk.VulkanDelegate()
    interpreter = Interpreter(model_path="m.tflite", experimental_delegates=[delegate])
    print(delegate.report)

`tflite_vk.Interpreter` has the same methods and needs no LiteRT while the device takes every
operator. Importing this package opens no device and loads no driver.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tflite_vk.version import VERSION

if TYPE_CHECKING:
    from tflite_vk.compatibility import CompatibilityList
    from tflite_vk.delegate import VulkanDelegate, load_delegate
    from tflite_vk.device_info import DeviceInfo
    from tflite_vk.errors import DeviceError, Error, ModelError, OptionError, UnsupportedOpError
    from tflite_vk.interpreter import Interpreter
    from tflite_vk.options import DelegateOptions
    from tflite_vk.runtime.open import devices
    from tflite_vk.support_report import SupportReport

__version__ = VERSION

_HOME = {
    "CompatibilityList": "compatibility",
    "DelegateOptions": "options",
    "DeviceError": "errors",
    "DeviceInfo": "device_info",
    "Error": "errors",
    "Interpreter": "interpreter",
    "ModelError": "errors",
    "OptionError": "errors",
    "SupportReport": "support_report",
    "UnsupportedOpError": "errors",
    "VulkanDelegate": "delegate",
    "devices": "runtime.open",
    "load_delegate": "delegate",
}

__all__ = [
    "CompatibilityList",
    "DelegateOptions",
    "DeviceError",
    "DeviceInfo",
    "Error",
    "Interpreter",
    "ModelError",
    "OptionError",
    "SupportReport",
    "UnsupportedOpError",
    "VulkanDelegate",
    "__version__",
    "devices",
    "load_delegate",
]


def __getattr__(name: str) -> Any:
    # Public names are imported when first used: `import tflite_vk` stays quick and works where
    # Kompute, a Vulkan loader or LiteRT is missing.
    if name not in _HOME:
        raise AttributeError(f"module 'tflite_vk' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"tflite_vk.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
