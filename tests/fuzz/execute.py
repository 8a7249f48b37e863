"""A graph on the device, through the compiler alone or through a front door."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tests.support.case import Array
from tests.support.compare import describe_difference
from tests.support.oracle import run_interpreter
from tflite_vk.analysis.litert import reference_interpreter
from tflite_vk.delegate.delegate import VulkanDelegate
from tflite_vk.frontend.flatbuffer import read_model
from tflite_vk.interpreter import Interpreter
from tflite_vk.ops.registry import unsupported_reason
from tflite_vk.options import DelegateOptions
from tflite_vk.passes.fold_constants import fold_constants
from tflite_vk.runtime.device import Device
from tflite_vk.session import Session

GUARD_WORDS = 16
Door = Literal["session", "delegate", "interpreter"]
Kind = Literal["good", "wrong", "crashed"]


@dataclass(frozen=True)
class Outcome:
    """What became of one graph.

    Attributes:
        kind: good, wrong, or crashed.
        text: what is wrong, for people.
        declined: operator and reason of each node that the device left to the CPU.
        output: position of the first wrong output.
    """

    kind: Kind
    text: str = ""
    declined: tuple[tuple[str, str], ...] = ()
    output: int | None = None


def execute(
    data: bytes,
    inputs: Sequence[Array],
    want: Sequence[Array],
    tolerances: Sequence[float],
    device: Device,
    door: Door = "session",
    *,
    fusion: bool = True,
) -> Outcome:
    """Run a model on a device and hold its outputs against what they should be.

    Args:
        data: the .tflite file.
        inputs: values in the model's order.
        want: outputs in the model's order.
        tolerances: absolute, of each output; 0 asks for the same bits.
        device: an open device.
        door: "session" runs the compiler and the device alone, with guard words behind every
            buffer, and needs every operator taken; else a delegate does it.
        fusion: make one kernel of several operators.
    """
    declined: tuple[tuple[str, str], ...] = ()
    try:
        graph = fold_constants(read_model(data).subgraphs[0])
        declined = tuple(
            (n.op, reason)
            for n in graph.nodes
            if (reason := unsupported_reason(n, graph, device.info.limits)) is not None
        )
        if declined and door == "session":
            door = "delegate"
        if door == "session":
            runs, guards = _run_session(data, inputs, device, fusion=fusion)
        else:
            runs, guards = _run_door(data, inputs, device, door, fusion=fusion), []
    except Exception as error:  # whatever it is, a fault
        return Outcome("crashed", f"{door}: {type(error).__name__}: {error}", declined)
    if guards:
        return Outcome("wrong", f"{door}: wrote behind {guards}", declined)
    wrong = compare(runs[0], want, tolerances)
    if wrong is not None:
        return Outcome("wrong", f"{door}: {wrong[1]}", declined, wrong[0])
    for position, (a, b) in enumerate(zip(*runs, strict=True)):
        if a.tobytes() != b.tobytes():
            text = f"{door}: output {position}: the second run gave other bits"
            return Outcome("wrong", text, declined, position)
    return Outcome("good", "", declined)


def compare(
    got: Sequence[Array], want: Sequence[Array], tolerances: Sequence[float]
) -> tuple[int, str] | None:
    """The first output that is wrong, and how; None where none is."""
    for position, (a, b, tolerance) in enumerate(zip(got, want, tolerances, strict=True)):
        what = f"output {position}"
        if a.shape != b.shape or a.dtype != b.dtype:
            return position, f"{what} is {a.dtype}{list(a.shape)}, not {b.dtype}{list(b.shape)}"
        if not b.size:
            continue
        off = np.abs(a.astype(np.float64) - b.astype(np.float64))
        if not np.all(off <= tolerance):  # a NaN is not
            return position, f"{what}: {describe_difference(a, b)}, allowed {tolerance:.3g}"
    return None


def _run_session(
    data: bytes, inputs: Sequence[Array], device: Device, *, fusion: bool
) -> tuple[list[list[Array]], list[str]]:
    graph = fold_constants(read_model(data).subgraphs[0])
    session = Session(graph, device, fusion=fusion, guard_words=GUARD_WORDS)
    try:
        runs = []
        for _ in range(2):
            outputs = session.allocate_outputs(graph.outputs)
            session.run(dict(zip(graph.inputs, inputs, strict=True)), outputs)
            runs.append([outputs[t].copy() for t in graph.outputs])
        return runs, session.executable.check_guards()
    finally:
        session.close()


def _run_door(
    data: bytes, inputs: Sequence[Array], device: Device, door: Door, *, fusion: bool
) -> list[list[Array]]:
    options = DelegateOptions(device=device.info.index, dispatcher=device.dispatcher, fusion=fusion)
    interpreter: Any
    if door == "interpreter":
        interpreter = Interpreter(model_content=data, options=options)
    else:
        # The reference kernels for what the delegate leaves: XNNPACK rounds otherwise.
        interpreter, _ = reference_interpreter(data, delegates=[VulkanDelegate(options)])
    return [run_interpreter(interpreter, inputs) for _ in range(2)]
