"""An invoke() makes no host memory: neither copies of tensors nor anything that stays."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import tflite_vk
from tests.conformance.conftest import open_runtime
from tflite_vk.ir.attributes import NoAttributes
from tflite_vk.testing.model_writer import ModelWriter

SIZE = (1, 100, 100, 3)
"""120 kB a tensor, and innermost dimensions that lie padded on the device."""

SMALL = 4096
"""Objects of the interpreter's own, such as numbers and frames."""


def _model() -> bytes:
    w = ModelWriter()
    x, y = w.input(SIZE, name="x"), w.input(SIZE, name="y")
    w.output(w.op("ABS", [x], [SIZE], NoAttributes()))
    w.output(w.op("ATAN2", [x, y], [SIZE], NoAttributes()))
    return w.build()


def _own(dispatcher: str) -> Any:
    return tflite_vk.Interpreter(model_content=_model(), dispatcher=dispatcher)


def _delegate(dispatcher: str) -> Any:
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    delegate = tflite_vk.VulkanDelegate(dispatcher=dispatcher)
    interpreter = litert.Interpreter(model_content=_model(), experimental_delegates=[delegate])
    assert delegate.report.is_fully_delegated
    return interpreter


def _peak_and_growth(run: Any, times: int) -> tuple[int, int]:
    """Bytes made at most at one time, and left behind, by so many calls."""
    for _ in range(3):
        run()
    tracemalloc.start()
    try:
        run()
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        for _ in range(times):
            run()
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return peak - before, after - before


@pytest.mark.parametrize("dispatcher", ["vulkan", "kompute"])
@pytest.mark.parametrize("make", [_own, _delegate], ids=["interpreter", "delegate"])
def test_an_invoke_makes_no_host_memory(make: Any, dispatcher: str) -> None:
    open_runtime(dispatcher)
    interpreter = make(dispatcher)
    interpreter.allocate_tensors()
    for details in interpreter.get_input_details():
        interpreter.set_tensor(details["index"], np.ones(SIZE, np.float32))
    peak, growth = _peak_and_growth(interpreter.invoke, 50)
    assert peak < SMALL
    assert growth < SMALL


def test_a_copy_of_a_tensor_would_be_seen() -> None:
    kept: list[Any] = []
    peak, growth = _peak_and_growth(lambda: kept.append(np.ones(SIZE, np.float32)), 2)
    assert min(peak, growth) > SMALL
