"""Build hook: compile the shaders and put them into the wheel. All else is in pyproject.toml."""

from __future__ import annotations

import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "tools"))  # a build backend does not run with the project on its path

import build_shaders  # noqa: E402


class BuildWithShaders(build_py):
    """Copy the package, then compile shaders/ into the copy."""

    def run(self) -> None:
        """Build the package; a shader that does not compile fails the wheel."""
        super().run()
        # An editable install reads the package from the checkout, so that is where they belong.
        editable = getattr(self, "editable_mode", False)
        package = ROOT / "tflite_vk" if editable else Path(self.build_lib) / "tflite_vk"
        result = build_shaders.build(out=package / "spirv", log=print)
        if result.errors:
            # Not an Exception: an editable install would turn that into a warning.
            sys.exit("\n".join(result.errors))


setup(cmdclass={"build_py": BuildWithShaders})
