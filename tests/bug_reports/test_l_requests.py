"""Section L: what users ask for, as far as a test can say that it is there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

import tflite_vk
from tests.bug_reports.doors import random
from tflite_vk.ir.attributes import Conv2DAttributes
from tflite_vk.testing import ModelWriter

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text()


def model() -> bytes:
    w = ModelWriter()
    kernel, bias = w.const(random(3, 3, 3, 3)), w.const(random(3))
    y = w.op("CONV_2D", [w.input((1, 8, 8, 3)), kernel, bias], [(1, 8, 8, 3)], Conv2DAttributes())
    w.output(w.op("RELU", [y], [(1, 8, 8, 3)]))
    return w.build()


@pytest.mark.usefixtures("device")
def test_l1_l3_l4_the_readme_s_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    example = re.search(r"```python\n(import numpy.*?)```", README, re.DOTALL)
    assert example is not None
    (tmp_path / "model.tflite").write_bytes(model())
    monkeypatch.chdir(tmp_path)
    exec(compile(example[1], "README.md", "exec"), {})
    assert "All 2 operations will run on the GPU" in capsys.readouterr().out


@pytest.mark.usefixtures("device")
def test_l3_the_readme_s_other_interpreter(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(model())
    with tflite_vk.Interpreter(model_path=str(path)) as interpreter:
        interpreter.allocate_tensors()
        index = interpreter.get_input_details()[0]["index"]
        interpreter.set_tensor(index, np.ones((1, 8, 8, 3), np.float32))
        interpreter.invoke()
        assert not interpreter.uses_litert


def test_l5_options_of_the_readme_are_the_options() -> None:
    block = re.search(r"VulkanDelegate\(  .*?fusion=True\)", README, re.DOTALL)
    assert block is not None
    written = set(re.findall(r"(\w+)=", block[0]))
    assert written == set(tflite_vk.DelegateOptions.__dataclass_fields__)


@pytest.mark.usefixtures("device")
def test_l5_devices_are_listed() -> None:
    assert tflite_vk.devices()


def test_l9_l12_platforms_are_named() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "Operating System :: POSIX :: Linux" in project["classifiers"]
    assert not any("Windows" in c for c in project["classifiers"])
    assert "Linux" in README


def test_l15_the_readme_names_only_commands_that_exist() -> None:
    from tflite_vk.cli import main

    commands = set(re.findall(r"^tflite-vk (\w+)", README, re.MULTILINE))
    assert commands == {"devices", "inspect", "run", "compare", "benchmark", "profile"}
    for command in commands:
        assert main([command, "--help"]) == 0
