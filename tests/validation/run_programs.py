"""Run programs with every kind of hazard on the Vulkan dispatcher; run under the validation layer.

    python -m tests.validation.run_programs [without-levels | without-upload-barrier]

TFLITE_VK_FORCE_STAGING chooses how memory is used. The arguments break a barrier, to show that the
layer notices.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from tests.conformance.programs import ProgramBuilder, chain, compile_program, random_program
from tflite_vk.device_info import DeviceInfo
from tflite_vk.runtime.open import choose
from tflite_vk.runtime.vulkan import resources
from tflite_vk.runtime.vulkan.barriers import Barriers
from tflite_vk.runtime.vulkan.device import VulkanDevice
from tflite_vk.runtime.vulkan.probe import probe


def _counter() -> ProgramBuilder:
    made = ProgramBuilder("counter")
    x, state = made.buffer("input", 64), made.buffer("state", 64)
    grown, y = made.buffer("temporary", 64), made.buffer("output", 64)
    made.add(state, x, grown)
    made.add_number(grown, state, 0.0)
    made.multiply_number(state, y, 10.0)
    return made


def _break(what: str) -> None:
    def nothing(self: Barriers, commands: Any) -> None:
        del self, commands

    def one_level(program: Any, placement: Any) -> list[list[int]]:
        del placement
        return [list(range(len(program.dispatches)))]

    if what == "without-levels":
        resources.dispatch_levels = one_level
    elif what == "without-upload-barrier":
        Barriers.after_upload = nothing  # type: ignore[method-assign]
    else:
        raise SystemExit(f"unknown: {what}")


def main(info: DeviceInfo) -> None:
    """Everything a device does: uploads, runs, states, profiling, guards, several at once."""
    # One device only: the layer empties its log whenever an instance is made.
    device = VulkanDevice(info)
    programs = [*map(random_program, range(10)), chain(5), _counter(), ProgramBuilder()]
    for made in programs:
        for options in ({}, {"profiling": True}, {"guard_words": 8}):
            executable = compile_program(device, made, **options)
            for _ in range(3):
                executable.run()
            executable.reset_states()
            executable.run()
            executable.check_guards()
            if "profiling" in options:
                executable.dispatch_us()
            executable.close()
    together = [compile_program(device, made) for made in programs]
    for _ in range(2):
        for executable in together:
            executable.run()
    # Left open on purpose: the device closes them.
    device.close()


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        _break(argument)
    main(choose(probe(), os.environ.get("TFLITE_VK_DEVICE") or None))
