"""Running Python under Khronos's validation layer, and what the layer had to say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
LAYER = "VK_LAYER_KHRONOS_validation"
LOG_VARIABLE = "TFLITE_VK_TEST_LAYER_LOG"

# The settings file and not the application chooses what is checked and where it is written:
# Kompute swallows what comes through its own callback.
_SETTINGS = """\
khronos_validation.debug_action = VK_DBG_LAYER_ACTION_LOG_MSG
khronos_validation.report_flags = error,warn
khronos_validation.log_filename = {log}
khronos_validation.enables = {enables}
"""
_ENABLES = (
    "VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT",
    "VALIDATION_CHECK_ENABLE_SYNCHRONIZATION_VALIDATION_QUEUE_SUBMIT",
)


def require_layer() -> None:
    """Skip without the layer; fail where CI requires everything."""
    found = any(
        path.is_file()
        for folder in ("/usr/share", "/usr/local/share", "/etc")
        for path in [Path(folder) / "vulkan/explicit_layer.d/VkLayer_khronos_validation.json"]
    )
    if not found and "VK_LAYER_PATH" not in os.environ:
        text = "no Vulkan validation layer; apt-get install vulkan-validationlayers"
        if os.environ.get("TFLITE_VK_REQUIRE_DEVICE") == "1":
            pytest.fail(text)
        pytest.skip(text)


def run_under_layer(
    folder: Path, arguments: list[str], environment: dict[str, str], timeout: int = 1500
) -> tuple[str, str]:
    """Run a module with the layer on.

    The layer empties its log at each vkCreateInstance: what the module is to be judged by must use
    the last instance that it makes.

    Args:
        folder: for the settings and the log.
        arguments: of `python -m`.
        environment: variables to add.
        timeout: seconds.

    Returns:
        What the program printed, and everything the layer wrote: nothing is filtered.
    """
    log = folder / "layer.log"
    settings = folder / "vk_layer_settings.txt"
    settings.write_text(_SETTINGS.format(log=log, enables=",".join(_ENABLES)))
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=ROOT,
        env=os.environ
        | {
            "VK_INSTANCE_LAYERS": LAYER,
            "VK_LAYER_SETTINGS_PATH": str(settings),
            LOG_VARIABLE: str(log),
        }
        | environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
    return done.stdout, log.read_text() if log.exists() else ""
