"""What fp16 mode says of a driver that converts wrongly, and of outputs that overflowed."""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from tflite_vk import fp16
from tflite_vk.errors import DeviceError
from tflite_vk.frontend.flatbuffer import read_model
from tflite_vk.ir.graph import Graph
from tflite_vk.runtime.device import Device
from tflite_vk.runtime.null import NullDevice
from tflite_vk.session import Session
from tflite_vk.testing.model_writer import ModelWriter

Floats = npt.NDArray[np.float32]
SHAPE = (3, 37)
X = np.linspace(-2, 2, 111, dtype=np.float32).reshape(SHAPE)


def graph_of(build: Callable[[ModelWriter, int], int], shape: tuple[int, ...] = SHAPE) -> Graph:
    w = ModelWriter()
    w.output(build(w, w.input(shape, "x")))
    return read_model(w.build()).subgraphs[0]


def watch_of(shape: tuple[int, ...] = SHAPE) -> tuple[fp16.OutputWatch, int, int]:
    graph = graph_of(lambda w, x: w.op("ABS", [x], [shape]), shape)
    return fp16.OutputWatch(graph), graph.inputs[0], graph.outputs[0]


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]


def with_one(value: float) -> Floats:
    y = np.ones(SHAPE, np.float32)
    y[1, 5] = value
    return y


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (with_one(np.nan), "holds infinities or NaN"),
        (with_one(np.inf), "holds infinities or NaN"),
        (with_one(-np.inf), "holds infinities or NaN"),
        (with_one(65504), "reaches 65504"),
        (with_one(-65504), "reaches 65504"),
        (np.full(SHAPE, 60000, np.float32), None),
        (with_one(-1e6), None),
        (np.zeros(SHAPE, np.float32), "is zero everywhere"),
        (np.zeros((4, 4), np.float32), None),
        (6e-8 * (with_one(2) - 1), None),
        (with_one(1), None),
        (np.zeros((0, 3), np.float32), None),
    ],
)
def test_odd_outputs(output: Floats, message: str | None, caplog: pytest.LogCaptureFixture) -> None:
    watch, x, y = watch_of()
    for _ in range(2):
        watch.look({x: X}, {y: output})
    texts = said(caplog)
    assert len(texts) == (message is not None), "a fault is told once"
    if message is not None:
        assert message in texts[0]
        assert "precision" in texts[0]
        assert "fp32_ops" in texts[0]


@pytest.mark.parametrize("given", [np.zeros(SHAPE, np.float32), with_one(np.inf), with_one(np.nan)])
def test_odd_inputs_explain_odd_outputs(given: Floats, caplog: pytest.LogCaptureFixture) -> None:
    watch, x, y = watch_of()
    watch.look({x: given}, {y: np.zeros(SHAPE, np.float32)})
    watch.look({x: given}, {y: with_one(np.nan)})
    assert said(caplog) == []
    watch.look({x: X}, {y: with_one(np.nan)})
    assert len(said(caplog)) == 1


def test_a_large_output_is_sampled(caplog: pytest.LogCaptureFixture) -> None:
    """After the first, second, fourth run, but not the third."""
    shape = (1, 257, 256)
    watch, x, y = watch_of(shape)
    good, bad = np.ones(shape, np.float32), np.full(shape, np.nan, np.float32)
    for value in (good, good, bad):
        watch.look({x: good}, {y: value})
    assert said(caplog) == []
    watch.look({x: good}, {y: bad})
    assert len(said(caplog)) == 1


class TruncatingDevice(NullDevice):
    """A device that is said to compute, and gives zeros."""

    @property
    def dispatcher(self) -> str:
        return "vulkan"


def test_a_device_that_converts_wrongly_is_refused() -> None:
    device = TruncatingDevice()
    graph = graph_of(lambda w, x: w.op("ABS", [x], [SHAPE]))
    for _ in range(2):
        with pytest.raises(DeviceError, match=r"float16 wrongly: 1 becomes 0 .*precision=\"fp32\""):
            Session(graph, device, precision="fp16")
    Session(graph, device).close()
    Session(graph, NullDevice(), precision="fp16").close()


def test_the_device_converts_as_the_host_does(device: Device) -> None:
    fp16.check_conversions(device)


def run_half(device: Device, graph: Graph, x: Floats, **options: object) -> Floats:
    session = Session(graph, device, precision="fp16", **options)  # type: ignore[arg-type]
    try:
        outputs = session.allocate_outputs(graph.outputs)
        session.run({graph.inputs[0]: x}, outputs)
    finally:
        session.close()
    (y,) = outputs.values()
    return y.astype(np.float32)


def there_and_back(w: ModelWriter, x: int) -> int:
    """E7: times 1000, then times 0.001."""
    up = w.op("MUL", [x, w.const(np.full(37, 1000, np.float32))], [SHAPE])
    return w.op("MUL", [up, w.const(np.full(37, 0.001, np.float32))], [SHAPE])


def test_values_between_fused_operators_are_float32(device: Device) -> None:
    y = run_half(device, graph_of(there_and_back), 100 * X)
    assert np.allclose(y, 100 * X, rtol=2e-3)


def test_a_stored_value_saturates_unless_its_operator_keeps_float32(
    device: Device, caplog: pytest.LogCaptureFixture
) -> None:
    graph = graph_of(there_and_back)
    y = run_half(device, graph, 100 * X, fusion=False)
    assert np.allclose(y, np.clip(100 * X, -65.504, 65.504), rtol=2e-3)
    y = run_half(device, graph, 100 * X, fusion=False, fp32_ops=["MUL"])
    assert np.allclose(y, 100 * X, rtol=1e-6)
    assert said(caplog) == []


def test_an_overflow_in_an_output_is_told(device: Device, caplog: pytest.LogCaptureFixture) -> None:
    y = run_half(device, graph_of(lambda w, x: w.op("EXP", [x], [SHAPE])), 10 * X)
    assert y.max() == 65504
    (text,) = said(caplog)
    assert "reaches 65504" in text


def test_an_infinity_stays_one(device: Device, caplog: pytest.LogCaptureFixture) -> None:
    y = run_half(device, graph_of(lambda w, x: w.op("EXP", [x], [SHAPE])), with_one(np.inf))
    assert np.isposinf(y[1, 5])
    y = run_half(device, graph_of(lambda w, x: w.op("SQRT", [x], [SHAPE])), X)
    assert np.isnan(y[0]).all()
    (text,) = said(caplog)
    assert "holds infinities or NaN" in text
