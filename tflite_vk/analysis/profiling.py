"""Device time of every dispatch of a model, with what it computes and moves in that time.

Times are the device's own timestamps, medians over runs. Bytes are those of the buffers bound,
each counted once for reading and once for writing: what a kernel reads twice it may find in a
cache, so achieved bandwidth is a lower bound. Floating-point operations come from lowering.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tflite_vk.analysis.ceilings import Ceilings
from tflite_vk.analysis.decision import Partition, decide
from tflite_vk.analysis.model_inputs import RandomInputs
from tflite_vk.analysis.progress import Progress, silent
from tflite_vk.frontend.flatbuffer import Model
from tflite_vk.options import DelegateOptions
from tflite_vk.program import Dispatch, Program
from tflite_vk.runtime.device import Device
from tflite_vk.session import Session
from tflite_vk.support_report import SupportReport

_WORD_BYTES = 4

_EXPLAINS = 0.25
"""Share of a dispatch's time that a ceiling has to account for to be what bounds it."""

Bound = Literal["memory", "arithmetic", "launch", "latency"]


@dataclass(frozen=True)
class DispatchTime:
    """One dispatch, or several of one operator summed up.

    Attributes:
        label: operators and node index; for a sum the operators alone.
        shader: name of the kernel; for a sum those of all, with commas.
        partition: number of its partition, -1 for a sum over several.
        node: TFLite's node index, -1 for a sum.
        count: dispatches in it.
        us: microseconds of one run.
        flops: operations.
        bytes: bytes read and written.
    """

    label: str
    shader: str
    partition: int
    node: int
    count: int
    us: float
    flops: int
    bytes: int

    @property
    def gflops(self) -> float:
        """1e9 operations a second."""
        return self.flops / self.us / 1e3 if self.us > 0 else 0.0

    @property
    def gbps(self) -> float:
        """1e9 bytes a second."""
        return self.bytes / self.us / 1e3 if self.us > 0 else 0.0

    def of_copy(self, ceilings: Ceilings) -> float:
        """Share of the bandwidth of a plain copy."""
        return self.gbps / ceilings.copy_gbps

    def of_arithmetic(self, ceilings: Ceilings) -> float:
        """Share of the device's multiply-adds."""
        return self.gflops / ceilings.arithmetic_gflops

    def bound_by(self, ceilings: Ceilings) -> Bound:
        """What keeps it from being faster.

        The longest of the three times that the ceilings allow for its bytes, its operations and its
        launch; "latency" where none of them explains a quarter of the time it took, so that it
        waited for single loads: with too few invocations to hide them, or on a software driver,
        which loads lane by lane.
        """
        needs: dict[Bound, float] = {
            "memory": self.bytes / ceilings.copy_gbps / 1e3,
            "arithmetic": self.flops / ceilings.arithmetic_gflops / 1e3,
            "launch": self.count * ceilings.launch_us,
        }
        longest = max(needs, key=needs.__getitem__)
        return longest if needs[longest] >= _EXPLAINS * self.us else "latency"

    def to_dict(self, ceilings: Ceilings | None = None) -> dict[str, Any]:
        """Plain data for JSON."""
        out = {**asdict(self), "gflops": self.gflops, "gbps": self.gbps}
        if ceilings is not None:
            out["of_copy"] = self.of_copy(ceilings)
            out["of_arithmetic"] = self.of_arithmetic(ceilings)
            out["bound_by"] = self.bound_by(ceilings)
        return out


