"""Models in other words: written back as they were read, and custom operators as builtin ones."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.models import MODELS, model_path
from tests.support.oracle import reference
from tflite_vk.dtypes import DType
from tflite_vk.frontend.flatbuffer import Model, read_model
from tflite_vk.ir.attributes import BinaryAttributes, Padding, TransposeConvAttributes
from tflite_vk.ir.graph import Quantization
from tflite_vk.testing import ModelWriter
from tflite_vk.testing.graph_writer import write_model
from tflite_vk.testing.substitute import substitute

CUSTOM = "Convolution2DTransposeBias"


def summary(model: Model) -> list[object]:
    """All that a written model has to have in common with the one it was made of."""
    return [
        (
            g.name,
            g.nodes,
            g.inputs,
            g.outputs,
            [
                (
                    t.name,
                    t.shape,
                    t.dtype,
                    t.quantization,
                    t.shape_signature,
                    t.is_variable,
                    None
                    if t.data is None
                    else (t.data.tolist() if t.dtype is DType.STRING else t.data.tobytes()),
                )
                for t in g.tensors.values()
            ],
        )
        for g in model.subgraphs
    ] + [model.signatures, model.description]


@pytest.mark.parametrize("name", MODELS)
def test_a_model_reads_back_as_it_was(name: str) -> None:
    model = read_model(model_path(name).read_bytes())
    assert summary(read_model(write_model(model))) == summary(model)


def test_every_kind_of_tensor_reads_back() -> None:
    w = ModelWriter()
    x = w.input((2, 3), "x", shape_signature=(-1, 3))
    nibbles = w.const(np.array([1, -2, 7], np.int8), dtype=DType.INT4)
    brain = w.const(np.array([1.5, -2.0]), dtype=DType.BFLOAT16)
    text = w.const(["a", "bc"])
    state = w.variable((2, 2), "state")
    q = w.const(np.int8([[1], [2]]), quantization=Quantization((0.5, 0.25), (0, 0), 0))
    y = w.op("Unheard", [x, None, nibbles, brain, text, state, q], [(2, 3)], b"bytes")
    w.output(y, x)
    w.signature("run", {"a": x}, {"b": y})
    g = w.subgraph("other")
    g.output(g.input((), "scalar"))
    data = w.build()
    assert summary(read_model(write_model(read_model(data)))) == summary(read_model(data))


def transpose(
    padding: Padding, kernel: tuple[int, int], stride: tuple[int, int], *, has_bias: bool
) -> tuple[bytes, np.ndarray, np.ndarray]:
    """A graph with the custom operator in its middle, and its filter and bias."""
    rng = np.random.default_rng(1)
    filters = rng.uniform(-1, 1, (3, *kernel, 5)).astype(np.float32)
    bias = rng.uniform(-1, 1, 3).astype(np.float32)
    h, w = 4, 6
    size = (
        (h * stride[0], w * stride[1])
        if padding == "SAME"
        else ((h - 1) * stride[0] + kernel[0], (w - 1) * stride[1] + kernel[1])
    )
    g = ModelWriter()
    x = g.op("ABS", [g.input((2, h, w, 5))], [(2, h, w, 5)])
    attributes = TransposeConvAttributes(padding=padding, stride_h=stride[0], stride_w=stride[1])
    inputs = [x, g.const(filters), *([g.const(bias)] if has_bias else [])]
    y = g.op(CUSTOM, inputs, [(2, *size, 3)], attributes)
    g.output(g.op("ADD", [y, y], [(2, *size, 3)], BinaryAttributes()))
    return g.build(), filters, bias if has_bias else np.zeros(3, np.float32)


@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize(
    ("padding", "kernel", "stride"),
    [("SAME", (2, 2), (2, 2)), ("SAME", (3, 4), (2, 3)), ("VALID", (3, 2), (2, 2))],
)
def test_same_values_by_numpy(
    padding: Padding, kernel: tuple[int, int], stride: tuple[int, int], has_bias: bool
) -> None:
    data, filters, bias = transpose(padding, kernel, stride, has_bias=has_bias)
    other = substitute(read_model(data))
    assert other is not None
    assert other.description == f"TRANSPOSE_CONV for {CUSTOM}"
    x = np.random.default_rng(2).uniform(-1, 1, (2, 4, 6, 5)).astype(np.float32)
    (got,) = reference(other.content, [x])
    want = np.zeros(got.shape) + bias
    # Every input adds its filter into the outputs it reaches; SAME cuts what stands out, the odd
    # row and column at the end.
    top, left = (
        max(0, (n - 1) * s + k - out) // 2
        for n, s, k, out in zip((4, 6), stride, kernel, got.shape[1:3], strict=True)
    )
    for iy, ix, ky, kx in np.ndindex(4, 6, *kernel):
        oy, ox = iy * stride[0] - top + ky, ix * stride[1] - left + kx
        if 0 <= oy < got.shape[1] and 0 <= ox < got.shape[2]:
            want[:, oy, ox] += np.abs(x[:, iy, ix]) @ filters[:, ky, kx].T
    np.testing.assert_allclose(got, 2 * want, rtol=1e-5, atol=1e-5)


def test_the_rest_stays_as_it_is() -> None:
    data, *_ = transpose("SAME", (2, 2), (2, 2), has_bias=True)
    model = read_model(data)
    other = substitute(model)
    assert other is not None
    ours, theirs = model.subgraphs[0], read_model(other.content).subgraphs[0]
    assert [n.op for n in theirs.nodes] == ["ABS", "TRANSPOSE_CONV", "ADD"]
    assert (theirs.inputs, theirs.outputs) == (ours.inputs, ours.outputs)
    assert theirs.nodes[1].outputs == ours.nodes[1].outputs


def test_other_input_shapes() -> None:
    data, *_ = transpose("SAME", (2, 2), (2, 2), has_bias=True)
    model = read_model(data)
    other = substitute(model, {model.subgraphs[0].inputs[0]: (1, 5, 3, 5)})
    assert other is not None
    (got,) = reference(other.content, [np.ones((1, 5, 3, 5), np.float32)])
    assert got.shape == (1, 9, 5, 3)  # what MediaPipe's kernel makes of them
    with pytest.raises(ValueError, match=f"{CUSTOM} #1: "):
        substitute(model, {model.subgraphs[0].inputs[0]: (1, 5, 3, 4)})


def test_nothing_to_replace() -> None:
    w = ModelWriter()
    w.output(w.op("ABS", [w.input((2, 3))], [(2, 3)]))
    assert substitute(read_model(w.build())) is None
