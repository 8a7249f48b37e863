"""A model through both front doors beside LiteRT's reference kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import tflite_vk
from tests.support.case import Array
from tests.support.compare import assert_close
from tests.support.oracle import reference_interpreter

DOORS = ("delegate", "interpreter")


def load(data: bytes, door: str, **options: Any) -> tuple[Any, tflite_vk.SupportReport]:
    """An interpreter on the device, and its report."""
    from ai_edge_litert.interpreter import Interpreter

    if door == "interpreter":
        ours = tflite_vk.Interpreter(model_content=data, **options)
        return ours, ours.report
    delegate = tflite_vk.VulkanDelegate(**options)
    interpreter = Interpreter(model_content=data, experimental_delegates=[delegate], num_threads=1)
    interpreter.keep_delegate = delegate
    return interpreter, delegate.report


def oracle(data: bytes) -> Any:
    """LiteRT's reference kernels."""
    return reference_interpreter(data)


def run(interpreter: Any, inputs: Sequence[Array]) -> list[Array]:
    """Outputs for inputs in the model's order, whose shapes may be new ones."""
    details = interpreter.get_input_details()
    for detail, value in zip(details, inputs, strict=True):
        if tuple(detail["shape"]) != value.shape:
            interpreter.resize_tensor_input(detail["index"], value.shape)
    interpreter.allocate_tensors()
    for detail, value in zip(details, inputs, strict=True):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return [np.array(interpreter.get_tensor(d["index"])) for d in interpreter.get_output_details()]


def check(data: bytes, door: str, *runs: Sequence[Array], **options: Any) -> Any:
    """Run one interpreter on each set of inputs; all of them have to give LiteRT's values."""
    interpreter, report = load(data, door, **options)
    right = oracle(data)
    for number, inputs in enumerate(runs):
        for position, (got, want) in enumerate(
            zip(run(interpreter, inputs), run(right, inputs), strict=True)
        ):
            assert_close(got, want, 1e-4, 1e-5, f"{door}, run {number}, output {position}")
    return report


def taken(report: tflite_vk.SupportReport) -> Mapping[str, bool]:
    """Whether each operator of a model without repeated ones was taken."""
    return {n.op: n.delegated for n in report.nodes}


def random(*shape: int, seed: int = 0, low: float = -2, high: float = 2) -> Array:
    """Random float32 values."""
    return np.random.default_rng([seed, *shape]).uniform(low, high, shape).astype(np.float32)


Build = Callable[[], bytes]
