"""Small programs for any device, made of one kernel, and what they compute by NumPy."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tflite_vk.epilogue import BINARY_CODES
from tflite_vk.memory import plan_memory
from tflite_vk.program import (
    Binding,
    Buffer,
    BufferKind,
    Dispatch,
    Kernel,
    Program,
    float_word,
    verify_program,
)
from tflite_vk.runtime.device import Device, Executable
from tflite_vk.shader_library import shader_info

Floats = npt.NDArray[np.float32]

_FULL, _IMMEDIATE = 1 << 10, 5 << 10  # MODE_FULL and MODE_IMMEDIATE of epilogue.glsl


@dataclass
class ProgramBuilder:
    """Collects buffers and dispatches of float32 arithmetic, and can compute the same itself."""

    name: str = "test"
    local: int = 64
    buffers: list[Buffer] = field(default_factory=list)
    dispatches: list[Dispatch] = field(default_factory=list)

    def buffer(self, kind: BufferKind, words: int, data: Floats | None = None) -> int:
        """Add a buffer."""
        index = len(self.buffers)
        words_of = None if data is None else data.astype(np.float32).view(np.uint32)
        self.buffers.append(Buffer(index, f"{kind}{index}", words, kind, words_of))
        return index

    def add_number(self, x: int, y: int, number: float) -> None:
        """y = x + number."""
        self._dispatch(BINARY_CODES["ADD"] | _IMMEDIATE, x, y, (number,), x)

    def multiply_number(self, x: int, y: int, number: float) -> None:
        """y = x * number."""
        self._dispatch(BINARY_CODES["MUL"] | _IMMEDIATE, x, y, (number,), x)

    def add(self, x: int, other: int, y: int) -> None:
        """y = x + other."""
        self._dispatch(BINARY_CODES["ADD"] | _FULL, x, y, (), other)

    def _dispatch(self, step: int, x: int, y: int, numbers: tuple[float, ...], other: int) -> None:
        groups = self.buffers[y].words // 4
        self.dispatches.append(
            elementwise(step, x, y, other, numbers, groups, len(self.dispatches), self.local)
        )

    def program(self) -> Program:
        """The program."""
        made = Program(self.name, tuple(self.buffers), tuple(self.dispatches))
        verify_program(made)
        return made

    def compute(self, memory: dict[int, Floats]) -> None:
        """Run by NumPy on buffer contents, in place; absent ones appear."""
        for b in self.buffers:
            if b.data is not None:
                memory.setdefault(b.id, b.data.view(np.float32).copy())
        for d in self.dispatches:
            step = d.kernel.spec[3]
            x, y, other = (d.bindings[i].buffer for i in range(3))
            count = self.buffers[y].words
            number = np.array(d.push[:1], np.uint32).view(np.float32)
            operand = number if step & ~0xFF == _IMMEDIATE else memory[other][:count]
            source = memory[x][:count]
            is_add = step & 0xFF == BINARY_CODES["ADD"]
            memory[y] = source + operand if is_add else source * operand


def elementwise(
    step: int,
    x: int,
    y: int,
    other: int,
    numbers: tuple[float, ...],
    groups: int,
    index: int,
    local: int,
) -> Dispatch:
    """One dispatch of the elementwise kernel over so many groups of four values."""
    padding = len(shader_info("elementwise").spec_ids) - 4
    immediates = [*map(float_word, numbers), 0, 0, 0, 0][:4]
    return Dispatch(
        kernel=Kernel("elementwise", (local, 1, 1, step, *[0] * padding)),
        bindings=(Binding(x, "r"), Binding(y, "w"), *[Binding(other, "r")] * 3),
        push=(*immediates, groups, groups),
        groups=(-(-groups // local), 1, 1),
        label=f"dispatch {index}",
        node=index,
    )


def chain(length: int, words: int = 4096) -> ProgramBuilder:
    """Input 0, plus one `length` times, to the last buffer; every dispatch needs the one before."""
    made = ProgramBuilder(f"chain of {length}")
    last = made.buffer("input", words)
    for i in range(length):
        after = made.buffer("output" if i == length - 1 else "temporary", words)
        made.add_number(last, after, 1.0)
        last = after
    return made


def random_program(seed: int, words: int = 256) -> ProgramBuilder:
    """Dispatches that read and overwrite a handful of buffers in any order.

    Temporaries are written again and again, as no lowering would: every kind of hazard is in it,
    and independent work that may overlap. Values stay small integers, exact in float32.
    """
    rng = np.random.default_rng(seed)
    made = ProgramBuilder(f"random {seed}")
    readable = [made.buffer("input", words) for _ in range(2)]
    readable.append(made.buffer("constant", words, rng.integers(-9, 9, words).astype(np.float32)))
    writable = [made.buffer("temporary", words) for _ in range(6)]
    writable += [made.buffer("output", words) for _ in range(3)]
    for output in writable[-3:]:
        made.add_number(readable[0], output, 0.0)
        readable.append(output)
    for _ in range(30):
        y = int(rng.choice(writable))
        x, other = (int(b) for b in rng.choice(readable, 2))
        if y in (x, other) or rng.random() < 0.3:
            x = int(rng.choice([b for b in readable if b != y]))
            made.add_number(x, y, float(rng.integers(-3, 4)))
        else:
            made.add(x, other, y)
        if y not in readable:
            readable.append(y)
    return made


def compile_program(device: Device, made: ProgramBuilder, **options: object) -> Executable:
    """The program on a device, with the memory plan a session would make."""
    program = made.program()
    return device.compile(program, plan_memory(program), **options)  # type: ignore[arg-type]


def floats(words: npt.NDArray[np.uint32]) -> Floats:
    """Words as float32, the same memory."""
    return words.view(np.float32)
