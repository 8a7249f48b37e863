"""What this machine needs for the package to use a GPU, part by part: what is there, what is not."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tflite_vk.errors import DeviceError, ShaderError
from tflite_vk.runtime.vulkan.probe import load_vulkan, probe
from tflite_vk.shader_library import shader_names

_ICD_FOLDERS = ("/etc/vulkan/icd.d", "/usr/share/vulkan/icd.d", "/usr/local/share/vulkan/icd.d")
_ICD_VARIABLES = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")
_DRIVER_PACKAGES = (
    "Debian and Ubuntu: apt-get install mesa-vulkan-drivers (AMD, Intel, and lavapipe, which needs"
    " no GPU); NVIDIA: the driver's own package, in a container with NVIDIA_DRIVER_CAPABILITIES=all"
)


@dataclass(frozen=True)
class Part:
    """Something the package uses.

    Attributes:
        name: what it is.
        is_there: True where it is found and works.
        detail: its version, or what is wrong.
        advice: what to do, empty where nothing.
        is_optional: True where the package does something useful without it.
    """

    name: str
    is_there: bool
    detail: str
    advice: str = ""
    is_optional: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def diagnose() -> list[Part]:
    """Every part, in the order in which one needs the other. Never raises."""
    checks: list[Callable[[], Part]] = [
        _shaders,
        _vulkan_package,
        _loader,
        _driver_files,
        _devices,
        _kompute,
        _litert,
    ]
    return [check() for check in checks]


def missing(parts: list[Part]) -> Part | None:
    """The first part whose absence keeps the GPU from being used."""
    return next((p for p in parts if not p.is_there and not p.is_optional), None)


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "of unknown version"


def _shaders() -> Part:
    try:
        return Part("compiled shaders", True, f"{len(shader_names())} of them")
    except ShaderError as error:
        return Part("compiled shaders", False, str(error), "reinstall tflite_vk")


def _vulkan_package() -> Part:
    name = "Python package vulkan"
    try:
        load_vulkan()
    except DeviceError as error:
        if isinstance(error.__cause__, ImportError):
            advice = "pip install vulkan, which tflite_vk depends on"
            return Part(name, False, f"can't be imported ({error.__cause__})", advice)
    return Part(name, True, _version("vulkan"))


def _loader() -> Part:
    name = "Vulkan loader"
    try:
        load_vulkan()
    except DeviceError as error:
        if isinstance(error.__cause__, ImportError):
            return Part(name, False, "not looked for without the package vulkan")
        advice = "Debian and Ubuntu: apt-get install libvulkan1"
        return Part(name, False, f"libvulkan.so.1 can't be loaded ({error.__cause__})", advice)
    return Part(name, True, "libvulkan.so.1")


def _driver_files() -> Part:
    """The driver manifests that the loader reads; other systems keep them elsewhere."""
    name = "Vulkan driver files"
    for variable in _ICD_VARIABLES:
        if text := os.environ.get(variable):
            named = [Path(p) for p in text.split(os.pathsep) if p]
            lost = [str(p) for p in named if not p.exists()]
            if lost:
                detail = f"{variable} names {', '.join(lost)}, which does not exist"
                return Part(name, False, detail, f"unset {variable} or correct it")
            return Part(name, True, f"{', '.join(p.name for p in named)} by {variable}")
    found = sorted({p.name for folder in _ICD_FOLDERS for p in Path(folder).glob("*.json")})
    if found or not sys.platform.startswith("linux"):
        return Part(name, True, ", ".join(found) or "not looked for on this system")
    return Part(name, False, f"none in {', '.join(_ICD_FOLDERS)}", _DRIVER_PACKAGES)


def _devices() -> Part:
    name = "Vulkan devices"
    try:
        found = probe()
    except DeviceError as error:
        return Part(name, False, str(error), _DRIVER_PACKAGES)
    if not found:
        return Part(name, False, _why_no_device(), _DRIVER_PACKAGES)
    detail = ", ".join(d.name for d in found)
    if all(d.is_software for d in found) and Path("/dev/nvidiactl").exists():
        advice = (
            "an NVIDIA GPU is here, but its Vulkan driver is not: in a container set"
            " NVIDIA_DRIVER_CAPABILITIES=all and install libegl1"
        )
        return Part(name, True, detail, advice)
    return Part(name, True, detail)


def _why_no_device() -> str:
    nodes = sorted(Path("/dev/dri").glob("renderD*"))
    if closed := [str(p) for p in nodes if not os.access(p, os.R_OK | os.W_OK)]:
        return f"none; {', '.join(closed)} can't be opened: add the user to the group render"
    return "none that a driver can open"


def _kompute() -> Part:
    name = "dispatcher kompute"
    try:
        importlib.import_module("tflite_vk.runtime.kompute").load_kp()
    except DeviceError as error:
        return Part(name, False, str(error), is_optional=True)
    return Part(name, True, _version("kp"), is_optional=True)


def _litert() -> Part:
    name = "LiteRT"
    try:
        importlib.import_module("ai_edge_litert.interpreter")
    except ImportError as error:
        advice = "pip install 'tflite_vk[litert]', for models that the GPU does not run alone"
        return Part(name, False, f"can't be imported ({error})", advice, is_optional=True)
    return Part(name, True, _version("ai-edge-litert"), is_optional=True)
