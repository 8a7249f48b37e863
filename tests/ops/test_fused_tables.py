"""Functions of bytes fused into the kernel before them: the same integers as by kernels of their own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.support.case import Array
from tests.support.oracle import reference
from tests.support.products import Op, Product
from tests.support.quantized import per_tensor, quantized_input, whole_range
from tflite_vk.dtypes import DType
from tflite_vk.frontend.flatbuffer import read_model
from tflite_vk.ir.attributes import (
    Attributes,
    BatchMatMulAttributes,
    BinaryAttributes,
    LeakyReluAttributes,
)
from tflite_vk.ir.graph import Quantization
from tflite_vk.runtime.device import Device
from tflite_vk.session import Session
from tflite_vk.testing.model_writer import ModelWriter, TensorSpec

INT8, UINT8 = DType.INT8, DType.UINT8
Build = Callable[[ModelWriter], int]
"""Adds a producer and returns its output."""


def _product(op: Op, x: tuple[int, ...], weights: tuple[int, ...]) -> Build:
    def build(w: ModelWriter) -> int:
        Product(
            op,
            x,
            weights,
            dtype=INT8,
            bias_dtype=DType.INT32,
            input_scale=0.05,
            weight_scale=0.02,
            bias=300,
        )(w)
        return w.outputs.pop()

    return build


def _two(op: str, dtype: DType, y: tuple[int, ...] = (2, 5, 6, 7)) -> Build:
    def build(w: ModelWriter) -> int:
        a = quantized_input(w, (2, 5, 6, 7), dtype, (0.05, 100))
        b = quantized_input(w, y, dtype, (0.04, 120))
        out = TensorSpec((2, 5, 6, 7), dtype, per_tensor(dtype, (0.09, 110)))
        attributes = BinaryAttributes("RELU6") if op != "PRELU" else None
        return w.op(op, [a, b], [out], attributes)

    return build


def _matrices(w: ModelWriter) -> int:
    a = quantized_input(w, (2, 5, 7), INT8, (0.05, 100))
    b = quantized_input(w, (2, 7, 6), INT8, (0.04, 120))
    out = TensorSpec((2, 5, 6), INT8, per_tensor(INT8, (0.4, 110)))
    return w.op("BATCH_MATMUL", [a, b], [out], BatchMatMulAttributes(), version=2)


def _function(w: ModelWriter) -> int:
    x = quantized_input(w, (3, 86), UINT8, (0.05, 100))
    out = TensorSpec((3, 86), UINT8, per_tensor(UINT8, (0.04, 30)))
    return w.op("RELU", [x], [out])


_PRODUCERS: dict[str, Build] = {
    "conv": _product("CONV_2D", (2, 6, 7, 5), (9, 3, 3, 5)),
    "conv_wide": _product("CONV_2D", (1, 12, 12, 8), (40, 1, 1, 8)),
    "depthwise": _product("DEPTHWISE_CONV_2D", (2, 6, 7, 5), (1, 3, 3, 5)),
    "depthwise_multiplier": _product("DEPTHWISE_CONV_2D", (1, 6, 7, 5), (1, 3, 3, 10)),
    "transpose_conv": _product("TRANSPOSE_CONV", (1, 4, 5, 6), (7, 3, 3, 6)),
    "fully_connected_row": _product("FULLY_CONNECTED", (2, 30), (43, 30)),
    "fully_connected_rows": _product("FULLY_CONNECTED", (9, 30), (11, 30)),
    "add": _two("ADD", INT8),
    "add_uint8": _two("ADD", UINT8),
    "mul_broadcast": _two("MUL", INT8, (7,)),
    "prelu": _two("PRELU", UINT8, (1, 1, 7)),
    "batch_matmul": _matrices,
    "function": _function,
}

_LEAKY = LeakyReluAttributes(alpha=0.3)
_CHAINS: dict[str, tuple[tuple[str, Attributes | None, DType | None, tuple[float, int]], ...]] = {
    "HARD_SWISH": (("HARD_SWISH", None, None, (0.05, 20)),),
    "LEAKY_RELU": (("LEAKY_RELU", _LEAKY, None, (0.06, 90)),),
    "QUANTIZE": (("QUANTIZE", None, UINT8, (0.07, 33)),),
    "QUANTIZE_RELU6_QUANTIZE_LOGISTIC": (
        ("QUANTIZE", None, UINT8, (0.05, 90)),
        ("RELU6", None, UINT8, (0.03, 10)),
        ("QUANTIZE", None, INT8, (0.05, 100)),
        ("LOGISTIC", None, INT8, (1 / 256, 0)),
    ),
}


def _model(producer: str, chain: str) -> bytes:
    w = ModelWriter()
    x = _PRODUCERS[producer](w)
    for op, attributes, other, scale in _CHAINS[chain]:
        spec = w.tensors[x].spec
        dtype = other or spec.dtype
        x = w.op(op, [x], [TensorSpec(spec.shape, dtype, per_tensor(dtype, scale))], attributes)
    w.output(x)
    return w.build()


def _run(data: bytes, device: Device, inputs: list[Array], *, fusion: bool) -> tuple[Array, int]:
    """The output, and how many dispatches made it."""
    graph = read_model(data).subgraphs[0]
    session = Session(graph, device, fusion=fusion)
    try:
        outputs = session.allocate_outputs(graph.outputs)
        session.run(dict(zip(graph.inputs, inputs, strict=True)), outputs)
        return outputs[graph.outputs[0]], len(session.lowered.program.dispatches)
    finally:
        session.close()


def _inputs(data: bytes) -> list[Array]:
    graph = read_model(data).subgraphs[0]
    rng = np.random.default_rng(4)
    return [whole_range(rng, graph.tensors[t].shape, graph.tensors[t].dtype) for t in graph.inputs]


@pytest.mark.parametrize("chain", _CHAINS)
@pytest.mark.parametrize("producer", _PRODUCERS)
def test_fused_is_unfused(producer: str, chain: str, device: Device) -> None:
    data = _model(producer, chain)
    inputs = _inputs(data)
    fused, few = _run(data, device, inputs, fusion=True)
    apart, many = _run(data, device, inputs, fusion=False)
    assert many - few == len(_CHAINS[chain])
    assert len(np.unique(fused)) > 2
    assert fused.dtype == apart.dtype
    assert fused.tobytes() == apart.tobytes()
    assert fused.tobytes() == reference(data, inputs)[0].tobytes()


def test_a_value_that_is_read_twice_stays(device: Device) -> None:
    w = ModelWriter()
    x = _PRODUCERS["conv"](w)
    spec = w.tensors[x].spec
    y = w.op("RELU", [x], [TensorSpec(spec.shape, INT8, spec.quantization)])
    w.output(x, y)
    data = w.build()
    graph = read_model(data).subgraphs[0]
    inputs = _inputs(data)
    session = Session(graph, device)
    try:
        assert len(session.lowered.program.dispatches) == 2
        outputs = session.allocate_outputs(graph.outputs)
        session.run(dict(zip(graph.inputs, inputs, strict=True)), outputs)
    finally:
        session.close()
    for got, want in zip((outputs[x], outputs[y]), reference(data, inputs), strict=True):
        assert got.tobytes() == want.tobytes()


def test_int16_is_not_fused(device: Device) -> None:
    w = ModelWriter()
    Product("FULLY_CONNECTED", (3, 5), (4, 5))(w)
    x = w.outputs.pop()
    scale = Quantization((1 / 32768,), (0,))
    w.output(w.op("TANH", [x], [TensorSpec((3, 4), DType.INT16, scale)], version=3))
    data = w.build()
    inputs = _inputs(data)
    got, dispatches = _run(data, device, inputs, fusion=True)
    assert dispatches == 2
    assert got.tobytes() == reference(data, inputs)[0].tobytes()
