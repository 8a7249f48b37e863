"""Results: a row for each engine and network, as a table and as JSON."""

from __future__ import annotations

import dataclasses
import math
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt

from bench.process import StartUp
from tflite_vk.analysis.metrics import Tolerance
from tflite_vk.analysis.metrics import measure as compare
from tflite_vk.analysis.statistics import Statistics

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Row:
    """One engine on one network.

    Attributes:
        network: its name.
        engine: its name.
        skipped: why it did not run; every number is None then.
        wall: time of a run.
        cpu: processor time of a run.
        ratio: median over that of the first engine that ran; above 1 is slower.
        error: largest difference from LiteRT's CPU kernels in fp32, as a share of the largest
            value of the output; None where weights differ.
        cold: start-up with nothing cached.
        warm: start-up after another process had been there.
        peak_mib: the most memory the process ever had.
        device_mib: device memory it held at the end, where known.
        note: where the network is not the same.
        samples_ms: every run.
    """

    network: str
    engine: str
    skipped: str | None = None
    wall: Statistics | None = None
    cpu: Statistics | None = None
    ratio: float | None = None
    error: float | None = None
    cold: StartUp | None = None
    warm: StartUp | None = None
    peak_mib: float | None = None
    device_mib: float | None = None
    note: str = ""
    samples_ms: tuple[float, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        out = dataclasses.asdict(self)
        if out["error"] is not None and not math.isfinite(out["error"]):
            out["error"] = None
        return out


def error_against(got: Sequence[Array], want: Sequence[Array]) -> float | None:
    """Largest difference of all outputs, each as a share of its largest value.

    Returns:
        None where there is nothing to compare; infinity where the shapes differ.
    """
    if not got or not want:
        return None
    if [g.shape for g in got] != [w.shape for w in want]:
        return math.inf
    return max(compare(g, w, Tolerance()).max_rel for g, w in zip(got, want, strict=True))


COLUMNS = (
    "network", "engine", "median ms", "p90", "ratio", "cpu ms", "error", "cold ms", "warm ms",
    "peak MiB",
)  # fmt: skip


def table(rows: Sequence[Row]) -> str:
    """A Markdown table that also reads well as text, with notes and skipped engines below."""
    ran = [row for row in rows if row.skipped is None]
    cells = [list(COLUMNS), *(_cells(row) for row in ran)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(COLUMNS))]
    lines = [_line(line, widths) for line in cells]
    rule = ["-" * w if i < 2 else "-" * (w - 1) + ":" for i, w in enumerate(widths)]
    lines.insert(1, "| " + " | ".join(rule) + " |")
    lines += ["", *(f"{r.network}, {r.engine}: {r.note}." for r in ran if r.note)]
    skipped = [r for r in rows if r.skipped is not None]
    lines += [f"{r.network}, {r.engine}: skipped: {r.skipped}" for r in skipped]
    return "\n".join(lines).rstrip() + "\n"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [
        c.ljust(w) if i < 2 else c.rjust(w)
        for i, (c, w) in enumerate(zip(cells, widths, strict=True))
    ]
    return "| " + " | ".join(padded) + " |"


def _cells(row: Row) -> list[str]:
    assert row.wall is not None
    return [
        row.network,
        row.engine,
        number(row.wall.median),
        number(row.wall.p90),
        "" if row.ratio is None else f"{row.ratio:.2f}",
        "" if row.cpu is None else number(row.cpu.median),
        "" if row.error is None else f"{row.error:.1e}",
        "" if row.cold is None else f"{row.cold.total_ms:.0f}",
        "" if row.warm is None else f"{row.warm.total_ms:.0f}",
        "" if row.peak_mib is None else f"{row.peak_mib:.0f}",
    ]


def number(value: float) -> str:
    """Three significant digits, and no exponent."""
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def machine() -> dict[str, Any]:
    """What all this was measured on."""
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": list(os.getloadavg()),
        "python": platform.python_version(),
    }


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in text.splitlines() if "model name" in line]
    return names[0] if names else platform.processor()
