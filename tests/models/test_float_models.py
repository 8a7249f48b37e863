"""Real float models, whole, through both front doors, against LiteRT's reference kernels."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import pytest
from PIL import Image

from tests.support.case import Array
from tests.support.models import ROOT, model_path
from tflite_vk.analysis.comparison import FRONT_DOORS, FrontDoor, Reference, compare, run_reference
from tflite_vk.analysis.metrics import Tolerance
from tflite_vk.frontend.flatbuffer import Model, load_model
from tflite_vk.lowering import lower
from tflite_vk.options import DelegateOptions
from tflite_vk.passes.fold_constants import fold_constants
from tflite_vk.runtime.device import Device
from tflite_vk.testing.substitute import substitute

PHOTO = ROOT / ".cache" / "models" / "astronaut.png"


@dataclass(frozen=True)
class Real:
    """A model and what it wants to see.

    Attributes:
        name: of its file, without .tflite.
        low, high: of a picture's values.
        is_photo: shown the photograph where there is one; else noise, which moves every channel.
        is_slow: takes long to compile or to run.
    """

    name: str
    low: float = -1.0
    high: float = 1.0
    is_photo: bool = False
    is_slow: bool = True


REAL = (
    Real("face_detection_short_range", is_slow=False),
    Real("face_detection_short_range", is_photo=True, is_slow=False),
    Real("face_landmark", 0),
    Real("hand_landmark_lite", 0),
    Real("pose_landmark_full", 0),
    # Noise is all background to it: an output of nothing but zeros would be no test.
    Real("selfie_segmentation", 0, is_photo=True),
    Real("deeplabv3_257_mv_gpu"),
    Real("mobilenet_v1_0.25_224_1_default_1", is_slow=False),
    Real("pretrainedResnet", 0, 255, is_slow=False),
    Real("style_transfer_f16_384", 0),
)


def _id(real: Real) -> str:
    return f"{real.name}{'-photo' if real.is_photo else ''}"


def _parameters() -> list[object]:
    return [
        pytest.param(real, door, id=f"{_id(real)}-{door}", marks=[pytest.mark.slow] * real.is_slow)
        for real in REAL
        for door in FRONT_DOORS
    ]


def _picture(real: Real, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    if not real.is_photo:
        return rng.uniform(real.low, real.high, shape).astype(np.float32)
    if not PHOTO.is_file():
        raise FileNotFoundError(f"{PHOTO} is missing: run python tools/fetch_models.py")
    size = (shape[2], shape[1])
    small = Image.open(PHOTO).convert("RGB").resize(size, Image.Resampling.BILINEAR)
    unit = np.asarray(small, np.float32)[None] / np.float32(255)
    return (real.low + unit * np.float32(real.high - real.low)).astype(np.float32)


def inputs_of(real: Real, model: Model) -> dict[int, Array]:
    rng = np.random.default_rng(11)
    graph = model.subgraphs[0]
    return {t: _picture(real, graph.tensors[t].shape, rng) for t in graph.inputs}


@functools.lru_cache(maxsize=1)
def reference_of(real: Real) -> Reference:
    """What the reference kernels make of the inputs; both front doors are held against it."""
    model = load_model(model_path(real.name))
    other = substitute(model)
    content = model_path(real.name).read_bytes() if other is None else other.content
    return run_reference(content, inputs_of(real, model))


@pytest.mark.parametrize(("real", "door"), _parameters())
def test_real_float_model(real: Real, door: FrontDoor, device: Device) -> None:
    path = model_path(real.name)
    model = load_model(path)
    options = DelegateOptions(dispatcher=device.dispatcher, device=device.info.index)
    reference = reference_of(real)
    found = compare(
        path.read_bytes(), inputs_of(real, model), reference, door, options, Tolerance(), runs=2
    )
    assert [n for n in found.report.nodes if not n.delegated] == []
    assert found.report.num_partitions == 1
    assert found.differing_runs == 0, "the second run gave other bits"
    for output, want in zip(found.outputs, reference.outputs, strict=True):
        assert np.ptp(want) > 0 or want.size == 1, "an output that is constant shows nothing"
        assert output.is_good, f"{output.name}: {output.difference}, XNNPACK {output.xnnpack}"


@pytest.mark.parametrize("name", sorted({real.name for real in REAL}))
def test_fewer_dispatches_than_operators(name: str, device: Device) -> None:
    """Moving a picture into the padded layout and back counts for no operator."""
    graph = fold_constants(load_model(model_path(name)).subgraphs[0])
    program = lower(graph, device.info).program
    operators = [d for d in program.dispatches if d.kernel.shader != "repack"]
    assert len(operators) < len(graph.nodes)
    assert len(program.dispatches) <= len(graph.nodes)


@pytest.mark.parametrize("door", FRONT_DOORS)
def test_lstm_with_states(door: FrontDoor, device: Device) -> None:
    path = model_path("trained_lstm")
    graph = load_model(path).subgraphs[0]
    x = np.random.default_rng(11).uniform(0, 1, graph.tensors[graph.inputs[0]].shape)
    inputs: dict[int, Array] = {graph.inputs[0]: x.astype(np.float32)}
    options = DelegateOptions(dispatcher=device.dispatcher, device=device.info.index)
    reference = run_reference(path.read_bytes(), inputs)
    found = compare(path.read_bytes(), inputs, reference, door, options, Tolerance(), runs=2)
    assert found.is_good, found.outputs
    assert found.report.is_fully_delegated
