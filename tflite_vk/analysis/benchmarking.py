"""How long a model takes: start-up, first run, and warm runs, of several engines side by side.

Machines are noisy and slow down as they warm up, so engines take turns: one run each, round after
round. A run is what a caller waits for: set the inputs, invoke, get the outputs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from tflite_vk.analysis.litert import (
    allocate,
    cpu_interpreter,
    delegate_interpreter,
    litert_errors,
)
from tflite_vk.analysis.progress import Progress, silent
from tflite_vk.analysis.statistics import Statistics
from tflite_vk.interpreter import Interpreter
from tflite_vk.options import DelegateOptions
from tflite_vk.support_report import SupportReport

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Engine:
    """Something that runs the model.

    Attributes:
        name: for people.
        make: gives an interpreter, and the report of what its device took.
    """

    name: str
    make: Callable[[], tuple[Any, Callable[[], SupportReport] | None]]


@dataclass(frozen=True)
class Schedule:
    """How much is run, with the meaning that TFLite's benchmark_model gives to these numbers.

    Attributes:
        num_runs: warm runs at least.
        warmup_runs: runs after the first that are not counted.
        min_secs: goes on until that much time was spent in counted runs.
        max_secs: stops there, whatever num_runs says.
        run_delay: pause between runs, in seconds.
    """

    num_runs: int = 50
    warmup_runs: int = 1
    min_secs: float = 0.0
    max_secs: float = 150.0
    run_delay: float = 0.0


@dataclass(frozen=True)
class EngineResult:
    """What one engine took.

    Attributes:
        name: of the engine.
        init_ms: from nothing to allocated tensors, opening the device and compiling included.
        first_ms: first run.
        warm: warm runs, from setting the inputs to having the outputs.
        invoke: their invoke() alone.
        report: what ran on a device; None for a CPU.
        outputs: of the last run.
    """

    name: str
    init_ms: float
    first_ms: float
    warm: Statistics
    invoke: Statistics
    report: SupportReport | None
    outputs: list[Array]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "name": self.name,
            "init_ms": self.init_ms,
            "first_ms": self.first_ms,
            "warm_ms": self.warm.to_dict(),
            "invoke_ms": self.invoke.to_dict(),
            "report": None if self.report is None else self.report.to_dict(),
        }


def own_engine(content: bytes, options: DelegateOptions, num_threads: int | None = None) -> Engine:
    """`tflite_vk.Interpreter`, which needs no LiteRT where the device takes all."""

    def make() -> tuple[Any, Callable[[], SupportReport] | None]:
        with litert_errors("tflite_vk.Interpreter can't load the model"):
            interpreter = Interpreter(
                model_content=content, options=options, num_threads=num_threads
            )
        return interpreter, lambda: interpreter.report

    return Engine(f"GPU {options.precision}", make)


def delegate_engine(
    content: bytes, options: DelegateOptions, num_threads: int | None = None
) -> Engine:
    """LiteRT with our delegate."""

    def make() -> tuple[Any, Callable[[], SupportReport] | None]:
        interpreter, delegate = delegate_interpreter(content, options, num_threads)
        return interpreter, lambda: delegate.report

    return Engine(f"GPU {options.precision}, delegate", make)


def cpu_engine(content: bytes, num_threads: int | None = None) -> Engine:
    """LiteRT with XNNPACK."""
    threads = "default threads" if num_threads is None else f"{num_threads} threads"
    name = f"LiteRT CPU, {'1 thread' if num_threads == 1 else threads}"
    return Engine(name, lambda: (cpu_interpreter(content, num_threads), None))


def benchmark(
    engines: Sequence[Engine],
    inputs: Mapping[int, Array],
    schedule: Schedule,
    progress: Progress = silent,
) -> list[EngineResult]:
    """Time engines side by side.

    Args:
        engines: at least one.
        inputs: by tensor id.
        schedule: how much to run.
        progress: told of each round.

    Raises:
        Error: an engine can't run the model.
    """
    runners = []
    for done, engine in enumerate(engines):
        progress(f"start {engine.name}", done, len(engines))
        runners.append(_Runner(engine, inputs))
    for done in range(schedule.warmup_runs):
        progress("warm up", done, schedule.warmup_runs)
        for runner in runners:
            runner.run()
    spent, rounds = 0.0, 0
    while rounds < schedule.num_runs or spent < schedule.min_secs:
        progress("run", rounds, max(schedule.num_runs, rounds))
        for runner in runners:
            if schedule.run_delay > 0:
                time.sleep(schedule.run_delay)
            spent += runner.timed_run() / 1e3
        rounds += 1
        if spent >= schedule.max_secs:
            break
    return [runner.result() for runner in runners]


class _Runner:
    """An engine made ready and run once."""

    def __init__(self, engine: Engine, inputs: Mapping[int, Array]) -> None:
        start = time.perf_counter()
        self._interpreter, self._report = engine.make()
        allocate(self._interpreter, inputs)
        self._init_ms = (time.perf_counter() - start) * 1e3
        self._name = engine.name
        self._inputs = inputs
        self._output_indices = [d["index"] for d in self._interpreter.get_output_details()]
        self._outputs: list[Array] = []
        self._warm_ms: list[float] = []
        self._invoke_ms: list[float] = []
        self._first_ms = self.run()[0]

    def run(self) -> tuple[float, float]:
        """Run once; milliseconds of all of it, and of invoke alone."""
        with litert_errors("can't run the model"):
            start = time.perf_counter()
            for tensor_id, value in self._inputs.items():
                self._interpreter.set_tensor(tensor_id, value)
            before = time.perf_counter()
            self._interpreter.invoke()
            after = time.perf_counter()
            self._outputs = [self._interpreter.get_tensor(i) for i in self._output_indices]
            end = time.perf_counter()
        return (end - start) * 1e3, (after - before) * 1e3

    def timed_run(self) -> float:
        """Run once and keep the times."""
        all_ms, invoke_ms = self.run()
        self._warm_ms.append(all_ms)
        self._invoke_ms.append(invoke_ms)
        return all_ms

    def result(self) -> EngineResult:
        return EngineResult(
            name=self._name,
            init_ms=self._init_ms,
            first_ms=self._first_ms,
            warm=Statistics.of(self._warm_ms or [self._first_ms]),
            invoke=Statistics.of(self._invoke_ms or [self._first_ms]),
            report=None if self._report is None else self._report(),
            outputs=self._outputs,
        )
