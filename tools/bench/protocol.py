"""How a worker process talks to the benchmark: one JSON object a line, each way.

Standard library and NumPy only: this module also runs in the Python of a peer.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np


class CannotRunError(Exception):
    """This engine can't run here; the text says why."""


@dataclass(frozen=True)
class Job:
    """What a worker shall run.

    Attributes:
        model: the file, in the engine's own format.
        inputs: .npy files, one for each input in the model's order.
        precision: "fp32" or "fp16".
        cache_dir: folder for whatever the engine keeps between processes.
        spawned: time.monotonic() when the process was started.
        settings: the engine's own.
    """

    model: str
    inputs: tuple[str, ...]
    precision: str
    cache_dir: str
    spawned: float
    settings: dict[str, Any] = field(default_factory=dict)

    def arrays(self) -> list[Any]:
        """The inputs."""
        return [np.load(path) for path in self.inputs]


class Worker:
    """An engine in its process."""

    def start(self) -> str:
        """Import the engine; what it is called, with its version.

        Raises:
            CannotRunError: it is not installed.
        """
        raise NotImplementedError

    def load(self, job: Job) -> str:
        """Make the model ready; the device it runs on.

        Raises:
            CannotRunError: the engine can't run it here.
        """
        raise NotImplementedError

    def run(self) -> Sequence[Any]:
        """Set the inputs, run once, get the outputs."""
        raise NotImplementedError


def serve(worker: Worker) -> None:
    """Answer requests until the other side closes its end."""
    # Engines print to standard output as they like: answers go to a copy of it, prints elsewhere.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    job = json.loads(sys.stdin.readline())
    job["inputs"] = tuple(job["inputs"])
    try:
        answer = _start(worker, Job(**job))
    except CannotRunError as error:
        _say(answers, {"skipped": str(error)})
        return
    except Exception as error:
        text = " ".join(str(error).split())
        _say(answers, {"skipped": f"{type(error).__name__}: {text[:300]}"})
        return
    _say(answers, answer)
    for line in sys.stdin:
        _say(answers, _answer(worker, json.loads(line)))


def _say(answers: IO[str], what: dict[str, Any]) -> None:
    answers.write(json.dumps(what) + "\n")


def _start(worker: Worker, job: Job) -> dict[str, Any]:
    name = worker.start()
    imported = time.monotonic()
    device = worker.load(job)
    loaded = time.monotonic()
    worker.run()
    done = time.monotonic()
    return {
        "engine": name,
        "device": device,
        "import_ms": (imported - job.spawned) * 1e3,
        "load_ms": (loaded - imported) * 1e3,
        "first_ms": (done - loaded) * 1e3,
        "start_cpu_ms": time.process_time() * 1e3,
    }


def _answer(worker: Worker, request: dict[str, Any]) -> dict[str, Any]:
    if request["do"] == "run":
        return _run_for(worker, request["seconds"])
    if request["do"] == "outputs":
        folder, files = Path(request["folder"]), []
        for i, array in enumerate(worker.run()):
            files.append(str(folder / f"{i}.npy"))
            np.save(files[-1], np.asarray(array))
        return {"files": files}
    return {"peak_mib": peak_memory_mib()}


def _run_for(worker: Worker, seconds: float) -> dict[str, Any]:
    """Run again and again for so long, once at least."""
    wall_ms: list[float] = []
    cpu_ms: list[float] = []
    end = time.perf_counter() + seconds
    while not wall_ms or time.perf_counter() < end:
        cpu, wall = time.process_time(), time.perf_counter()
        worker.run()
        wall_ms.append((time.perf_counter() - wall) * 1e3)
        cpu_ms.append((time.process_time() - cpu) * 1e3)
    return {"wall_ms": wall_ms, "cpu_ms": cpu_ms}


def peak_memory_mib() -> float | None:
    """The most memory this process ever had, where the system tells."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return None
    for line in status.splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return None
