"""Core and synchronization validation of everything that the operator suite does on a device.

The layer sees hazards inside a submit. Hazards between submits it sees only where no fence is
waited for in between (layer 1.3.239), and each run here ends in such a wait. Kompute runs in
strict mode, one submit for each hazard-free run of dispatches: its own barriers are not enough
by the letter of the specification, as the control below shows.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conformance.conftest import open_runtime
from tests.validation.layer import require_layer, run_under_layer

STRICT = {"TFLITE_VK_STRICT_SUBMITS": "1"}
LENIENT = {"TFLITE_VK_STRICT_SUBMITS": "0"}


@pytest.fixture(autouse=True)
def _layer() -> None:
    require_layer()


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("dispatcher", "shard", "shards"),
    [("vulkan", 0, 1), ("kompute", 0, 3), ("kompute", 1, 3), ("kompute", 2, 3)],
)
def test_the_operator_suite(tmp_path: Path, dispatcher: str, shard: int, shards: int) -> None:
    open_runtime(dispatcher)
    arguments = ["tests.validation.run_cases", dispatcher, str(shard), str(shards)]
    said, log = run_under_layer(tmp_path, arguments, STRICT)
    assert log == "", said
    assert int(said.split()[0]) > 400, said


@pytest.mark.parametrize("staging", ["0", "1", "output"])
def test_programs_with_every_hazard(tmp_path: Path, staging: str) -> None:
    open_runtime("vulkan")
    environment = {"TFLITE_VK_FORCE_STAGING": staging}
    _, log = run_under_layer(tmp_path, ["tests.validation.run_programs"], environment)
    assert log == ""


@pytest.mark.parametrize(
    ("broken", "staging"),
    [
        ("without-levels", "0"),
        ("without-levels", "1"),
        ("without-levels", "output"),
        ("without-upload-barrier", "1"),
    ],
)
def test_a_missing_barrier_is_found(tmp_path: Path, broken: str, staging: str) -> None:
    open_runtime("vulkan")
    environment = {"TFLITE_VK_FORCE_STAGING": staging}
    _, log = run_under_layer(tmp_path, ["tests.validation.run_programs", broken], environment)
    assert "SYNC-HAZARD-READ-AFTER-WRITE" in log
    if broken == "without-levels":
        assert "SYNC-HAZARD-WRITE-AFTER-READ" in log


def test_kompute_in_strict_mode(tmp_path: Path) -> None:
    open_runtime("kompute")
    _, log = run_under_layer(tmp_path, ["tests.validation.run_kompute"], STRICT)
    assert log == ""


def test_one_submit_by_kompute_is_a_race_by_the_letter(tmp_path: Path) -> None:
    open_runtime("kompute")
    _, log = run_under_layer(tmp_path, ["tests.validation.run_kompute"], LENIENT)
    assert "SYNC-HAZARD-READ-AFTER-WRITE" in log


def test_kompute_never_resets_its_timestamps(tmp_path: Path) -> None:
    # Of Kompute 0.9, and the only fault of a profile by the letter; KomputeTimes is on guard.
    open_runtime("kompute")
    _, log = run_under_layer(tmp_path, ["tests.validation.run_kompute", "profiling"], STRICT)
    messages = re.findall(r"^(\S+)\(ERROR", log, flags=re.MULTILINE)
    assert set(messages) == {"UNASSIGNED-CoreValidation-DrawState-QueryNotReset"}
