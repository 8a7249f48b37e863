"""Mesa's own cache goes into cache_dir while a device opens, unless the environment says otherwise."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tflite_vk.runtime.driver_cache import FOLDER_VARIABLE, mesa_cache_in


@pytest.fixture(autouse=True)
def _no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (FOLDER_VARIABLE, "MESA_SHADER_CACHE_DISABLE", "MESA_GLSL_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)


def test_the_folder_is_mesas_while_a_device_opens(tmp_path: Path) -> None:
    with mesa_cache_in(tmp_path / "made" / "here"):
        folder = Path(os.environ[FOLDER_VARIABLE])
        assert folder == tmp_path / "made" / "here" / "mesa"
        assert folder.parent.is_dir()
    assert FOLDER_VARIABLE not in os.environ


def test_the_environment_is_put_back_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), mesa_cache_in(tmp_path):
        raise RuntimeError
    assert FOLDER_VARIABLE not in os.environ


def test_without_a_folder_nothing_is_chosen() -> None:
    with mesa_cache_in(None):
        assert FOLDER_VARIABLE not in os.environ


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (FOLDER_VARIABLE, "/somewhere"),
        ("MESA_SHADER_CACHE_DISABLE", "true"),
        ("MESA_GLSL_CACHE_DIR", "/x"),
    ],
)
def test_a_choice_in_the_environment_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    before = dict(os.environ)
    with mesa_cache_in(tmp_path / "folder"):
        assert dict(os.environ) == before
    assert dict(os.environ) == before
    assert not (tmp_path / "folder").exists()


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with mesa_cache_in(tmp_path / "file" / "folder"):
        assert FOLDER_VARIABLE in os.environ
