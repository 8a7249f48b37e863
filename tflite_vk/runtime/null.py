"""A device that runs nothing: a whole compile without Vulkan, for tests and `inspect`."""

from __future__ import annotations

import numpy as np

from tflite_vk.device_info import DeviceInfo, DeviceLimits
from tflite_vk.errors import DeviceError
from tflite_vk.program import MemoryPlan, Program, Words

NULL_DEVICE = DeviceInfo(
    index=-1,
    name="null",
    type="other",
    limits=DeviceLimits(max_storage_buffers=32),
)


class NullExecutable:
    """Holds host memory for inputs, states and outputs; outputs stay zero."""

    def __init__(self, program: Program) -> None:
        self._words = {
            b.id: np.zeros(b.words, np.uint32) if b.data is None else b.data.copy()
            for b in program.buffers
            if b.kind in ("input", "output", "state")
        }
        self._initial = {b.id: b.data for b in program.buffers if b.kind == "state"}
        self._num_dispatches = len(program.dispatches)
        self._is_closed = False

    def _check_open(self) -> None:
        if self._is_closed:
            raise DeviceError("the executable is closed; compile the program again")

    def input_words(self, buffer: int) -> Words:
        self._check_open()
        return self._words[buffer]

    def output_words(self, buffer: int) -> Words:
        self._check_open()
        return self._words[buffer]

    def run(self) -> None:
        self._check_open()

    def reset_states(self) -> None:
        self._check_open()
        for buffer, data in self._initial.items():
            if data is not None:
                self._words[buffer][:] = data

    def dispatch_us(self) -> list[float]:
        self._check_open()
        return [0.0] * self._num_dispatches

    def check_guards(self) -> list[str]:
        self._check_open()
        return []

    def close(self) -> None:
        self._is_closed = True
        self._words.clear()


class NullDevice:
    """Accepts every program, with the limits of any device one likes to imagine."""

    dispatcher = "null"

    def __init__(self, info: DeviceInfo = NULL_DEVICE) -> None:
        self.info = info

    def compile(
        self, program: Program, plan: MemoryPlan, *, profiling: bool = False, guard_words: int = 0
    ) -> NullExecutable:
        del plan, profiling, guard_words
        return NullExecutable(program)

    def close(self) -> None:
        """Nothing to release."""
