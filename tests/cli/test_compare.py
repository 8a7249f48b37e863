from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Run
from tests.support.models import model_path
from tflite_vk.analysis.comparison import Reference, compare_outputs
from tflite_vk.analysis.metrics import Tolerance
from tflite_vk.runtime.device import Device
from tflite_vk.session import Session

pytestmark = pytest.mark.usefixtures("device")


def test_json_of_both_front_doors(cli: Run, model: Path) -> None:
    result = cli("compare", model, "--json")
    assert result.status == 0
    data = result.json
    assert data["is_good"] is True
    assert data["reference"] == "BUILTIN_REF"
    assert data["tolerance"] == {"rtol": 1e-4, "atol": 1e-5}
    assert [d["front_door"] for d in data["front_doors"]] == ["delegate", "interpreter"]
    for door in data["front_doors"]:
        assert (door["is_good"], door["num_runs"], door["differing_runs"]) == (True, 2, 0)
        assert door["report"]["num_delegated"] == 3
        (output,) = door["outputs"]
        assert output["shape"] == [1, 6, 5, 4]
        assert output["difference"]["is_close"] is True
        assert output["difference"]["max_rel"] < 1e-5
    assert data["layers"] is None
    assert data["inspection"]["num_dispatches"] == 2


def test_text(cli: Run, model: Path, device: Device) -> None:
    result = cli("compare", model, "--front-door", "delegate", "--runs", 1)
    assert result.status == 0
    assert f"device     {device.info.name}, {device.dispatcher}, fp32\n" in result.out
    assert "operators  3 of 3 on the GPU, in 1 partition\n" in result.out
    assert "launches   2 dispatches of 2 pipelines, 1 fused group\n" in result.out
    assert result.out.endswith("\n\ngood\n")
    assert "interpreter" not in result.out


def test_layers(cli: Run, model: Path) -> None:
    result = cli("compare", model, "--layers", "--json", "--front-door", "interpreter")
    layers = result.json["layers"]
    assert [(x["node"], x["op"]) for x in layers] == [(0, "CONV_2D"), (1, "RELU"), (2, "SOFTMAX")]
    assert all(x["difference"]["is_close"] for x in layers)
    assert result.json["first_parted"] is None
    text = cli("compare", model, "--layers", "--front-door", "interpreter").out
    assert "\nAll 3 values are close.\n" in text


