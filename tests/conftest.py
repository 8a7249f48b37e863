"""The device under test, shared by all tests of a process."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

from tflite_vk.errors import DeviceError
from tflite_vk.runtime.device import Device
from tflite_vk.runtime.open import open_device

# Machines that run these tests are slow and noisy: a deadline would test them, not the code.
settings.register_profile("tflite_vk", deadline=None)
settings.load_profile("tflite_vk")


@pytest.fixture(scope="session")
def device() -> Device:
    """The device that TFLITE_VK_DEVICE names, or the best one.

    Without any device a test is skipped, but fails where TFLITE_VK_REQUIRE_DEVICE=1, as in CI.
    """
    try:
        return open_device(
            os.environ.get("TFLITE_VK_DEVICE") or None,
            os.environ.get("TFLITE_VK_DISPATCHER") or "auto",
        )
    except DeviceError as error:
        if os.environ.get("TFLITE_VK_REQUIRE_DEVICE") == "1":
            raise
        pytest.skip(f"no device: {error}")
