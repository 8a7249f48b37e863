"""The GPU against LiteRT's reference kernels, through both front doors, output by output.

The delegate runs inside LiteRT with the reference kernels for what it leaves to the CPU, so that
every difference is the device's. `tflite_vk.Interpreter` runs as users run it.

An output is good where every value is within the tolerance. Kernels sum in other orders, so a
deep model can be further from the reference kernels than that and still be right; LiteRT's own
CPU path, XNNPACK, is the measure then: a floating output that is no further from the reference
than XNNPACK's is good too. Integers have no such excuse (XNNPACK rounds quantized models
otherwise than the reference kernels). Where LiteRT ran a part of the model with XNNPACK, an
output within the tolerance of XNNPACK's is good as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tflite_vk.analysis.litert import (
    allocate,
    cpu_interpreter,
    litert_errors,
    reference_interpreter,
    run,
)
from tflite_vk.analysis.metrics import Difference, Tolerance, measure
from tflite_vk.analysis.progress import Progress, silent
from tflite_vk.delegate.delegate import VulkanDelegate
from tflite_vk.interpreter import Interpreter
from tflite_vk.options import DelegateOptions
from tflite_vk.support_report import SupportReport

Array = npt.NDArray[Any]
FrontDoor = Literal["delegate", "interpreter"]
FRONT_DOORS: tuple[FrontDoor, ...] = ("delegate", "interpreter")


@dataclass(frozen=True)
class Reference:
    """What the outputs should be.

    Attributes:
        kernels: LiteRT's name of the kernels.
        details: LiteRT's details of each output.
        outputs: of the reference kernels.
        xnnpack: of LiteRT's default CPU path; None where it can't run the model.
    """

    kernels: str
    details: list[dict[str, Any]]
    outputs: list[Array]
    xnnpack: list[Array] | None


@dataclass(frozen=True)
class OutputComparison:
    """One output of one front door.

    Attributes:
        index: tensor index.
        name: of the tensor.
        shape: of the reference output.
        dtype: NumPy's name of its type.
        difference: from the reference kernels; None where shape or type is another.
        xnnpack: XNNPACK's difference from them.
        is_good: within the tolerance, or no further than XNNPACK.
        note: what decided, where it was not the tolerance.
    """

    index: int
    name: str
    shape: tuple[int, ...]
    dtype: str
    difference: Difference | None
    xnnpack: Difference | None
    is_good: bool
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "index": self.index,
            "name": self.name,
            "shape": list(self.shape),
            "dtype": self.dtype,
            "is_good": self.is_good,
            "note": self.note,
            "difference": None if self.difference is None else self.difference.to_dict(),
            "xnnpack": None if self.xnnpack is None else self.xnnpack.to_dict(),
        }


@dataclass(frozen=True)
class DoorComparison:
    """One front door.

    Attributes:
        door: which.
        report: what ran on the device.
        outputs: in the model's order.
        num_runs: how often it ran.
        differing_runs: runs after the first whose outputs had other bits.
    """

    door: FrontDoor
    report: SupportReport
    outputs: tuple[OutputComparison, ...]
    num_runs: int
    differing_runs: int

    @property
    def is_good(self) -> bool:
        """True where every output is, and all runs gave the same bits."""
        return all(o.is_good for o in self.outputs) and not self.differing_runs

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "front_door": self.door,
            "is_good": self.is_good,
            "num_runs": self.num_runs,
            "differing_runs": self.differing_runs,
            "report": self.report.to_dict(),
            "outputs": [o.to_dict() for o in self.outputs],
        }


def run_reference(
    content: bytes, inputs: Mapping[int, Array], progress: Progress = silent
) -> Reference:
    """Run LiteRT's reference kernels, and XNNPACK beside them.

    Raises:
        LiteRTError: LiteRT is missing, or its reference kernels can't run the model.
    """
    progress("reference kernels", 0, 2)
    interpreter, kernels = reference_interpreter(content)
    allocate(interpreter, inputs)
    outputs = run(interpreter, inputs)
    progress("XNNPACK", 1, 2)
    details = interpreter.get_output_details()
    return Reference(kernels, details, outputs, _run_xnnpack(content, inputs))


def _run_xnnpack(content: bytes, inputs: Mapping[int, Array]) -> list[Array] | None:
    try:
        interpreter = cpu_interpreter(content, num_threads=1)
        allocate(interpreter, inputs)
        return run(interpreter, inputs)
    except RuntimeError:  # a second opinion that can't be had
        return None


def compare(
    content: bytes,
    inputs: Mapping[int, Array],
    reference: Reference,
    door: FrontDoor,
    options: DelegateOptions,
    tolerance: Tolerance,
    *,
    runs: int = 1,
    progress: Progress = silent,
) -> DoorComparison:
    """Run one front door and hold its outputs against the reference.

    Args:
        content: the model.
        inputs: by tensor id.
        reference: what `run_reference` made of the same inputs.
        door: which front door.
        options: of the delegate.
        tolerance: what counts as close.
        runs: how often to run; all have to give the same bits.
        progress: told of each run.

    Raises:
        Error: the model can't be run this way.
    """
    progress(f"{door}: compile", 0, runs)
    interpreter, source = _open(content, door, options)
    allocate(interpreter, inputs)
    outputs = run(interpreter, inputs)
    differing = 0
    for done in range(1, runs):
        progress(f"{door}: run", done, runs)
        again = run(interpreter, inputs)
        differing += any(a.tobytes() != b.tobytes() for a, b in zip(outputs, again, strict=True))
    report: SupportReport = source.report
    uses_xnnpack = door == "interpreter" and not report.is_fully_delegated
    return DoorComparison(
        door=door,
        report=report,
        outputs=tuple(compare_outputs(outputs, reference, tolerance, uses_xnnpack=uses_xnnpack)),
        num_runs=runs,
        differing_runs=differing,
    )


def _open(content: bytes, door: FrontDoor, options: DelegateOptions) -> tuple[Any, Any]:
    """An interpreter, and what has the report."""
    if door == "delegate":
        delegate = VulkanDelegate(options)
        interpreter, _ = reference_interpreter(content, delegates=[delegate])
        return interpreter, delegate
    with litert_errors("tflite_vk.Interpreter can't load the model"):
        ours = Interpreter(model_content=content, options=options)
    return ours, ours


def compare_outputs(
    outputs: Sequence[Array], reference: Reference, tolerance: Tolerance, *, uses_xnnpack: bool
) -> list[OutputComparison]:
    """Hold outputs against the reference.

    Args:
        outputs: in the model's order.
        reference: what they should be.
        tolerance: what counts as close.
        uses_xnnpack: XNNPACK computed a part of them.
    """
    xnnpack: Sequence[Array | None] = reference.xnnpack or [None] * len(outputs)
    return [
        _compare_output(got, want, other, detail, tolerance, uses_xnnpack=uses_xnnpack)
        for got, want, other, detail in zip(
            outputs, reference.outputs, xnnpack, reference.details, strict=True
        )
    ]


def _compare_output(
    got: Array,
    want: Array,
    xnnpack: Array | None,
    detail: Mapping[str, Any],
    tolerance: Tolerance,
    *,
    uses_xnnpack: bool,
) -> OutputComparison:
    difference, theirs, is_good, note = None, None, False, ""
    if got.shape != want.shape or got.dtype != want.dtype:
        note = f"is {got.dtype.name}{list(got.shape)}"
    else:
        difference = measure(got, want, tolerance)
        if xnnpack is not None and xnnpack.shape == want.shape:
            theirs = measure(xnnpack, want, tolerance)
        is_good = difference.is_close
        if not is_good and theirs is not None and xnnpack is not None:
            if uses_xnnpack and measure(got, xnnpack, tolerance).is_close:
                is_good, note = True, "as XNNPACK, which ran a part of it"
            elif np.issubdtype(want.dtype, np.floating):
                is_good = difference.of_tolerance <= theirs.of_tolerance
                note = "no further than XNNPACK" if is_good else ""
    return OutputComparison(
        index=int(detail["index"]),
        name=str(detail["name"]),
        shape=want.shape,
        dtype=want.dtype.name,
        difference=difference,
        xnnpack=theirs,
        is_good=is_good,
        note=note,
    )
