"""Program: what a device runs. Buffers, SPIR-V names and words; no operator, no TFLite.

Lowering makes it, `memory.py` plans it, every runtime executes it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from tflite_vk.errors import ShaderError
from tflite_vk.shader_library import Access, shader_info

Words = npt.NDArray[np.uint32]
BufferKind = Literal["input", "output", "constant", "temporary", "state"]

MAX_PUSH_WORDS = 32
"""128 bytes: the least that Vulkan promises for push constants (maxPushConstantsSize)."""


def float_word(value: float) -> int:
    """The 32-bit pattern of a float32, as push and specialization constants carry it."""
    word: int = struct.unpack("<I", struct.pack("<f", np.float32(value)))[0]
    return word


def int_word(value: int) -> int:
    """The 32-bit two's complement pattern of a signed integer."""
    return value & 0xFFFFFFFF


@dataclass(frozen=True, eq=False)
class Buffer:
    """A piece of device memory.

    Attributes:
        id: position in `Program.buffers`.
        name: for people.
        words: size in 32-bit words, at least 4.
        kind: who writes it and how long it lives. A `state` keeps its content between runs.
        data: content of a constant, first content of a state.
    """

    id: int
    name: str
    words: int
    kind: BufferKind
    data: Words | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Kernel:
    """A pipeline: a SPIR-V module and the words of its specialization constants, ids 0..n-1."""

    shader: str
    spec: tuple[int, ...]


@dataclass(frozen=True)
class Binding:
    """One storage buffer of a dispatch, at the descriptor binding of its position."""

    buffer: int
    access: Access


@dataclass(frozen=True)
class Dispatch:
    """One compute dispatch.

    Attributes:
        kernel: the pipeline.
        bindings: descriptor set 0, binding 0 first.
        push: push constant words.
        groups: workgroup counts.
        label: operator names and node index, for people.
        node: index of the TFLite node it serves.
        flops: floating-point (or integer) operations it does, 0 for a copy.
    """

    kernel: Kernel
    bindings: tuple[Binding, ...]
    push: tuple[int, ...]
    groups: tuple[int, int, int]
    label: str
    node: int
    flops: int = 0

    def buffers(self, access: Access) -> Iterator[int]:
        """Buffers it reads ("r") or writes ("w")."""
        return (b.buffer for b in self.bindings if access in b.access)


@dataclass(frozen=True)
class Program:
    """A compiled partition.

    Attributes:
        name: for people.
        buffers: by id.
        dispatches: execution order.
    """

    name: str
    buffers: tuple[Buffer, ...]
    dispatches: tuple[Dispatch, ...]

    def kernels(self) -> tuple[Kernel, ...]:
        """The distinct pipelines, in order of first use."""
        return tuple(dict.fromkeys(d.kernel for d in self.dispatches))

    def without_constants(self) -> Program:
        """The same without the content of constants, for when the device has them."""
        kept = (replace(b, data=None) if b.kind == "constant" else b for b in self.buffers)
        return replace(self, buffers=tuple(kept))


@dataclass(frozen=True)
class MemoryPlan:
    """Where buffers lie.

    Attributes:
        slot: for each buffer id, the allocation it uses.
        slot_words: size of each allocation.
        offset: for each temporary, its first word in one shared arena (for runtimes that
            sub-allocate); aligned to `alignment_words`.
        arena_words: size of that arena.
        lower_bound_words: largest sum of temporaries alive at once; no plan can be smaller.
    """

    slot: tuple[int, ...]
    slot_words: tuple[int, ...]
    offset: dict[int, int]
    arena_words: int
    lower_bound_words: int


def verify_program(program: Program) -> None:
    """Hold every dispatch against the manifest of its shader.

    Raises:
        ShaderError: a dispatch that would not fit its pipeline, with what differs.
    """
    for d in program.dispatches:
        info = shader_info(d.kernel.shader)
        where = f"dispatch {d.label!r} of shader {info.name}"
        if len(d.bindings) != info.bindings:
            raise ShaderError(
                f"{where}: {len(d.bindings)} bindings, the shader has {info.bindings}"
            )
        for i, (binding, access) in enumerate(zip(d.bindings, info.access, strict=True)):
            if binding.access != access:
                raise ShaderError(
                    f"{where}: binding {i} declared {binding.access!r}, the shader's is {access!r}"
                )
            if not 0 <= binding.buffer < len(program.buffers):
                raise ShaderError(
                    f"{where}: binding {i} names buffer {binding.buffer} of {len(program.buffers)}"
                )
        if len(d.push) != info.push_words:
            raise ShaderError(
                f"{where}: {len(d.push)} push words, the shader takes {info.push_words}"
            )
        if len(d.kernel.spec) != len(info.spec_ids):
            raise ShaderError(
                f"{where}: {len(d.kernel.spec)} specialization constants, the shader has {len(info.spec_ids)}"
            )
        if min(d.groups) < 1:
            raise ShaderError(f"{where}: workgroup counts {d.groups} hold a zero")
        for word in (*d.push, *d.kernel.spec):
            if not 0 <= word <= 0xFFFFFFFF:
                raise ShaderError(f"{where}: {word} is no 32-bit word; use int_word or float_word")
