"""What fp16 mode costs whole models, against the reference kernels: bounds that a fault would break."""

from __future__ import annotations

import numpy as np
import pytest

from tests.models.test_float_models import Real, inputs_of, reference_of
from tests.support.models import model_path
from tflite_vk.analysis.metrics import Difference, Tolerance, measure
from tflite_vk.frontend.flatbuffer import load_model
from tflite_vk.runtime.device import Device
from tflite_vk.session import Session

# Of each: the largest error of an output's scale, and the least signal to noise in dB. What was
# measured on lavapipe and on an H200 is up to half of the first, and 6 dB and more above the second.
BOUNDS = (
    (Real("face_detection_short_range", is_photo=True), 4e-3, 50.0),
    # A mask's edge moves by a part of a pixel: few values, far off.
    (Real("selfie_segmentation", 0, is_photo=True), 1e-1, 50.0),
    # Behind a SOFTMAX an error of the logits is relative.
    (Real("mobilenet_v1_0.25_224_1_default_1"), 5e-2, 30.0),
    (Real("pretrainedResnet", 0, 255), 1e-2, 38.0),
)


def differences(real: Real, device: Device, precision: str) -> list[Difference]:
    model = load_model(model_path(real.name))
    graph = model.subgraphs[0]
    session = Session(graph, device, precision=precision)
    try:
        outputs = session.allocate_outputs(graph.outputs)
        session.run(inputs_of(real, model), outputs)
    finally:
        session.close()
    want = reference_of(real).outputs
    return [
        measure(outputs[t], np.asarray(value), Tolerance())
        for t, value in zip(graph.outputs, want, strict=True)
    ]


@pytest.mark.parametrize(("real", "max_rel", "snr_db"), BOUNDS, ids=[b[0].name for b in BOUNDS])
def test_error_in_half_precision(real: Real, max_rel: float, snr_db: float, device: Device) -> None:
    for found in differences(real, device, "fp16"):
        assert found.num_different, "fp16 mode was not on"
        assert found.max_rel <= max_rel, found
        assert found.snr_db >= snr_db, found


def test_half_weights_cost_nothing_in_float32(device: Device) -> None:
    """A peer is 8% off on this model, whose weights are float16."""
    (found,) = differences(Real("selfie_segmentation", 0, is_photo=True), device, "fp32")
    assert found.max_rel <= 1e-4, found