@dataclass(frozen=True)
class Profile:
    """Where the device's time goes.

    Attributes:
        device: its name.
        dispatcher: what launched the dispatches.
        report: what ran on the device.
        dispatches: in execution order.
        runs: runs whose medians these are.
        ceilings: what the device can do at most; None where not measured.
    """

    device: str
    dispatcher: str
    report: SupportReport
    dispatches: tuple[DispatchTime, ...]
    runs: int
    ceilings: Ceilings | None

    @property
    def total(self) -> DispatchTime:
        """All dispatches together."""
        return _sum("total", self.dispatches)

    def by_operator(self) -> list[DispatchTime]:
        """Sums over the dispatches of the same operators, the longest first."""
        groups: dict[str, list[DispatchTime]] = {}
        for d in self.dispatches:
            groups.setdefault(operators_of(d.label), []).append(d)
        sums = [_sum(name, members) for name, members in groups.items()]
        return sorted(sums, key=lambda d: -d.us)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "device": self.device,
            "dispatcher": self.dispatcher,
            "runs": self.runs,
            "report": self.report.to_dict(),
            "ceilings": None if self.ceilings is None else self.ceilings.to_dict(),
            "total": self.total.to_dict(self.ceilings),
            "operators": [d.to_dict(self.ceilings) for d in self.by_operator()],
            "dispatches": [d.to_dict(self.ceilings) for d in self.dispatches],
        }

    def to_trace(self) -> dict[str, Any]:
        """Events for chrome://tracing and Perfetto, the dispatches one behind the other."""
        events: list[dict[str, Any]] = []
        now = 0.0
        for d in self.dispatches:
            events.append(
                {
                    "name": d.label,
                    "cat": d.shader,
                    "ph": "X",
                    "ts": now,
                    "dur": d.us,
                    "pid": self.device,
                    "tid": f"partition {d.partition}",
                    "args": {
                        "shader": d.shader,
                        "node": d.node,
                        "flops": d.flops,
                        "bytes": d.bytes,
                        "GFLOP/s": round(d.gflops, 3),
                        "GB/s": round(d.gbps, 3),
                        **self._against_ceilings(d),
                    },
                }
            )
            now += d.us
        return {"traceEvents": events, "displayTimeUnit": "ms"}

    def _against_ceilings(self, d: DispatchTime) -> dict[str, Any]:
        if self.ceilings is None:
            return {}
        return {
            "of copy": round(d.of_copy(self.ceilings), 4),
            "of multiply-add": round(d.of_arithmetic(self.ceilings), 4),
            "bound by": d.bound_by(self.ceilings),
        }

    def write_trace(self, path: Path) -> None:
        """Write `to_trace` to a file."""
        path.write_text(json.dumps(self.to_trace()), encoding="utf-8")


def operators_of(label: str) -> str:
    """The operators of a dispatch's label, without its node index."""
    return label.rpartition(" #")[0] or label


def bytes_of(dispatch: Dispatch, program: Program) -> int:
    """Bytes of the buffers that a dispatch reads, and of those it writes."""
    read, written = set(dispatch.buffers("r")), set(dispatch.buffers("w"))
    words = sum(program.buffers[b].words for b in read)
    words += sum(program.buffers[b].words for b in written)
    return _WORD_BYTES * words


def _sum(label: str, members: Iterable[DispatchTime]) -> DispatchTime:
    members = tuple(members)
    partitions = {d.partition for d in members}
    return DispatchTime(
        label=label,
        shader=", ".join(sorted({d.shader for d in members})),
        partition=partitions.pop() if len(partitions) == 1 else -1,
        node=-1,
        count=sum(d.count for d in members),
        us=sum(d.us for d in members),
        flops=sum(d.flops for d in members),
        bytes=sum(d.bytes for d in members),
    )


def profile(
    model: Model,
    options: DelegateOptions,
    device: Device,
    *,
    runs: int = 20,
    warmup_runs: int = 2,
    random: RandomInputs | None = None,
    ceilings: Ceilings | None = None,
    progress: Progress = silent,
) -> Profile:
    """Time every dispatch of the partitions of subgraph 0, on random inputs.

    Args:
        model: as read.
        options: limits and exclusions, precision and fusion.
        device: an open device.
        runs: timed runs, at least 1.
        warmup_runs: runs before them.
        random: how the inputs of each partition are drawn.
        ceilings: of the device, to be quoted beside.
        progress: told of each run.

    Raises:
        DeviceError: the device has no timestamps, or failed.
    """
    decision = decide(model, options, device.info)
    draw = random or RandomInputs()
    out: list[DispatchTime] = []
    partitions = [(i, p) for i, p in enumerate(decision.partitions) if p.subgraph == 0]
    for index, partition in partitions:
        times = _times(partition, options, device, runs, warmup_runs, draw, progress)
        program = partition.lowered.program
        out.extend(
            DispatchTime(
                label=d.label,
                shader=d.kernel.shader,
                partition=index,
                node=d.node,
                count=1,
                us=float(us),
                flops=d.flops,
                bytes=bytes_of(d, program),
            )
            for d, us in zip(program.dispatches, times, strict=True)
        )
    return Profile(device.info.name, device.dispatcher, decision.report, tuple(out), runs, ceilings)


def _times(
    partition: Partition,
    options: DelegateOptions,
    device: Device,
    runs: int,
    warmup_runs: int,
    random: RandomInputs,
    progress: Progress,
) -> Sequence[float]:
    """Median microseconds of each dispatch of a partition."""
    if not partition.lowered.program.dispatches:
        return []
    session = Session(
        partition.graph,
        device,
        precision=options.precision,
        fp32_ops=options.fp32_ops,
        fusion=options.fusion,
        tuning=options.tuning,
        profiling=True,
    )
    try:
        inputs = random.draw(partition.graph)
        samples = []
        for done in range(warmup_runs + runs):
            progress("profile", done, warmup_runs + runs)
            session.run(inputs, {})
            if done >= warmup_runs:
                samples.append(session.executable.dispatch_us())
    finally:
        session.close()
    medians: list[float] = np.median(np.array(samples, np.float64), axis=0).tolist()
    return medians
