"""Graphs that the fuzzer once found a fault with, through the compiler and both front doors."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from tests.fuzz.corpus import load, paths
from tests.fuzz.execute import Door, execute
from tflite_vk.runtime.device import Device


@pytest.mark.parametrize("door", get_args(Door))
@pytest.mark.parametrize("path", paths(), ids=lambda p: p.stem)
def test_replay(path: Path, door: Door, device: Device) -> None:
    failure = load(path)
    for fusion in (True, False):
        outcome = execute(
            failure.data,
            failure.inputs,
            failure.outputs,
            failure.tolerances,
            device,
            door,
            fusion=fusion,
        )
        assert outcome.kind == "good", outcome.text
