"""What fp16 mode watches for: a driver that converts wrongly, and outputs that an overflow has spoiled.

A device may offer float16 and still get it wrong, and a model may need more than float16 holds
without a NaN to show for it; neither must pass in silence.
"""

from __future__ import annotations

import logging
import math
import weakref
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from tflite_vk.dtypes import DType
from tflite_vk.errors import DeviceError
from tflite_vk.ir.graph import Graph
from tflite_vk.layout import FLOAT16_MAX, pack
from tflite_vk.memory import plan_memory
from tflite_vk.ops.context import HOST_NODE
from tflite_vk.ops.launch import flat_groups, flat_local
from tflite_vk.program import Binding, Buffer, Dispatch, Kernel, Program
from tflite_vk.runtime.device import Device
from tflite_vk.shape import LANES

Array = npt.NDArray[np.generic]

logger = logging.getLogger("tflite_vk")

_ADVICE = 'compare with precision="fp32", or keep operators in float32 with fp32_ops'

_PROBE = np.array(
    (
        *(0, 1, -1, 1 / 3, -2 / 3, 1e-3, 1023.75, 2049, 2051, -4098, 65504, 65519, 65520, -1e6),
        *(3e38, 2**-14, 6e-5, -3e-7, 2**-24, 2.9e-8, 1e-8, 7.7e-41, np.inf, -np.inf),
    ),
    np.float32,
)
"""Ties both ways, the largest and the smallest values, subnormals, infinities."""

_checked: weakref.WeakKeyDictionary[Device, str | None] = weakref.WeakKeyDictionary()


def check_conversions(device: Device) -> None:
    """Try once for each device whether it stores and reads float16 as the host does.

    Raises:
        DeviceError: it doesn't.
    """
    if device.dispatcher == "null":
        return
    if device not in _checked:
        _checked[device] = _fault(device)
    fault = _checked[device]
    if fault is not None:
        raise DeviceError(
            f"device {device.info.name!r} converts float16 wrongly: {fault}; "
            'use precision="fp32", or update its driver'
        )


def _fault(device: Device) -> str | None:
    """What the device makes of the first value that it gets wrong."""
    want = pack(_PROBE, "f16").view(np.float16)[: _PROBE.size].astype(np.float32)
    program = _there_and_back(device)
    executable = device.compile(program, plan_memory(program))
    try:
        executable.run()
        got = executable.output_words(2).view(np.float32)[: _PROBE.size].copy()
    finally:
        executable.close()
    wrong = np.flatnonzero(got != want)
    if not wrong.size:
        return None
    at = int(wrong[0])
    return f"{_PROBE[at]:.9g} becomes {got[at]:.9g} instead of {want[at]:.9g}"


def _there_and_back(device: Device) -> Program:
    """A program that stores the probe as float16, and reads that as float32."""
    words = pack(_PROBE, "f32")
    limits = device.info.limits
    local = flat_local(limits)
    groups = _PROBE.size // LANES

    def cast(shader: str, source: int, target: int) -> Dispatch:
        return Dispatch(
            kernel=Kernel(shader, (*local, 0)),
            bindings=(Binding(source, "r"), Binding(target, "w")),
            push=(groups,),
            groups=flat_groups(groups, local, limits),
            label=shader,
            node=HOST_NODE,
        )

    buffers = (
        Buffer(0, "probe", words.size, "constant", words),
        Buffer(1, "half", words.size // 2, "temporary"),
        Buffer(2, "back", words.size, "output"),
    )
    return Program("fp16", buffers, (cast("cast_f32_f16", 0, 1), cast("cast_f16_f32", 1, 2)))


_FEW = 16
"""Elements of an output that may well be zero: scores of nothing found."""
_ALWAYS_CHECKED = 1 << 16
"""Elements of an output that is looked at after every run, which takes some microseconds; a larger
one after the first, second, fourth, eighth and so on."""


class OutputWatch:
    """Looks at the outputs of fp16 mode for what an overflow leaves, and warns once."""

    def __init__(self, graph: Graph) -> None:
        """Watch the floating outputs of a graph."""
        self._names = {
            t: graph.tensors[t].name or f"tensor {t}"
            for t in graph.outputs
            if graph.tensors[t].dtype is DType.FLOAT32
        }
        self._has_warned = False
        self._runs = 0

    def look(self, inputs: Mapping[int, Array], outputs: Mapping[int, Array]) -> None:
        """Look at the outputs of a run.

        Args:
            inputs: of the run, by tensor id.
            outputs: by tensor id.
        """
        if self._has_warned:
            return
        self._runs += 1
        is_sampled = self._runs & (self._runs - 1) == 0
        for tensor_id, value in outputs.items():
            if tensor_id not in self._names or not (is_sampled or value.size <= _ALWAYS_CHECKED):
                continue
            found = _suspicion(value)
            if found is not None and _is_plain(inputs):
                self._has_warned = True
                logger.warning(
                    'precision="fp16": output %r %s, for inputs that are finite and not all zero; '
                    "float16 ends at 65504 and at 6e-8: %s",
                    self._names[tensor_id], found, _ADVICE,
                )  # fmt: skip
                return


def _suspicion(value: Array) -> str | None:
    """What looks like an overflow or an underflow in an output."""
    if not value.size:
        return None
    # Both pass a NaN on.
    floats = np.asarray(value, np.float32)
    low, high = float(floats.min()), float(floats.max())
    if not (math.isfinite(low) and math.isfinite(high)):
        return "holds infinities or NaN"
    if FLOAT16_MAX in (-low, high):  # an output that keeps float32 may go beyond
        return "reaches 65504"
    return "is zero everywhere" if low == high == 0.0 and value.size > _FEW else None


def _is_plain(inputs: Mapping[int, Array]) -> bool:
    """True where the inputs are finite and not all zero, so that they explain no odd output."""
    arrays = [np.asarray(x) for x in inputs.values()]
    return any(x.any() for x in arrays) and all(
        np.isfinite(x).all() for x in arrays if x.dtype.kind == "f"
    )
