"""A program as text: stable, for golden tests, `inspect --verbose` and bug reports.

    program main
      b0 input words=64 'x'
      b1 constant words=36 crc=6a31c2f0 'kernel'
      b2 output words=64 'y'
      p0 conv_2d spec=[8,8,1]
      d0 p0 groups=[2,2,1] r b0, r b1, w b2 push=[8,0x3f800000] flops=1152 'CONV_2D #0'

Buffers first, then the distinct pipelines, then the dispatches in order. A word that is small is
decimal, any other hexadecimal: most of those are floats. A constant shows a checksum of its
words, so that two texts are the same only where the programs are.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import numpy as np

from tflite_vk.program import Buffer, Dispatch, Kernel, MemoryPlan, Program

_MAX_DECIMAL = 0xFFFF


def format_program(program: Program, plan: MemoryPlan | None = None) -> str:
    """The text of a program, and where its buffers lie; without a newline at its end."""
    kernels = {kernel: i for i, kernel in enumerate(program.kernels())}
    lines = [f"program {program.name or '(unnamed)'}"]
    lines.extend(f"  {format_buffer(b)}{_place(b, plan)}" for b in program.buffers)
    lines.extend(f"  p{i} {format_kernel(kernel)}" for kernel, i in kernels.items())
    lines.extend(
        f"  d{i} p{kernels[d.kernel]} {format_dispatch(d)}"
        for i, d in enumerate(program.dispatches)
    )
    if plan is not None:
        lines.append(
            f"  arena words={plan.arena_words} lower_bound={plan.lower_bound_words}"
            f" allocations={len(plan.slot_words)} words={sum(plan.slot_words)}"
        )
    return "\n".join(lines)


def format_buffer(buffer: Buffer) -> str:
    """Id, kind, size and name of a buffer, and the checksum of its content."""
    checksum = "" if buffer.data is None else f" crc={_checksum(buffer):08x}"
    return f"b{buffer.id} {buffer.kind} words={buffer.words}{checksum} {buffer.name!r}"


def format_kernel(kernel: Kernel) -> str:
    """Shader and specialization constants of a pipeline."""
    return f"{kernel.shader} spec={_words(kernel.spec)}"


def format_dispatch(dispatch: Dispatch) -> str:
    """A dispatch without its pipeline: groups, bindings, push constants, operations, label."""
    bindings = ", ".join(f"{b.access} b{b.buffer}" for b in dispatch.bindings)
    flops = f" flops={dispatch.flops}" if dispatch.flops else ""
    groups = _words(dispatch.groups)
    return f"groups={groups} {bindings} push={_words(dispatch.push)}{flops} {dispatch.label!r}"


def _place(buffer: Buffer, plan: MemoryPlan | None) -> str:
    if plan is None:
        return ""
    offset = f" offset={plan.offset[buffer.id]}" if buffer.id in plan.offset else ""
    return f" at s{plan.slot[buffer.id]}{offset}"


def _words(words: Iterable[int]) -> str:
    return f"[{','.join(str(w) if w <= _MAX_DECIMAL else f'{w:#010x}' for w in words)}]"


def _checksum(buffer: Buffer) -> int:
    assert buffer.data is not None
    return zlib.crc32(np.ascontiguousarray(buffer.data).astype("<u4").tobytes())
