"""VulkanExecutable: one program recorded once and replayed at each run."""

from __future__ import annotations

import weakref

from tflite_vk.errors import DeviceError
from tflite_vk.program import Words
from tflite_vk.runtime.vulkan.handle import DeviceHandle
from tflite_vk.runtime.vulkan.resources import Resources

_CLOSED = "the executable is closed; compile the program again"


class VulkanExecutable:
    """A program made ready; see runtime/device.py for the methods.

    Freed by `close`, by garbage collection, or when Python exits, whichever comes first.
    """

    def __init__(
        self, owner: object, handle: DeviceHandle, resources: Resources, guard_words: int
    ) -> None:
        """Take over resources.

        Args:
            owner: the device object, which lives as long as this one.
            handle: the device.
            resources: the program's.
            guard_words: how many stand behind each buffer.
        """
        self._owner = owner
        self._handle = handle
        self._resources = resources
        self._guard_words = guard_words
        self._finalizer = weakref.finalize(self, resources.destroy)

    def _check(self) -> None:
        self._handle.check_usable()
        if self._resources.is_closed:
            raise DeviceError(_CLOSED)

    def input_words(self, buffer: int) -> Words:
        """A writable view of an input or state."""
        self._check()
        return self._resources.views[buffer]

    def output_words(self, buffer: int) -> Words:
        """A view of an output or state."""
        self._check()
        return self._resources.views[buffer]

    def run(self) -> None:
        """Run once and wait."""
        self._handle.check_usable()
        resources = self._resources
        with resources.lock:
            if resources.is_closed:
                raise DeviceError(_CLOSED)
            resources.run()

    def reset_states(self) -> None:
        """Give every state its first content."""
        self._check()
        with self._resources.lock:
            self._resources.reset_states()

    def dispatch_us(self) -> list[float]:
        """Device time of each dispatch of the last run."""
        self._check()
        if not self._resources.is_profiling:
            raise DeviceError("compiled without profiling; pass profiling=True")
        with self._resources.lock:
            return self._resources.spans_us()

    def check_guards(self) -> list[str]:
        """Names of buffers behind which a guard word has changed."""
        self._check()
        if not self._guard_words:
            return []
        with self._resources.lock:
            return [buffer.name for buffer in self._resources.overwritten()]

    def close(self) -> None:
        """Free everything."""
        self._finalizer()