def break_results(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every second value of whatever a device gives is off by a tenth."""
    fetch = Session._fetch

    def broken(self: Session, tensor_id: int, out: np.ndarray, *rest: object) -> None:
        fetch(self, tensor_id, out, *rest)  # type: ignore[arg-type]
        out.reshape(-1)[::2] += 0.1

    monkeypatch.setattr(Session, "_fetch", broken)


def test_wrong_result_is_1_and_names_the_layer(
    cli: Run, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_results(monkeypatch)
    result = cli("compare", model)
    assert result.status == 1
    assert result.out.endswith("\nNOT GOOD\n")
    assert "The first value that parts is " in result.out
    assert " of CONV_2D #0: at [" in result.out
    assert "It is so from LiteRT's inputs too: CONV_2D itself is wrong.\n" in result.out
    half = cli("compare", model, "--precision", "fp16").out
    assert "rounding the values of this CONV_2D to float16 is enough" in half
    data = cli("compare", model, "--json")
    assert data.status == 1
    assert data.json["is_good"] is False
    assert data.json["first_parted"]["op"] == "CONV_2D"
    assert data.json["first_parted"]["alone"]["is_close"] is False


def test_runs_with_other_bits_are_1(cli: Run, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fetch, calls = Session._fetch, []

    def shaky(self: Session, tensor_id: int, out: np.ndarray, *rest: object) -> None:
        fetch(self, tensor_id, out, *rest)  # type: ignore[arg-type]
        calls.append(tensor_id)
        if len(calls) % 2:
            out.reshape(-1)[0] = np.nextafter(out.reshape(-1)[0], np.float32(2))

    monkeypatch.setattr(Session, "_fetch", shaky)
    result = cli("compare", model, "--front-door", "interpreter", "--runs", 4)
    assert result.status == 1
    assert "interpreter: 2 of 4 runs gave other bits.\n" in result.out


def test_nothing_delegated_is_said(cli: Run, model: Path) -> None:
    ops = "--option", "excluded_ops=CONV_2D,RELU,SOFTMAX"
    result = cli("compare", model, *ops)
    assert result.status == 0
    assert "Nothing ran on the GPU: this compared LiteRT with itself.\n" in result.out
    required = cli("compare", model, *ops, "--require-full-delegation")
    assert required.status == 1


def test_a_part_on_the_cpu_is_said(cli: Run, model: Path) -> None:
    result = cli("compare", model, "--option", "excluded_ops=RELU", "--layers")
    assert result.status == 0
    assert "1 operator ran on the CPU; `tflite-vk inspect` says why.\n" in result.out
    assert "\nAll 2 values are close.\n" in result.out


def test_fp16_has_its_own_tolerance(cli: Run, model: Path) -> None:
    result = cli("compare", model, "--precision", "fp16", "--json")
    assert result.status == 0
    assert result.json["tolerance"] == {"rtol": 1e-2, "atol": 1e-2}
    assert result.json["front_doors"][0]["outputs"][0]["difference"]["num_different"] > 0
    strict = cli("compare", model, "--precision", "fp16", "--rtol", 1e-6, "--atol", 1e-7)
    assert strict.status == 1


@pytest.mark.usefixtures("no_litert")
def test_without_litert_it_says_what_to_install(cli: Run, model: Path) -> None:
    result = cli("compare", model)
    assert (result.status, result.out) == (2, "")
    assert result.err.startswith("tflite-vk: error: this needs LiteRT's CPU kernels, ")
    assert result.err.endswith("; pip install 'tflite_vk[litert]'\n")


def test_model_that_litert_can_not_run(cli: Run, unknown_model: Path) -> None:
    result = cli("compare", unknown_model)
    assert result.status == 2
    assert result.err.count("\n") <= 2
    assert "Unheard" in result.err


def test_numbers_that_mean_nothing(cli: Run, model: Path) -> None:
    assert cli("compare", model, "--runs", 0).err == (
        "tflite-vk: error: --runs is 0 (allowed: 1 and up)\n"
    )
    assert cli("compare", model, "--rtol", -1).status == 2
    assert cli("compare", model, "--range", 1, -1).err == (
        "tflite-vk: error: --range 1 -1: the first is the larger one\n"
    )


def test_blaze_face(cli: Run) -> None:
    path = model_path("face_detection_short_range")
    result = cli("compare", path, "--front-door", "delegate", "--json")
    assert result.status == 0
    assert result.json["front_doors"][0]["report"]["num_delegated"] == 164
    assert len(result.json["front_doors"][0]["outputs"]) == 2


TOLERANCE = Tolerance()


def reference_of(want: np.ndarray, xnnpack: np.ndarray | None) -> Reference:
    details = [{"index": 5, "name": "y"}]
    return Reference("BUILTIN_REF", details, [want], None if xnnpack is None else [xnnpack])


def verdict(
    got: np.ndarray, want: np.ndarray, xnnpack: np.ndarray | None, *, uses_xnnpack: bool = False
) -> tuple[bool, str]:
    (found,) = compare_outputs(
        [got], reference_of(want, xnnpack), TOLERANCE, uses_xnnpack=uses_xnnpack
    )
    return found.is_good, found.note


def test_xnnpack_is_the_measure_of_deep_float_models() -> None:
    want = np.ones(4, np.float32)
    far, further = want + np.float32(1e-3), want + np.float32(2e-3)
    assert verdict(far, want, None) == (False, "")
    assert verdict(far, want, want) == (False, "")
    assert verdict(far, want, further) == (True, "no further than XNNPACK")
    assert verdict(further, want, far) == (False, "")


def test_xnnpack_excuses_no_integers_but_its_own() -> None:
    want = np.array([1, 2, 3], np.int8)
    off = np.array([1, 2, 4], np.int8)
    assert verdict(off, want, off) == (False, "")
    assert verdict(off, want, off, uses_xnnpack=True) == (
        True,
        "as XNNPACK, which ran a part of it",
    )


def test_another_shape_or_type_is_not_good() -> None:
    want = np.ones((2, 2), np.float32)
    assert verdict(np.ones((4,), np.float32), want, None) == (False, "is float32[4]")
    assert verdict(np.ones((2, 2), np.float64), want, None) == (False, "is float64[2, 2]")
    assert verdict(np.full((2, 2), math.nan, np.float32), want, want) == (False, "")
