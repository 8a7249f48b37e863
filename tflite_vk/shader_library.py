"""The compiled shaders that ship with the package, and what each of them expects of a dispatch.

`tools/build_shaders.py` makes the folder `tflite_vk/spirv` from `shaders/`, both when a wheel is built
and in a checkout; this module only reads it.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any, Literal

from tflite_vk.errors import ShaderError

Access = Literal["r", "w", "rw"]
"""What a shader does with a storage buffer: read, write, or both."""

_MANIFEST_FORMAT = 1
_REBUILD = "run `python tools/build_shaders.py` in a checkout, or reinstall tflite_vk"


@dataclass(frozen=True)
class ShaderInfo:
    """The interface of one SPIR-V binary, reflected from the binary itself.

    Attributes:
        name: Name of the variant, which is what `spirv` takes.
        bindings: Storage buffers in descriptor set 0, numbered from 0.
        access: One of "r", "w", "rw" for each binding.
        push_words: Size of the push constant block in 32-bit words, at most 32.
        spec_ids: Specialization constant ids, 0, 1, 2, ...; the first three are the local size.
        spec_defaults: Default of each as a 32-bit word, floats by their bits.
        capabilities: SPIR-V capabilities, by name, which the device has to offer.
        source_hash: Hash of all that the binary was compiled from.
        shared_bytes: Workgroup memory, None where specialization constants decide it.
    """

    name: str
    bindings: int
    access: tuple[Access, ...]
    push_words: int
    spec_ids: tuple[int, ...]
    spec_defaults: tuple[int, ...]
    capabilities: tuple[str, ...]
    source_hash: str
    shared_bytes: int | None


@functools.cache
def shader_info(name: str) -> ShaderInfo:
    """Return the interface of one shader.

    Raises:
        ShaderError: There is no such shader, or the shaders have not been built.
    """
    entry = _manifest()["shaders"].get(name)
    if entry is None:
        raise ShaderError(f"no compiled shader is named {name!r}; {_REBUILD}")
    return ShaderInfo(
        name=name,
        bindings=entry["bindings"],
        access=tuple(entry["access"]),
        push_words=entry["push_words"],
        spec_ids=tuple(entry["spec_ids"]),
        spec_defaults=tuple(entry["spec_defaults"]),
        capabilities=tuple(entry["capabilities"]),
        source_hash=entry["source_hash"],
        shared_bytes=entry["shared_bytes"],
    )


@functools.cache
def shader_names() -> tuple[str, ...]:
    """Return the name of every compiled shader, sorted.

    Raises:
        ShaderError: The shaders have not been built.
    """
    return tuple(sorted(_manifest()["shaders"]))


@functools.cache
def spirv(name: str) -> bytes:
    """Return the SPIR-V module of one shader.

    Raises:
        ShaderError: There is no such shader, or its file is missing.
    """
    shader_info(name)  # an unknown name is an error of its own, and never a path to read
    try:
        return (_folder() / f"{name}.spv").read_bytes()
    except OSError as error:
        raise ShaderError(f"{name}.spv cannot be read ({error}); {_REBUILD}") from error


def library_hash() -> str:
    """Return a hash that changes with any binary: the key of what is cached on disk.

    Raises:
        ShaderError: The shaders have not been built.
    """
    return str(_manifest()["hash"])


def _folder() -> Traversable:
    return resources.files("tflite_vk") / "spirv"


@functools.cache
def _manifest() -> dict[str, Any]:
    try:
        manifest = json.loads((_folder() / "manifest.json").read_text(encoding="utf-8"))
    except OSError as error:
        raise ShaderError(f"the shaders are not compiled ({error}); {_REBUILD}") from error
    except ValueError as error:
        raise ShaderError(f"spirv/manifest.json is not readable: {error}; {_REBUILD}") from error
    if not isinstance(manifest, dict) or manifest.get("format") != _MANIFEST_FORMAT:
        raise ShaderError(f"spirv/manifest.json is not of format {_MANIFEST_FORMAT}; {_REBUILD}")
    return manifest
