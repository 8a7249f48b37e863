"""`compare` of a model whose custom operator LiteRT can't run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.delegate.test_custom_operator import model

pytestmark = pytest.mark.usefixtures("device")


@pytest.fixture
def custom(tmp_path: Path) -> Path:
    path = tmp_path / "custom.tflite"
    path.write_bytes(model())
    return path


def test_both_front_doors(cli: Run, custom: Path) -> None:
    result = cli("compare", custom, "--layers")
    assert result.status == 0
    line = "reference  LiteRT BUILTIN_REF, TRANSPOSE_CONV for Convolution2DTransposeBias\n"
    assert line in result.out
    assert "operators  5 of 5 on the GPU, in 1 partition\n" in result.out
    assert "\nAll 3 values are close.\n" in result.out


def test_json(cli: Run, custom: Path, model: Path) -> None:
    found = cli("compare", custom, "--json").json
    assert found["substitution"] == "TRANSPOSE_CONV for Convolution2DTransposeBias"
    assert [d["is_good"] for d in found["front_doors"]] == [True, True]
    assert cli("compare", model, "--json").json["substitution"] is None
