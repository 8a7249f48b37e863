"""A depthwise and a pointwise convolution in one kernel: the bits of both kernels apart, LiteRT's values.

Software drivers keep the two apart, so the device says it is a GPU here.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest

from tests.support.as_gpu import AsGpu
from tests.support.case import ATOL_OF_SCALE, RTOL, Array
from tests.support.compare import assert_close, assert_equal
from tests.support.oracle import reference
from tflite_vk.frontend.flatbuffer import read_model
from tflite_vk.ir.attributes import (
    BinaryAttributes,
    Conv2DAttributes,
    DepthwiseConv2DAttributes,
    LeakyReluAttributes,
)
from tflite_vk.ir.graph import Graph
from tflite_vk.ops import conv_2d, separable_conv_2d
from tflite_vk.ops.sizes import Offer, Size
from tflite_vk.ops.window import Window
from tflite_vk.passes.fold_constants import fold_constants
from tflite_vk.runtime.device import Device
from tflite_vk.session import Session
from tflite_vk.testing.model_writer import ModelWriter

Shape = tuple[int, int, int, int]

PLAIN = DepthwiseConv2DAttributes(depth_multiplier=1)


@dataclass(frozen=True)
class Pair:
    """A model of one pair.

    Attributes:
        x: shape of the input.
        channels: of the output.
        kernel: height and width of the depthwise filter.
        options: of the depthwise part.
        act: fused activation of the pointwise part.
        behind: adds what follows, given the writer, the pair's input and result, and its shape.
        has_bias: of the depthwise part; LiteRT wants one of the other.
        is_half: both filters are stored as float16.
        is_divided: the input is a quotient, which leaves NaN in padding lanes.
        between: operator of its own between the two.
    """

    x: Shape
    channels: int
    kernel: tuple[int, int] = (3, 3)
    options: DepthwiseConv2DAttributes = PLAIN
    act: str = "NONE"
    behind: Callable[[ModelWriter, int, int, Shape], int] | None = None
    has_bias: bool = True
    is_half: bool = False
    is_divided: bool = False
    between: str = ""

    def build(self) -> bytes:
        """The .tflite file."""
        w, rng = ModelWriter(), np.random.default_rng(zlib.crc32(repr(self.x).encode()))
        n, h, width, c = self.x
        a = self.options

        def filter_of(*shape: int) -> int:
            value = rng.uniform(-1, 1, shape).astype(np.float32)
            return w.half_const(value.astype(np.float16)) if self.is_half else w.const(value)

        given = source = w.input(self.x)
        if self.is_divided:
            divisor = w.const(rng.uniform(1, 2, c).astype(np.float32))
            source = w.op("DIV", [source, divisor], [self.x], BinaryAttributes())
        rows = Window(self.kernel[0], a.stride_h, a.dilation_h_factor).output_size(h, a.padding)
        columns = Window(self.kernel[1], a.stride_w, a.dilation_w_factor).output_size(
            width, a.padding
        )
        middle: Shape = (n, rows, columns, c)
        inputs = [source, filter_of(1, *self.kernel, c)]
        if self.has_bias:
            inputs.append(w.const(rng.uniform(-1, 1, c).astype(np.float32)))
        y = w.op("DEPTHWISE_CONV_2D", inputs, [middle], a)
        if self.between:
            y = w.op(self.between, [y], [middle])
        shape: Shape = (n, rows, columns, self.channels)
        last_bias = rng.uniform(-1, 1, self.channels).astype(np.float32)
        y = w.op(
            "CONV_2D",
            [y, filter_of(self.channels, 1, 1, c), w.const(last_bias)],
            [shape],
            Conv2DAttributes(fused_activation_function=self.act),  # type: ignore[arg-type]
        )
        if self.behind is not None:
            y = self.behind(w, given, y, shape)
        w.output(y)
        return w.build()


def _options(
    padding: str = "SAME",
    s: tuple[int, int] = (1, 1),
    d: tuple[int, int] = (1, 1),
    act: str = "RELU6",
) -> DepthwiseConv2DAttributes:
    return DepthwiseConv2DAttributes(
        fused_activation_function=act,  # type: ignore[arg-type]
        padding=padding,  # type: ignore[arg-type]
        stride_h=s[0],
        stride_w=s[1],
        dilation_h_factor=d[0],
        dilation_w_factor=d[1],
        depth_multiplier=1,
    )


def _residual(w: ModelWriter, x: int, y: int, shape: Shape) -> int:
    attributes = BinaryAttributes(fused_activation_function="RELU")
    return w.op("ADD", [x, y], [shape], attributes)


def _prelu(w: ModelWriter, x: int, y: int, shape: Shape) -> int:
    del x
    alpha = np.linspace(-0.5, 0.5, shape[3], dtype=np.float32).reshape(1, 1, -1)
    return w.op("PRELU", [y, w.const(alpha)], [shape])


def _many(w: ModelWriter, x: int, y: int, shape: Shape) -> int:
    """Steps that only the `_full` build has."""
    y = w.op("LEAKY_RELU", [y], [shape], LeakyReluAttributes(alpha=0.25))
    y = w.op("TANH", [y], [shape])
    return w.op("MUL", [y, x], [shape], BinaryAttributes())


PAIRS = {
    "plain": Pair((1, 7, 6, 8), 12),
    "relu6": Pair((1, 9, 11, 16), 24, options=_options(), act="RELU6"),
    "stride_2": Pair((1, 9, 11, 12), 8, options=_options(s=(2, 2), act="RELU")),
    "stride_2x1_valid": Pair(
        (2, 9, 8, 8), 20, options=_options("VALID", (2, 1), act="RELU_N1_TO_1")
    ),
    "valid": Pair((1, 9, 11, 8), 8, options=_options("VALID", act="NONE")),
    "5x5": Pair((1, 9, 8, 12), 16, (5, 5), _options()),
    "5x5_stride_2": Pair((1, 11, 8, 8), 16, (5, 5), _options(s=(2, 2))),
    "1x3": Pair((1, 5, 8, 8), 16, (1, 3)),
    "even_filter": Pair((1, 8, 8, 8), 8, (2, 4), _options(s=(2, 2))),
    "dilation": Pair((1, 9, 10, 8), 12, options=_options(d=(2, 3))),
    "dilation_valid": Pair((1, 9, 10, 8), 12, options=_options("VALID", d=(2, 2))),
    "odd_channels": Pair((1, 7, 6, 5), 7, options=_options(), act="RELU6"),
    "odd_channels_batch": Pair((3, 5, 4, 37), 13, options=_options(s=(2, 2))),
    "one_channel": Pair((1, 5, 4, 1), 1),
    "one_pixel": Pair((1, 1, 1, 40), 72),
    "nan_in_padding_lanes": Pair((1, 7, 6, 6), 7, is_divided=True),
    "no_bias": Pair((1, 7, 6, 9), 12, has_bias=False),
    "half_filters": Pair((1, 7, 6, 9), 12, options=_options(), is_half=True),
    "hard_swish_between": Pair((1, 7, 6, 8), 12, between="HARD_SWISH"),
    "residual": Pair((1, 7, 6, 12), 12, options=_options(), behind=_residual),
    "prelu": Pair((1, 7, 6, 12), 10, options=_options(), behind=_prelu),
    "full_epilogue": Pair((1, 7, 6, 10), 10, options=_options(), behind=_many),
    "many_channels": Pair((1, 4, 5, 200), 136, options=_options(), act="RELU6"),
    "many_pixels": Pair((2, 40, 37, 8), 16, options=_options(s=(1, 2))),
}


def _always(*_: object) -> bool:
    return True


def _never(*_: object) -> bool:
    return False


def _run(
    graph: Graph, device: Device, inputs: Sequence[Array], *, precision: str = "fp32"
) -> tuple[list[Array], list[str]]:
    """Outputs, and the kernels that computed them."""
    session = Session(graph, device, precision=precision, guard_words=16)
    try:
        outputs = session.allocate_outputs(graph.outputs)
        session.run(dict(zip(graph.inputs, inputs, strict=True)), outputs)
        assert session.executable.check_guards() == []
        kernels = [d.kernel.shader for d in session.lowered.program.dispatches]
    finally:
        session.close()
    return [outputs[t] for t in graph.outputs], kernels


def _graph(pair: Pair) -> tuple[bytes, Graph, list[Array]]:
    data = pair.build()
    graph = fold_constants(read_model(data).subgraphs[0])
    value = np.random.default_rng(1).uniform(-2, 2, pair.x).astype(np.float32)
    return data, graph, [value]


def _is_joined(kernels: list[str]) -> bool:
    is_joined = any(k.startswith("separable_conv_2d") for k in kernels)
    assert is_joined != any(k.startswith(("conv_2d", "depthwise")) for k in kernels)
    return is_joined


@pytest.mark.parametrize("name", PAIRS)
def test_a_pair_is_what_litert_computes(
    name: str, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair, is_small = PAIRS[name], list(PAIRS).index(name) % 3 != 0
    monkeypatch.setattr(separable_conv_2d, "pays", _always)
    data, graph, inputs = _graph(pair)
    got, kernels = _run(graph, AsGpu(device, is_small=is_small), inputs)
    assert _is_joined(kernels)
    (want,) = reference(data, inputs)
    assert_close(got[0], want, RTOL, ATOL_OF_SCALE, "output")


def _only(size: Size) -> Callable[..., Offer]:
    return lambda signature, *_, **__: Offer(signature, size, lambda: ())


SIZES: list[Size] = [(2, 1, 4, 4, 1, 1), (2, 2, 2, 2, 2, 1), (3, 1, 3, 2, 4, 1), (1, 1, 4, 2, 2, 2)]


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("name", PAIRS)
def test_a_pair_has_the_bits_of_two_kernels(
    name: str, precision: str, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair, turn = PAIRS[name], list(PAIRS).index(name) + (precision == "fp16")
    size = SIZES[turn % len(SIZES)]
    monkeypatch.setattr(conv_2d, "tile_offer", _only(size))
    monkeypatch.setattr(separable_conv_2d, "separable_offer", _only(size))
    _, graph, inputs = _graph(pair)
    as_gpu = AsGpu(device, is_small=False)
    found = []
    for pays in (_always, _never):
        monkeypatch.setattr(separable_conv_2d, "pays", pays)
        got, kernels = _run(graph, as_gpu, inputs, precision=precision)
        assert _is_joined(kernels) == (pays is _always)
        found.append(got[0])
        kind = "_f16" if precision == "fp16" else "_w16" if pair.is_half else ""
        steps = "_full" if pair.behind is _many else ""
        assert f"separable_conv_2d{kind}{steps}" in kernels or pays is _never
    if device.info.is_software:
        assert_equal(found[0], found[1], "output")
    else:  # a GPU's compiler contracts multiply and add where it likes, in each kernel by itself
        assert_close(found[0], found[1], RTOL, ATOL_OF_SCALE, "output")


@pytest.mark.parametrize("sharers", [1, 2])
def test_little_shared_memory_changes_no_bit(
    sharers: int, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(separable_conv_2d, "pays", _always)
    size = (4, 1, 4, 4, sharers, 1)
    monkeypatch.setattr(separable_conv_2d, "separable_offer", _only(size))
    _, graph, inputs = _graph(PAIRS["odd_channels_batch"])
    found, held = [], []
    for shared in (16384, 1024):
        as_gpu = AsGpu(device, is_small=False)
        limits = replace(as_gpu.info.limits, shared_memory_bytes=shared)
        as_gpu.info = replace(as_gpu.info, limits=limits)
        session = Session(graph, as_gpu)
        (dispatch,) = (
            d for d in session.lowered.program.dispatches if d.kernel.shader == "separable_conv_2d"
        )
        held.append((dispatch.kernel.spec[16], dispatch.kernel.spec[18]))
        session.close()
        found.append(_run(graph, as_gpu, inputs)[0][0])
    # Groups of channels, and results whose parts are added up together.
    assert held == [(10, 4), (4, 4 // sharers)]
    assert_equal(found[0], found[1], "output")
