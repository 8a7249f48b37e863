"""The protocol every runtime follows; `tests/conformance` holds all of them to it."""

from __future__ import annotations

from typing import Protocol

from tflite_vk.device_info import DeviceInfo
from tflite_vk.program import MemoryPlan, Program, Words

GUARD_WORD = 0xFFADFFAD
"""What stands behind every allocation, and in it before anyone writes, when guards are on. As
float32 and as two float16 it is NaN: a kernel that reads what nobody wrote, or a padding lane,
shows it."""


class Executable(Protocol):
    """A program made ready on a device. Not safe for two threads at once; each owner locks."""

    def input_words(self, buffer: int) -> Words:
        """A writable view that holds an input or state buffer's content for the next run."""
        ...

    def output_words(self, buffer: int) -> Words:
        """A view of an output buffer after the last run; the next run overwrites it."""
        ...

    def run(self) -> None:
        """Upload inputs, run every dispatch in order, download outputs, and wait.

        Raises:
            DeviceError: the device was lost, or ran out of time or memory.
        """
        ...

    def reset_states(self) -> None:
        """Set every state buffer back to its first content."""
        ...

    def dispatch_us(self) -> list[float]:
        """Device time of each dispatch of the last run, in microseconds.

        Raises:
            DeviceError: compiled without profiling, or the device has no timestamps.
        """
        ...

    def check_guards(self) -> list[str]:
        """Names of allocations whose guard words were overwritten; empty without guards."""
        ...

    def close(self) -> None:
        """Free device memory. Any later call but close raises DeviceError."""
        ...


class Device(Protocol):
    """An open device."""

    @property
    def info(self) -> DeviceInfo:
        """What was opened."""
        ...

    @property
    def dispatcher(self) -> str:
        """Name of the runtime: "kompute", "vulkan" or "null"."""
        ...

    def compile(
        self, program: Program, plan: MemoryPlan, *, profiling: bool = False, guard_words: int = 0
    ) -> Executable:
        """Make a program ready to run.

        Args:
            program: verified program.
            plan: its memory plan.
            profiling: record a timestamp at each dispatch.
            guard_words: words of a known pattern behind every allocation (tests).

        Raises:
            DeviceError: memory or a pipeline could not be made; names which and how large.
        """
        ...

    def close(self) -> None:
        """Release the device; executables made from it must be closed first."""
        ...
