"""Values at the ends of float16's range in fp16 mode: section E of the bug reports, operator by operator."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from tests.support.half import FLOAT16_MAX, ROUNDING, to_half
from tflite_vk.frontend.flatbuffer import read_model
from tflite_vk.ir.attributes import (
    Conv2DAttributes,
    FullyConnectedAttributes,
    Pool2DAttributes,
    ReducerAttributes,
    SoftmaxAttributes,
)
from tflite_vk.runtime.device import Device
from tflite_vk.session import Session
from tflite_vk.testing.model_writer import ModelWriter

Floats = npt.NDArray[np.float32]
Build = Callable[[ModelWriter, int], int]
Shape = tuple[int, ...]


def run(device: Device, x: npt.ArrayLike, build: Build, **options: object) -> Floats:
    value = np.asarray(x, np.float32)
    w = ModelWriter()
    w.output(build(w, w.input(value.shape)))
    graph = read_model(w.build()).subgraphs[0]
    session = Session(graph, device, precision="fp16", **options)  # type: ignore[arg-type]
    try:
        outputs = session.allocate_outputs(graph.outputs)
        session.run({graph.inputs[0]: value}, outputs)
    finally:
        session.close()
    return np.asarray(outputs[graph.outputs[0]], np.float32)


def reduced(op: str, axes: tuple[int, ...], shape: Shape) -> Build:
    return lambda w, x: w.op(
        op, [x, w.const(np.array(axes, np.int32))], [shape], ReducerAttributes(keep_dims=False)
    )


def plain(op: str, shape: Shape, attributes: object = None) -> Build:
    return lambda w, x: w.op(op, [x], [shape], attributes)  # type: ignore[arg-type]


def with_constant(op: str, constant: npt.ArrayLike, shape: Shape) -> Build:
    return lambda w, x: w.op(op, [x, w.const(np.asarray(constant, np.float32))], [shape])


@pytest.mark.parametrize("shape", [(1, 112, 112, 8), (1, 12544, 8)])
def test_e1_a_mean_of_more_than_float16_holds(shape: Shape, device: Device) -> None:
    axes = tuple(range(1, len(shape) - 1))
    x = np.full(shape, 10, np.float32)
    assert np.all(run(device, x, reduced("MEAN", axes, (1, 8))) == 10)
    # The sum itself is 125440, more than an output of fp16 mode holds.
    assert np.all(run(device, x, reduced("SUM", axes, (1, 8))) == FLOAT16_MAX)
    assert np.all(run(device, x, reduced("SUM", axes, (1, 8)), fp32_ops=["SUM"]) == 125440)


def test_e2_a_large_average_pool(device: Device) -> None:
    a = Pool2DAttributes(
        padding="VALID", stride_w=1, stride_h=1, filter_width=256, filter_height=256
    )
    y = run(device, np.full((1, 256, 256, 3), 300), plain("AVERAGE_POOL_2D", (1, 1, 1, 3), a))
    assert np.all(y == 300)


@pytest.mark.parametrize("deviation", [100.0, 800.0, 20000.0])
def test_e3_a_variance_beyond_float16(deviation: float, device: Device) -> None:
    shape, one = (4, 37), (4, 1)

    def build(w: ModelWriter, x: int) -> int:
        axis, keep = w.const(np.array([1], np.int32)), ReducerAttributes(keep_dims=True)
        centre = w.op("MEAN", [x, axis], [one], keep)
        squares = w.op("SQUARED_DIFFERENCE", [x, centre], [shape])
        variance = w.op("MEAN", [squares, axis], [one], keep)
        safe = w.op("ADD", [variance, w.const(np.float32(1e-3))], [one])
        root = w.op("RSQRT", [safe], [one])
        return w.op("MUL", [w.op("SUB", [x, centre], [shape]), root], [shape])

    x = to_half(np.random.default_rng(1).uniform(-deviation, deviation, shape)).astype(np.float64)
    centred = x - x.mean(1, keepdims=True)
    want = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-3)
    for fusion in (True, False):
        y = run(device, x, build, fusion=fusion)
        assert np.allclose(y, want, rtol=0, atol=6 * ROUNDING * np.abs(want).max())


def test_e4_norms_of_large_rows(device: Device) -> None:
    for row in (np.full(256, 5.0), np.full(8, 3000.0), np.full(37, 60000.0)):
        y = run(device, row[None], plain("L2_NORMALIZATION", (1, row.size)))
        assert np.allclose(y, 1 / np.sqrt(row.size), rtol=2 * ROUNDING)
    assert np.all(run(device, np.zeros((1, 256)), plain("L2_NORMALIZATION", (1, 256))) == 0)


@pytest.mark.parametrize("masked", [-1e4, -1e9, -3.4028235e38, -np.inf])
def test_a_mask_of_an_attention(masked: float, device: Device) -> None:
    x = to_half(np.random.default_rng(2).uniform(-4, 4, (3, 9)))
    mask = np.where(np.arange(9) % 3 == 1, masked, 0).astype(np.float32)

    def build(w: ModelWriter, i: int) -> int:
        s = w.op("ADD", [i, w.const(mask)], [(3, 9)])
        return w.op("SOFTMAX", [s], [(3, 9)], SoftmaxAttributes(beta=1.0))

    e = np.exp(x) * (mask == 0)
    want = e / e.sum(1, keepdims=True)
    for fusion in (True, False):
        y = run(device, x, build, fusion=fusion)
        # The sum with the mask is stored in between.
        assert np.allclose(y, want, rtol=12 * ROUNDING, atol=0)
        assert np.all(y[:, mask != 0] == 0)


def test_constants_saturate(device: Device) -> None:
    x = np.ones((2, 5), np.float32)
    large = np.array([1e6, -1e6, 65504, np.inf, -np.inf])
    y = run(device, x, with_constant("MUL", large, (2, 5)))
    assert np.array_equal(y[1], [FLOAT16_MAX, -FLOAT16_MAX, FLOAT16_MAX, np.inf, -np.inf])


def test_a_constant_of_one_element_stays_float32(device: Device) -> None:
    """As a small epsilon has to."""
    x = np.zeros((2, 5), np.float32)

    def guarded(w: ModelWriter, i: int) -> int:
        safe = w.op("ADD", [i, w.const(np.float32(1e-12))], [(2, 5)])
        return w.op("SQRT", [w.op("SQRT", [safe], [(2, 5)])], [(2, 5)])

    assert np.allclose(run(device, x, guarded), 1e-3, rtol=2 * ROUNDING)
    y = run(device, x, with_constant("ADD", 1e-12, (2, 5)), fp32_ops=["ADD"])
    assert np.allclose(y, 1e-12, rtol=1e-5, atol=0)


def test_weights_and_sums_of_a_matrix_product(device: Device) -> None:
    """Each product is within float16, their sum is not, and the bias brings it back."""
    x = np.full((1, 64), 200, np.float32)
    weights = np.full((8, 64), 100, np.float32)

    def build(w: ModelWriter, i: int) -> int:
        inputs = [i, w.const(weights), w.const(np.full(8, -1279000, np.float32))]
        return w.op("FULLY_CONNECTED", inputs, [(1, 8)], FullyConnectedAttributes())

    assert np.all(run(device, x, build) == 1000)


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_odd_values_go_through_a_convolution(odd: float, device: Device) -> None:
    x = np.ones((1, 5, 5, 4), np.float32)
    x[0, 2, 2, 1] = odd

    def build(w: ModelWriter, i: int) -> int:
        weights = w.const(np.ones((4, 3, 3, 4), np.float32))
        a = Conv2DAttributes(padding="SAME", stride_h=1, stride_w=1)
        bias = w.const(np.zeros(4, np.float32))
        return w.op("CONV_2D", [i, weights, bias], [(1, 5, 5, 4)], a)

    y = run(device, x, build)
    assert np.array_equal(y[0, 1:4, 1:4], np.full((3, 3, 4), odd), equal_nan=True)
    assert np.isfinite(y[0, 0]).all()


@pytest.mark.parametrize("op", ["ABS", "NEG", "RELU", "FLOOR", "SQRT", "LOGISTIC", "TANH", "EXP"])
def test_odd_values_of_unary_operators(op: str, device: Device) -> None:
    x = np.array([np.nan, np.inf, -np.inf, 65504, -65504, 0, -0.0, 6e-8], np.float32)
    functions: dict[str, Callable[[Floats], Floats]] = {
        "ABS": np.abs,
        "NEG": np.negative,
        "RELU": lambda v: np.where(v < 0, np.float32(0), v),
        "FLOOR": np.floor,
        "SQRT": np.sqrt,
        "LOGISTIC": lambda v: 1 / (1 + np.exp(-v)),
        "TANH": np.tanh,
        "EXP": np.exp,
    }
    with np.errstate(all="ignore"):
        want = functions[op](to_half(x))
    # float32 overflows in EXP itself, and a real infinity stays one.
    y = run(device, x, plain(op, (8,)))
    assert np.allclose(y, to_half(want), rtol=2 * ROUNDING, atol=6e-8, equal_nan=True), (y, want)
