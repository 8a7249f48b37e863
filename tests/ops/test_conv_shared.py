"""CONV_2D through shared memory, which rule and tuning give only to GPUs, run here in chosen sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.ops.cases import conv_2d as conv_cases
from tests.ops.cases import fully_connected as product_cases
from tests.ops.cases.conv_2d import Conv
from tests.ops.test_ops import GUARD_WORDS
from tests.ops.test_ops_half import roundings
from tests.support.case import Array, Case, random_array
from tests.support.compare import assert_close, assert_equal
from tests.support.half import assert_close_half, half_model, to_half
from tests.support.oracle import reference
from tflite_vk.frontend.flatbuffer import read_model
from tflite_vk.ir.attributes import Conv2DAttributes
from tflite_vk.ir.graph import Graph
from tflite_vk.ops import conv_2d
from tflite_vk.ops.sizes import Offer, Size
from tflite_vk.passes.fold_constants import fold_constants
from tflite_vk.program import MemoryPlan, Program
from tflite_vk.runtime.device import Device, Executable
from tflite_vk.session import Session
from tflite_vk.testing.model_writer import ModelWriter

SIZES: tuple[Size, ...] = (
    (7, 1, 8, 8, 1, 2, 2),  # what the rule takes, the sum in one part
    (4, 2, 2, 3, 1, 1, 1),  # an odd number of rows, one buffer
    (8, 1, 4, 8, 1, 4, 2),  # more invocations than weights to stage
    (2, 1, 4, 1, 8, 4, 2),  # more parts than results, a step longer than most sums
    (7, 2, 2, 2, 4, 1, 1),
)
Force = Callable[[Size], None]


@pytest.fixture
def force(monkeypatch: pytest.MonkeyPatch) -> Force:
    """Lowers products in a size, whatever the device and the shape."""

    def force(size: Size) -> None:
        def only(offer: Offer, *_: object) -> Offer:
            return replace(offer, rule=size)

        monkeypatch.setattr(conv_2d, "with_shared", only)
        # The build for software drivers has sizes of its own.
        monkeypatch.setattr(conv_2d, "shares_loads", lambda *_, **__: False)

    return force


def _run(
    graph: Graph,
    device: Device,
    inputs: list[Array],
    precision: str = "fp32",
    *,
    is_shared: bool = True,
) -> list[Array]:
    session = Session(graph, device, precision=precision, guard_words=GUARD_WORDS)
    try:
        outputs = session.allocate_outputs(graph.outputs)
        session.run(dict(zip(graph.inputs, inputs, strict=True)), outputs)
        assert session.executable.check_guards() == []
        shaders = [d.kernel.shader for d in session.lowered.program.dispatches]
        assert is_shared == any(name.startswith("conv_2d_shared") for name in shaders)
    finally:
        session.close()
    return [outputs[t] for t in graph.outputs]


def _graph(data: bytes) -> Graph:
    return fold_constants(read_model(data).subgraphs[0])


def _inputs(case: Case, graph: Graph) -> list[Array]:
    rng, tensors = case.rng(), [graph.tensors[t] for t in graph.inputs]
    return [random_array(rng, t.shape, t.dtype.numpy, case.low, case.high) for t in tensors]


# Groups of whole vectors, and few rows, are other kernels'.
_GROUPED = ("C17_four_groups_of_4", "C17_two_groups_of_8")
_MANY_ROWS = ("FULLY_CONNECTED_5x", "FULLY_CONNECTED_37x", "C16_keep_num_dims")
_CASES = [c for c in conv_cases.CASES if c.name not in _GROUPED]
_CASES += [c for c in product_cases.CASES if c.name.startswith(_MANY_ROWS)]
_IN_TURN = [(case, SIZES[i % len(SIZES)]) for i, case in enumerate(_CASES)]
_IDS = [case.name for case in _CASES]


@pytest.mark.parametrize(("case", "size"), _IN_TURN, ids=_IDS)
def test_every_case(case: Case, size: Size, device: Device, force: Force) -> None:
    data = case.model()
    graph = _graph(data)
    inputs = _inputs(case, graph)
    want = case.expected(*inputs) if case.expected is not None else reference(data, inputs)
    force(size)
    for got, right in zip(_run(graph, device, inputs), want, strict=True):
        assert_close(got, np.asarray(right), case.rtol, case.atol_of_scale, "output")


@pytest.mark.parametrize(("case", "size"), _IN_TURN[1::3], ids=_IDS[1::3])
def test_cases_in_half_precision(case: Case, size: Size, device: Device, force: Force) -> None:
    data = half_model(case)
    graph = _graph(data)
    inputs = [to_half(x) for x in _inputs(case, graph)]
    want = case.expected(*inputs) if case.expected is not None else reference(data, inputs)
    force(size)
    for got, right in zip(_run(graph, device, inputs, "fp16"), want, strict=True):
        assert_close_half(got, np.asarray(right), case, roundings(graph), "output")


_AWKWARD = {
    # Blocks, groups and steps all end in the middle: 2 x 7 x 5 pixels, 46 channels, 30 inputs.
    "strided": Conv(
        (2, 14, 10, 30),
        (46, 3, 3, 30),
        Conv2DAttributes(fused_activation_function="RELU6", stride_h=2, stride_w=2),
    ),
    "dilated": Conv(
        (1, 11, 9, 7),
        (18, 3, 2, 7),
        Conv2DAttributes(dilation_h_factor=2, dilation_w_factor=3),
    ),
    "pointwise": Conv((1, 9, 11, 35), (22, 1, 1, 35)),
    "half weights": Conv((1, 9, 11, 18), (37, 3, 3, 18), half_weights=True),
}


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("conv", _AWKWARD.values(), ids=_AWKWARD)
def test_the_bits_are_those_of_register_tiles(
    conv: Conv, size: Size, device: Device, force: Force
) -> None:
    case = Case("shared", conv)
    data = case.model()
    graph = _graph(data)
    inputs = _inputs(case, graph)
    parts = size[4]
    force((4, 1, 8, 4, parts, 1))
    want = _run(graph, device, inputs, is_shared=False)
    force(size)
    got = _run(graph, device, inputs)
    kernel, input_groups = conv.weights[1:3], -(-conv.weights[3] // 4)
    # Register tiles begin each tap with the first part: else some groups are another part's.
    if kernel == (1, 1) or input_groups % parts == 0:
        assert_equal(got[0], want[0], "output")
    assert_close(got[0], reference(data, inputs)[0], case.rtol, case.atol_of_scale, "output")


class _Narrow:
    """A device that takes few workgroups along y."""

    def __init__(self, device: Device) -> None:
        self._device = device
        limits = replace(device.info.limits, max_workgroup_count=(65535, 3, 65535))
        self.info = replace(device.info, limits=limits)
        self.dispatcher = device.dispatcher

    def compile(
        self, program: Program, plan: MemoryPlan, *, profiling: bool = False, guard_words: int = 0
    ) -> Executable:
        conv = next(d for d in program.dispatches if d.kernel.shader == "conv_2d_shared")
        assert conv.groups[1:] == (3, 3)
        return self._device.compile(program, plan, profiling=profiling, guard_words=guard_words)

    def close(self) -> None:
        raise NotImplementedError


def test_blocks_go_on_along_z(device: Device, force: Force) -> None:
    """99 pixels in 8 blocks: the last of 9 workgroups has none."""
    case = Case("shared", _AWKWARD["pointwise"])
    data = case.model()
    graph = _graph(data)
    inputs = _inputs(case, graph)
    force((7, 2, 2, 2, 4, 1, 1))
    got = _run(graph, _Narrow(device), inputs)
    assert_close(got[0], reference(data, inputs)[0], case.rtol, case.atol_of_scale, "output")


def _after_logarithm(channels: int) -> bytes:
    """A convolution of logarithms: those of padding lanes are infinite or NaN."""
    w, rng = ModelWriter(), np.random.default_rng(0)
    x = w.op("LOG", [w.input((1, 5, 6, channels))], [(1, 5, 6, channels)])
    weights = w.const(rng.uniform(-1, 1, (9, 3, 3, channels)).astype(np.float32))
    inputs = [x, weights, w.const(np.zeros(9, np.float32))]
    w.output(w.op("CONV_2D", inputs, [(1, 5, 6, 9)], Conv2DAttributes()))
    return w.build()


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("channels", [5, 6, 7, 8])
def test_padding_lanes_stay_out(
    channels: int, precision: str, device: Device, force: Force
) -> None:
    data = _after_logarithm(channels)
    x = np.random.default_rng(1).uniform(0.5, 2, (1, 5, 6, channels)).astype(np.float32)
    force(SIZES[channels % len(SIZES)])
    (got,) = _run(_graph(data), device, [x], precision)
    (want,) = reference(data, [x])
    tolerance = 1e-5 if precision == "fp32" else 1e-2
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * float(np.abs(want).max()))
