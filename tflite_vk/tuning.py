"""Timing a program's dispatches in other sizes on the device, to know which is the fastest."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace

from tflite_vk.errors import DeviceError
from tflite_vk.memory import plan_memory
from tflite_vk.ops.sizes import Choice, Effort, Size
from tflite_vk.program import Dispatch, Program
from tflite_vk.runtime.device import Device

logger = logging.getLogger("tflite_vk")

_RUNS: Mapping[Effort, int] = {"fast": 5, "exhaustive": 15}
_RUNS_SOFTWARE: Mapping[Effort, int] = {"fast": 3, "exhaustive": 5}

_GAIN = 0.97
"""A size has to take at most this share of the first choice's time: less is noise."""


def tune(
    program: Program, choices: Iterable[Choice], device: Device, effort: Effort
) -> dict[str, Size]:
    """The fastest size of each choice, by signature.

    One program at a time runs every choice in its next size, dispatch by dispatch, on whatever its
    buffers hold: the time of these kernels does not depend on values.

    Args:
        program: a verified program.
        choices: of its dispatches; one of each signature is timed.
        device: an open device, best one that nothing else uses.
        effort: more runs for more effort.

    Raises:
        DeviceError: the device can't be timed at all.
    """
    distinct = list({choice.signature: choice for choice in choices}.values())
    runs = (_RUNS_SOFTWARE if device.info.is_software else _RUNS)[effort]
    chosen = [program.dispatches[c.dispatch] for c in distinct]
    first_us = _time(program, chosen, device, runs)
    best = {c.signature: (us * _GAIN, c.chosen) for c, us in zip(distinct, first_us, strict=True)}
    candidates = [(c, list(c.others.items())) for c in distinct]
    for turn in range(max((len(others) for _, others in candidates), default=0)):
        trying = [(c, *others[turn]) for c, others in candidates if turn < len(others)]
        times_us = _time_each(program, [dispatch for _, _, dispatch in trying], device, runs)
        for (choice, size, _), us in zip(trying, times_us, strict=True):
            if us is not None and us < best[choice.signature][0]:
                best[choice.signature] = (us, size)
    changed = sum(best[c.signature][1] != c.chosen for c in distinct)
    logger.info("tuning: %d of %d kernels run faster in another size", changed, len(distinct))
    return {signature: size for signature, (_, size) in best.items()}


def _time_each(
    program: Program, dispatches: list[Dispatch], device: Device, runs: int
) -> list[float | None]:
    """As `_time`; where the device refuses the lot, one by one, None for those it refuses."""
    try:
        return list(_time(program, dispatches, device, runs))
    except DeviceError as error:
        if len(dispatches) == 1:
            logger.debug("tuning: %s in another size is refused: %s", dispatches[0].label, error)
            return [None]
    return [_time_each(program, [d], device, runs)[0] for d in dispatches]


def _time(program: Program, dispatches: list[Dispatch], device: Device, runs: int) -> list[float]:
    """Least microseconds of each dispatch.

    Raises:
        DeviceError: a pipeline can't be made, or the device has no timestamps.
    """
    part = replace(program, name="tuning", dispatches=tuple(dispatches))
    executable = device.compile(part, plan_memory(part), profiling=True)
    try:
        executable.run()  # compiles, on some drivers
        samples = []
        for _ in range(runs):
            executable.run()
            samples.append(executable.dispatch_us())
    finally:
        executable.close()
    return [min(times) for times in zip(*samples, strict=True)]
