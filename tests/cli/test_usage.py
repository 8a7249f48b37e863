"""Exit codes, error texts and what needs no device."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tflite_vk
from tests.cli.conftest import Run
from tflite_vk.cli import devices as devices_command
from tflite_vk.cli import inspect as inspect_command
from tflite_vk.cli import make_parser
from tflite_vk.cli.devices import driver_version
from tflite_vk.device_info import DeviceInfo

COMMANDS = ("devices", "inspect", "run", "compare", "benchmark", "profile")


def test_help_and_version(cli: Run) -> None:
    result = cli("--help")
    assert result.status == 0
    for command in COMMANDS:
        assert f"\n    {command} " in result.out
        assert cli(command, "--help").status == 0
    assert cli("--version").out == f"{tflite_vk.__version__}\n"


def test_bad_usage_is_2(cli: Run, model: Path) -> None:
    assert cli().status == 2
    assert cli("paint").status == 2
    result = cli("inspect", model, "--colour")
    assert result.status == 2
    assert result.err.endswith("tflite-vk: error: unrecognized arguments: --colour\n")
    # An abbreviation would change its meaning with the next flag that is added.
    assert cli("inspect", model, "--js").status == 2


@pytest.mark.parametrize("command", ["inspect", "run", "compare", "benchmark", "profile"])
def test_missing_model_is_one_line(cli: Run, command: str, tmp_path: Path) -> None:
    result = cli(command, tmp_path / "gone.tflite")
    assert result.status == 2
    assert result.out == ""
    assert result.err == (
        f"tflite-vk: error: {tmp_path}/gone.tflite: can't read the model file: "
        "No such file or directory\n"
    )


def test_file_that_is_no_model(cli: Run, tmp_path: Path) -> None:
    path = tmp_path / "text.tflite"
    path.write_text("Dear model, be well.")
    result = cli("inspect", path, "--device", "null")
    assert result.status == 2
    assert result.err == (
        "tflite-vk: error: text.tflite: file identifier b' mod' (b'TFL3' expected): "
        "not a TensorFlow Lite model\n"
    )


def test_options_of_the_delegate_are_checked(cli: Run, model: Path) -> None:
    assert cli("inspect", model, "--option", "fusion").err == (
        "tflite-vk: error: --option 'fusion' has no value; give NAME=VALUE\n"
    )
    result = cli("inspect", model, "--option", "colour=red")
    assert result.status == 2
    assert result.err.startswith("tflite-vk: error: unknown delegate option 'colour'; known: ")


def test_null_device_is_for_inspect(cli: Run, model: Path) -> None:
    for command in ("run", "compare", "benchmark", "profile"):
        result = cli(command, model, "--device", "null")
        assert result.status == 2
        assert result.err == (
            "tflite-vk: error: device 'null' runs nothing: it serves `tflite-vk inspect` only; "
            "see `tflite-vk devices`\n"
        )


def test_fault_in_the_program_is_neither_1_nor_2(
    cli: Run, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(inspect_command, "inspect_model", broken)
    result = cli("inspect", model, "--device", "null")
    assert result.status == 70
    assert "ZeroDivisionError: oh" in result.err
    assert result.err.endswith("tflite-vk: this is a fault in tflite-vk, please report it\n")


def test_interrupt(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(devices_command, "devices", interrupted)
    result = cli("devices")
    assert (result.status, result.err) == (130, "tflite-vk: interrupted\n")


def test_flags_with_underscores_and_dashes_are_the_same() -> None:
    parser = make_parser()
    for spelling in (["--num_runs=7"], ["--num-runs", "7"], ["--num_runs", "7"], ["--num-runs=7"]):
        assert parser.parse_args(["benchmark", "m", *spelling]).num_runs == 7
    assert parser.parse_args(["compare", "m", "--front_door=delegate"]).front_door == "delegate"


def test_boolean_flags_of_benchmark_model() -> None:
    parser = make_parser()
    for text, value in (
        ("=true", True),
        ("=1", True),
        ("=false", False),
        ("=0", False),
        ("", True),
    ):
        args = parser.parse_args(["benchmark", "m", f"--compare_cpu{text}"])
        assert args.compare_cpu is value
    assert parser.parse_args(["benchmark", "--use_gpu", "false", "m"]).use_gpu is False


def test_module_is_the_command(model: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tflite_vk", "inspect", "--device", "null", "--json", model],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith('{\n  "model": "conv.tflite",')


def test_reader_that_has_enough_is_no_fault(model: Path) -> None:
    command = f"{sys.executable} -m tflite_vk inspect --device null -v {model} | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stdout == "model       conv.tflite\n"
    assert "Traceback" not in done.stderr


def test_driver_versions() -> None:
    def version(vendor: int, packed: int) -> str:
        return driver_version(
            DeviceInfo(0, "x", "discrete", vendor_id=vendor, driver_version=packed)
        )

    assert version(0x10DE, 580 << 22 | 95 << 14 | 5 << 6) == "580.95.05"
    assert version(0x1002, 23 << 22 | 1 << 12 | 4) == "23.1.4"
    assert version(0x10005, 1) == "1"
