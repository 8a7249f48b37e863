from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tflite_vk.cli import main
from tflite_vk.ir.attributes import Conv2DAttributes, SoftmaxAttributes
from tflite_vk.testing.model_writer import ModelWriter


@dataclass(frozen=True)
class Result:
    """What a command did."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Result]


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs a command line in this process."""

    def run(*arguments: object) -> Result:
        capfd.readouterr()
        status = main([str(a) for a in arguments])
        out, err = capfd.readouterr()
        return Result(status, out, err)

    return run


def conv_model() -> bytes:
    """CONV_2D with a bias, RELU, ADD of the input's sums, SOFTMAX."""
    rng = np.random.default_rng(0)
    w = ModelWriter()
    x = w.input((1, 6, 5, 3), "x")
    kernel = w.const(rng.uniform(-1, 1, (4, 3, 3, 3)).astype(np.float32), "kernel")
    bias = w.const(rng.uniform(-1, 1, 4).astype(np.float32), "bias")
    y = w.op("CONV_2D", [x, kernel, bias], [(1, 6, 5, 4)], Conv2DAttributes(stride_w=1, stride_h=1))
    y = w.op("RELU", [y], [(1, 6, 5, 4)])
    w.output(w.op("SOFTMAX", [y], [(1, 6, 5, 4)], SoftmaxAttributes(beta=1.0)))
    return w.build()


def custom_model() -> bytes:
    """A custom operator that nobody knows."""
    w = ModelWriter()
    w.output(w.op("Unheard", [w.input((2, 3), "x")], [(2, 3)], b"options"))
    return w.build()


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model that the device takes whole."""
    path = tmp_path / "conv.tflite"
    path.write_bytes(conv_model())
    return path


@pytest.fixture
def unknown_model(tmp_path: Path) -> Path:
    """A model of which nothing can be taken."""
    path = tmp_path / "unheard.tflite"
    path.write_bytes(custom_model())
    return path


@pytest.fixture
def no_driver(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine whose Vulkan loader finds no driver."""
    for variable in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES"):
        monkeypatch.setenv(variable, str(tmp_path / "gone.json"))


@pytest.fixture
def no_litert(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment without LiteRT."""
    monkeypatch.setitem(sys.modules, "ai_edge_litert", None)
    monkeypatch.setitem(sys.modules, "ai_edge_litert.interpreter", None)
