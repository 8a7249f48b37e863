"""Quantized models of the field against LiteRT's reference kernels: not one value may differ."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from PIL import Image

from tests.support.models import ROOT, model_path
from tests.support.oracle import reference
from tflite_vk.frontend.flatbuffer import read_model
from tflite_vk.ir.graph import Graph
from tflite_vk.ops.registry import infer_shapes, unsupported_reason
from tflite_vk.passes.fold_constants import fold_constants
from tflite_vk.passes.infer_shapes import infer_shapes as with_shapes
from tflite_vk.runtime.device import Device
from tflite_vk.session import Session

Array = npt.NDArray[np.generic]

INTEGER_MODELS = {
    "pretrainedResnet_quant": 16,
    "mobilenet_v2_1.0_224_quant": 66,
    "movenet_single_pose_lightning_ptq": 157,
    "ssd_mobilenet": 64,
}
"""Models and their operators."""


def photograph(shape: tuple[int, ...]) -> Array | None:
    """A picture in a model's input size, None where there is none on this machine."""
    path = ROOT / ".cache" / "models" / "astronaut.png"
    if not path.is_file():
        return None
    with Image.open(path) as image:
        scaled = image.convert("RGB").resize((shape[2], shape[1]), Image.Resampling.BILINEAR)
        return np.asarray(scaled, np.uint8)[None]


def inputs(graph: Graph) -> list[tuple[str, Array]]:
    """Noise and, where there is one, a photograph, in the type of the model's only input."""
    tensor = graph.tensors[graph.inputs[0]]
    info = np.iinfo(tensor.dtype.numpy)
    rng = np.random.default_rng(7)
    noise = rng.integers(info.min, info.max + 1, tensor.shape).astype(tensor.dtype.numpy)
    found = [("noise", noise)]
    if (picture := photograph(tensor.shape)) is not None:
        found.append(("photograph", (picture.astype(np.int32) + info.min).astype(noise.dtype)))
    return found


def reference_values(path: Path, value: Array, tensors: tuple[int, ...]) -> list[Array]:
    """Tensors of a model by LiteRT's reference kernels."""
    interpreter = Interpreter(
        model_path=str(path),
        experimental_op_resolver_type=OpResolverType.BUILTIN_REF,
        experimental_preserve_all_tensors=True,
    )
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], value)
    interpreter.invoke()
    return [interpreter.get_tensor(t) for t in tensors]


@pytest.mark.slow
@pytest.mark.parametrize("name", INTEGER_MODELS)
def test_every_value_is_the_reference_kernels(name: str, device: Device) -> None:
    path = model_path(name)
    whole = read_model(path.read_bytes()).subgraphs[0]
    assert len(whole.nodes) == INTEGER_MODELS[name]
    graph = with_shapes(fold_constants(whole), infer_shapes)
    reasons = [unsupported_reason(n, graph, device.info.limits) for n in graph.nodes]
    assert [r for r in reasons if r is not None] == []
    session = Session(graph, device)
    try:
        for label, value in inputs(graph):
            want = reference_values(path, value, graph.outputs)
            got = session.allocate_outputs(graph.outputs)
            session.run({graph.inputs[0]: value}, got)
            for tensor, right in zip(graph.outputs, want, strict=True):
                if right.dtype == np.float32:
                    # Boxes, which TFLite computes in double.
                    np.testing.assert_allclose(got[tensor], right, rtol=1e-5, atol=1e-6)
                    continue
                differ = int(np.count_nonzero(got[tensor] != right))
                assert differ == 0, f"{label}: {differ} of {right.size} values of tensor {tensor}"
    finally:
        session.close()


HYBRID_MODEL = ("dtln_model_quant_1", 43)


@pytest.mark.parametrize("seed", range(3))
def test_float_activations_with_int8_filters(seed: int, device: Device) -> None:
    """Its filters' sums are exact; its logistics and its states are float32."""
    name, nodes = HYBRID_MODEL
    data = model_path(name).read_bytes()
    graph = fold_constants(read_model(data).subgraphs[0])
    assert len(graph.nodes) == nodes
    reasons = [unsupported_reason(n, graph, device.info.limits) for n in graph.nodes]
    assert [r for r in reasons if r is not None] == []
    rng = np.random.default_rng(seed)
    values = {t: rng.normal(size=graph.tensors[t].shape).astype(np.float32) for t in graph.inputs}
    session = Session(graph, device)
    try:
        got = session.allocate_outputs(graph.outputs)
        session.run(values, got)
    finally:
        session.close()
    want = reference(data, [values[t] for t in graph.inputs])
    for tensor, right in zip(graph.outputs, want, strict=True):
        np.testing.assert_allclose(got[tensor], right, rtol=0, atol=1e-6 * np.abs(right).max())
