"""A worker process, seen from the benchmark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

from bench.engines import Engine, Input, SkippedError
from bench.networks import ROOT

_OFF = {"MESA_SHADER_CACHE_DISABLE": "true", "__GL_SHADER_DISK_CACHE": "0"}

STOP_S = 20.0
"""How long a process may take to end by itself."""


DriverCaches = Literal["worker", "engine", "off"]
"""Where drivers keep what they compiled: in the worker's own folder, wherever the engine has them
keep it and nowhere else, or not at all."""


@dataclass(frozen=True)
class Place:
    """Where and how workers run.

    Attributes:
        pythons: interpreter for a kind of engine; others use this one.
        precision: "fp32" or "fp16".
        driver_caches: whether drivers may keep what they compiled.
    """

    pythons: dict[str, str]
    precision: str
    driver_caches: DriverCaches = "worker"


@dataclass(frozen=True)
class StartUp:
    """How long a worker took to its first result, in milliseconds.

    Attributes:
        engine: name and version.
        device: what it runs on.
        import_ms: from the process's birth until the engine was imported.
        load_ms: reading and compiling the model.
        first_ms: the first run.
        cpu_ms: processor time of all that.
    """

    engine: str
    device: str
    import_ms: float
    load_ms: float
    first_ms: float
    cpu_ms: float

    @property
    def total_ms(self) -> float:
        """From the process's birth to the first result."""
        return self.import_ms + self.load_ms + self.first_ms

    @property
    def model_ms(self) -> float:
        """From the engine imported to the first result."""
        return self.load_ms + self.first_ms


def environment(cache_dir: Path, driver_caches: DriverCaches) -> dict[str, str]:
    """Environment variables of a worker.

    Args:
        cache_dir: the worker's folder.
        driver_caches: what drivers may keep.
    """
    out = dict(os.environ)
    python_path = [str(ROOT / "tools"), str(ROOT), out.get("PYTHONPATH", "")]
    out["PYTHONPATH"] = os.pathsep.join(p for p in python_path if p)
    # As an installed package has its bytecode, so shall a checkout, from its first process on.
    out.pop("PYTHONDONTWRITEBYTECODE", None)
    for name in ("MESA_SHADER_CACHE_DIR", "MESA_GLSL_CACHE_DIR", *_OFF):
        out.pop(name, None)
    if driver_caches == "worker":
        out["MESA_SHADER_CACHE_DIR"] = str(cache_dir / "mesa")
        out["__GL_SHADER_DISK_CACHE_PATH"] = str(cache_dir)
    elif driver_caches == "engine":
        # Mesa would keep its cache in the home directory, or below XDG_CACHE_HOME.
        out["XDG_CACHE_HOME"] = str(cache_dir.parent / "no-such-home")
        out["__GL_SHADER_DISK_CACHE"] = _OFF["__GL_SHADER_DISK_CACHE"]
    else:
        out.update(_OFF)
    return out


def because(reason: str, printed: Sequence[str]) -> str:
    """A reason with the first error that the engine printed: its exception seldom says enough."""
    errors = (
        line.strip() for line in printed if "error" in line.lower() or "failed" in line.lower()
    )
    first = next((line for line in errors if line not in reason), None)
    return reason if first is None else f"{reason} ({first[:200]})"


class WorkerProcess:
    """One engine running one network."""

    def __init__(
        self,
        engine: Engine,
        given: Input,
        inputs: tuple[Path, ...],
        cache_dir: Path,
        place: Place,
    ) -> None:
        """Start the process and wait for its first result.

        Raises:
            SkippedError: it can't run here; says why.
        """
        python = place.pythons.get(engine.kind, sys.executable)
        cache_dir.mkdir(parents=True, exist_ok=True)
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as this
        spawned = time.monotonic()
        try:
            self._process = subprocess.Popen(
                [python, "-m", f"bench.workers.{engine.worker}"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                text=True,
                env=environment(cache_dir, place.driver_caches),
            )
        except OSError as error:
            raise SkippedError(f"{python} can't be started ({error})") from None
        answer = self._ask(
            {
                "model": str(given.model),
                "inputs": [str(path) for path in inputs],
                "precision": place.precision,
                "cache_dir": str(cache_dir / "engine"),
                "spawned": spawned,
                "settings": dict(given.settings),
            }
        )
        if "skipped" in answer:
            reason = because(str(answer["skipped"]), self._said())
            self.stop()
            raise SkippedError(reason)
        self.start_up = StartUp(
            engine=answer["engine"],
            device=answer["device"],
            import_ms=answer["import_ms"],
            load_ms=answer["load_ms"],
            first_ms=answer["first_ms"],
            cpu_ms=answer["start_cpu_ms"],
        )

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise SkippedError(f"its process ended: {self._last_words()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _said(self) -> list[str]:
        """Lines the process printed."""
        self._log.seek(0)
        return self._log.read().decode(errors="replace").strip().splitlines()

    def _last_words(self) -> str:
        status, lines = self._process.wait(), self._said()
        return f"status {status}, {lines[-1].strip()[:200] if lines else 'without a word'}"

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def run(self, seconds: float) -> tuple[list[float], list[float]]:
        """Wall and processor milliseconds of each run, for so long.

        Raises:
            SkippedError: the process died.
        """
        answer = self._ask({"do": "run", "seconds": seconds})
        return answer["wall_ms"], answer["cpu_ms"]

    def outputs(self, folder: Path) -> list[Path]:
        """Files of the outputs."""
        folder.mkdir(parents=True, exist_ok=True)
        return [Path(p) for p in self._ask({"do": "outputs", "folder": str(folder)})["files"]]

    def peak_mib(self) -> float | None:
        """The most memory the process ever had."""
        peak: float | None = self._ask({"do": "memory"})["peak_mib"]
        return peak

    def stop(self) -> None:
        """End the process."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._log.close()
