"""Running every engine on one network: cold and warm starts, then rounds in which they take turns."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from bench.engines import Engine, Input, SkippedError, input_for
from bench.networks import Network
from bench.process import Place, StartUp, WorkerProcess
from bench.results import Array, Row, error_against
from tflite_vk.analysis.statistics import Statistics

Say = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """How much is run.

    Attributes:
        rounds: turns of each engine.
        seconds: length of a turn.
        ncnn_graphs: folder of ncnn's graphs.
        starts_twice: start each engine again with what its first process has left.
    """

    rounds: int
    seconds: float
    ncnn_graphs: Path
    starts_twice: bool = True


@dataclass
class _Runner:
    """An engine made ready."""

    engine: Engine
    given: Input
    process: WorkerProcess
    cold: StartUp
    warm: StartUp | None
    wall_ms: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)
    failure: str | None = None


def measure(
    network: Network, engines: Sequence[Engine], place: Place, plan: Plan, folder: Path, say: Say
) -> list[Row]:
    """A row of the table for each engine, skipped ones too.

    Args:
        network: what to run.
        engines: the first that runs is what the others are compared with.
        place: interpreters, precision and caches.
        plan: how much.
        folder: for caches and converted models.
        say: told what is going on.
    """
    runners: dict[str, _Runner] = {}
    skipped: dict[str, str] = {}
    try:
        for engine in engines:
            say(f"{network.name}: {engine.name} starts")
            try:
                runners[engine.name] = _start(network, engine, place, plan, folder)
            except SkippedError as error:
                skipped[engine.name] = str(error)
                say(f"{network.name}: {engine.name} skipped: {error}")
        for done in range(plan.rounds):
            say(f"{network.name}: round {done + 1} of {plan.rounds}")
            for runner in runners.values():
                _take_turn(runner, plan.seconds)
        return _rows(network, engines, runners, skipped, folder)
    finally:
        for runner in runners.values():
            runner.process.stop()


def _start(network: Network, engine: Engine, place: Place, plan: Plan, folder: Path) -> _Runner:
    given = input_for(engine, network, folder, plan.ncnn_graphs)
    cache_dir = folder / f"{network.name}-cache" / engine.name.replace(" ", "-")
    shutil.rmtree(cache_dir, ignore_errors=True)
    process = WorkerProcess(engine, given, network.inputs, cache_dir, place)
    cold, warm = process.start_up, None
    if plan.starts_twice:
        process.stop()
        process = WorkerProcess(engine, given, network.inputs, cache_dir, place)
        warm = process.start_up
    return _Runner(engine, given, process, cold, warm)


def _take_turn(runner: _Runner, seconds: float) -> None:
    if runner.failure is not None:
        return
    try:
        wall, cpu = runner.process.run(seconds)
    except SkippedError as error:
        runner.failure = str(error)
        return
    runner.wall_ms += wall
    runner.cpu_ms += cpu


def _rows(
    network: Network,
    engines: Sequence[Engine],
    runners: dict[str, _Runner],
    skipped: dict[str, str],
    folder: Path,
) -> list[Row]:
    device_mib = gpu_memory_mib()
    outputs = {
        name: _outputs(runner, folder / f"{network.name}-{name}")
        for name, runner in runners.items()
        if runner.engine.has_our_weights
    }
    reference = next(
        (outputs[e.name] for e in engines if e.kind == "litert-cpu" and e.name in outputs), []
    )
    base = next((e.name for e in engines if e.name in runners and runners[e.name].wall_ms), None)
    base_ms = Statistics.of(runners[base].wall_ms).median if base is not None else None
    rows = []
    for engine in engines:
        runner = runners.get(engine.name)
        if runner is None or not runner.wall_ms:
            reason = skipped.get(engine.name) or (runner.failure if runner else None) or "no run"
            rows.append(Row(network.name, engine.name, skipped=reason))
            continue
        wall = Statistics.of(runner.wall_ms)
        rows.append(
            Row(
                network.name,
                engine.name,
                wall=wall,
                cpu=Statistics.of(runner.cpu_ms),
                ratio=None if base_ms is None else wall.median / base_ms,
                error=error_against(outputs.get(engine.name, []), reference),
                cold=runner.cold,
                warm=runner.warm,
                peak_mib=_peak(runner),
                device_mib=device_mib.get(runner.process.pid),
                note=runner.given.note,
                samples_ms=tuple(runner.wall_ms),
            )
        )
    return rows


def _outputs(runner: _Runner, folder: Path) -> list[Array]:
    with contextlib.suppress(SkippedError):
        return [np.load(path) for path in runner.process.outputs(folder)]
    return []


def _peak(runner: _Runner) -> float | None:
    with contextlib.suppress(SkippedError):
        return runner.process.peak_mib()
    return None


def gpu_memory_mib() -> dict[int, float]:
    """Device memory by process, where nvidia-smi tells; empty elsewhere."""
    command = [
        "nvidia-smi",
        "--query-compute-apps=pid,used_memory",
        "--format=csv,noheader,nounits",
    ]
    try:
        text = subprocess.run(
            command, capture_output=True, text=True, timeout=20, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    return parse_gpu_memory(text)


def parse_gpu_memory(text: str) -> dict[int, float]:
    """What nvidia-smi printed: a process and its MiB a line; it may not know either."""
    out: dict[int, float] = {}
    for line in text.splitlines():
        pid, _, used = line.partition(",")
        with contextlib.suppress(ValueError):
            out[int(pid)] = out.get(int(pid), 0.0) + float(used)
    return out
