from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Run
from tests.support.oracle import reference
from tflite_vk.dtypes import DType
from tflite_vk.ir.graph import Quantization
from tflite_vk.runtime.device import Device
from tflite_vk.testing.model_writer import ModelWriter

pytestmark = pytest.mark.usefixtures("device")


@pytest.fixture
def array(tmp_path: Path) -> Path:
    path = tmp_path / "x.npy"
    np.save(path, np.random.default_rng(1).uniform(-1, 1, (1, 6, 5, 3)).astype(np.float32))
    return path


def test_outputs_are_those_of_litert(
    cli: Run, model: Path, array: Path, tmp_path: Path, device: Device
) -> None:
    result = cli(
        "run", model, "--input", array, "--output-dir", tmp_path / "out", "--json", "--top", 2
    )
    assert result.status == 0
    (output,) = result.json["outputs"]
    assert output["shape"] == [1, 6, 5, 4]
    assert output["dtype"] == "float32"
    got = np.load(output["file"])
    (want,) = reference(model.read_bytes(), [np.load(array)])
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)
    best = output["top"][0]
    assert best["value"] == output["max"] == float(got.max())
    assert got[tuple(best["position"])] == got.max()
    assert len(output["top"]) == 2
    assert result.json["report"]["device"] == device.info.name


def test_text(cli: Run, model: Path, array: Path) -> None:
    result = cli("run", model, "--input", f"x={array}")
    assert result.status == 0
    assert "operators  3 of 3 on the GPU, in 1 partition\n" in result.out
    assert "float32[1,6,5,4]\n  min " in result.out


def test_missing_input_is_named(cli: Run, model: Path) -> None:
    result = cli("run", model)
    assert result.status == 2
    assert result.err == (
        "tflite-vk: error: no --input for 'x' (the model has 'x' FLOAT32[1, 6, 5, 3]); "
        "give one each, or --random\n"
    )
    assert cli("run", model, "--random").status == 0


def test_inputs_that_do_not_fit(cli: Run, model: Path, array: Path, tmp_path: Path) -> None:
    assert cli("run", model, "--input", f"y={array}").err == (
        "tflite-vk: error: the model has no input 'y'; it has 'x' FLOAT32[1, 6, 5, 3]\n"
    )
    two = cli("run", model, "--input", array, "--input", array)
    assert two.status == 2
    assert "every input has a value" in two.err
    np.save(tmp_path / "small.npy", np.zeros((1, 6, 5), np.float32))
    small = cli("run", model, "--input", tmp_path / "small.npy")
    assert small.status == 2
    assert small.err.endswith("small.npy: shape [1, 6, 5], input 'x' takes [1, 6, 5, 3]\n")


def test_picture_and_labels(cli: Run, model: Path, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    image.new("RGB", (9, 9), "red").save(tmp_path / "x.png")
    (tmp_path / "labels.txt").write_text("cat\ndog\ncow\nhen\n")
    result = cli(
        "run", model, "--input", tmp_path / "x.png", "--labels", tmp_path / "labels.txt", "--json"
    )
    assert result.status == 0
    best = result.json["outputs"][0]["top"][0]
    assert best["label"] == ("cat", "dog", "cow", "hen")[best["position"][-1]]


def test_open_dimension_takes_the_shape_of_the_array(cli: Run, tmp_path: Path) -> None:
    w = ModelWriter()
    w.output(w.op("RELU", [w.input((1, 4), "x", shape_signature=(-1, 4))], [(1, 4)]))
    (tmp_path / "m.tflite").write_bytes(w.build())
    np.save(tmp_path / "x.npy", np.ones((3, 4), np.float32))
    result = cli("run", tmp_path / "m.tflite", "--input", tmp_path / "x.npy", "--json")
    assert result.json["outputs"][0]["shape"] == [3, 4]


def test_quantized_output_shows_real_values(cli: Run, tmp_path: Path) -> None:
    w = ModelWriter()
    q = Quantization((0.5,), (10,))
    w.output(w.input((1, 4), "x", DType.UINT8, q))
    (tmp_path / "m.tflite").write_bytes(w.build())
    np.save(tmp_path / "x.npy", np.array([[10, 12, 0, 30]], np.uint8))
    result = cli("run", tmp_path / "m.tflite", "--input", tmp_path / "x.npy", "--json")
    assert result.status == 0
    best = result.json["outputs"][0]["top"][0]
    assert best == {"position": [0, 3], "value": 30, "real": 10.0}


@pytest.mark.usefixtures("no_litert")
def test_without_litert(cli: Run, model: Path, unknown_model: Path) -> None:
    assert cli("run", model, "--random").status == 0
    result = cli("run", unknown_model, "--random")
    assert result.status == 2
    assert "Unheard #0: custom operator without a kernel" in result.err
    assert "pip install 'tflite_vk[litert]'" in result.err
    assert "Traceback" not in result.err


def test_operator_that_nobody_has(cli: Run, unknown_model: Path) -> None:
    result = cli("run", unknown_model, "--random")
    assert result.status == 2
    assert "Unheard" in result.err
    assert "Traceback" not in result.err
