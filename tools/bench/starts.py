"""Cold and warm start of a model, each in a fresh process: `python -m tools.bench.starts MODEL`.

A cold start finds an empty `cache_dir`, a warm one what cold starts have left there. Drivers keep
nothing of their own elsewhere, so that the difference is this package's doing. Processes take
turns, and numbers are medians.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

if __package__ == "tools.bench":  # started from a checkout
    _TOOLS = Path(__file__).resolve().parent.parent
    sys.path[:0] = [str(_TOOLS), str(_TOOLS.parent)]

from bench.engines import SkippedError, engines, input_for
from bench.networks import NCNN_GRAPHS, Network, known, prepare
from bench.process import DriverCaches, Place, StartUp, WorkerProcess
from tflite_vk.errors import Error

HOW = (
    "cold: nothing cached anywhere; warm: cache_dir as a cold start left it; each in a process of its own.",
    "Drivers' own caches are off: NVIDIA's (__GL_SHADER_DISK_CACHE=0), and Mesa's in the home directory.",
    "lavapipe's VkPipelineCache is a header without content: its machine code is in Mesa's cache only,",
    "which this package points at cache_dir; 'no Mesa' is a warm start without it "
    "(MESA_SHADER_CACHE_DISABLE=true).",
)
_KINDS = ("vulkan", "kompute", "delegate")


@dataclass(frozen=True)
class Start:
    """A process up to its first result, in milliseconds.

    Attributes:
        import_ms: Python, NumPy and the package.
        load_ms: reading and compiling the model, opening the device.
        first_ms: the first run; a driver may compile in it.
        run_ms: a later run, as a measure of what the first one had to compute anyway.
        cpu_ms: processor time up to the first result.
    """

    import_ms: float
    load_ms: float
    first_ms: float
    run_ms: float
    cpu_ms: float

    @property
    def model_ms(self) -> float:
        """From the package imported to the first result."""
        return self.load_ms + self.first_ms

    @property
    def start_ms(self) -> float:
        """The same without what a run takes anyway: what a cache can save."""
        return max(0.0, self.model_ms - self.run_ms)

    @classmethod
    def of(cls, start_up: StartUp, run_ms: float) -> Start:
        """From what a worker said."""
        s = start_up
        return cls(s.import_ms, s.load_ms, s.first_ms, run_ms, s.cpu_ms)

    @classmethod
    def median(cls, starts: Sequence[Start]) -> Start:
        """Medians of each number."""
        return cls(
            *(statistics.median(column) for column in zip(*map(_values, starts), strict=True))
        )

    def to_dict(self) -> dict[str, float]:
        """Plain data for JSON."""
        return {**asdict(self), "model_ms": self.model_ms, "start_ms": self.start_ms}


def _values(start: Start) -> tuple[float, ...]:
    return tuple(asdict(start).values())


def measure_starts(
    network: Network, kind: str, folder: Path, rounds: int, precision: str = "fp32"
) -> dict[str, Start]:
    """Median starts of one engine by kind of start: "cold", "warm", "no Mesa".

    Args:
        network: what to run.
        kind: of engine.
        folder: for caches.
        rounds: cold starts, and warm ones, each in turn.
        precision: "fp32" or "fp16".

    Raises:
        SkippedError: the engine can't run it; says why.
    """
    cache = folder / "starts"
    samples: dict[str, list[Start]] = {"cold": [], "warm": [], "no Mesa": []}
    for _ in range(rounds):
        shutil.rmtree(cache, ignore_errors=True)
        for name, found in samples.items():
            caches: DriverCaches = "off" if name == "no Mesa" else "engine"
            place = Place({}, precision, caches)
            found.append(_start(network, kind, cache, place, folder))
    return {name: Start.median(found) for name, found in samples.items()}


def _start(network: Network, kind: str, cache: Path, place: Place, folder: Path) -> Start:
    engine = engines([kind], [1])[0]
    given = input_for(engine, network, folder, NCNN_GRAPHS)
    process = WorkerProcess(engine, given, network.inputs, cache, place)
    try:
        wall_ms, _ = process.run(0.0)
        return Start.of(process.start_up, wall_ms[0])
    finally:
        process.stop()


def table(network: str, engine: str, found: dict[str, Start]) -> str:
    """What is printed for a network."""
    lines = [f"{network}, {engine}", "start     import   load    first   a run   start   of cold"]
    cold = found["cold"]
    for name, s in found.items():
        of_cold = f"{s.start_ms / cold.start_ms:.1%}" if cold.start_ms else "-"
        numbers = (s.import_ms, s.load_ms, s.first_ms, s.run_ms, s.start_ms)
        lines.append(f"{name:<8}" + "".join(f"{ms:8.0f}" for ms in numbers) + f"{of_cold:>10}")
    share = found["warm"].model_ms / cold.model_ms
    lines.append(f"ms; start = load + first - a run. With that run: warm is {share:.1%} of cold.")
    return "\n".join(lines) + "\n"


def parser() -> argparse.ArgumentParser:
    """The parser."""
    out = argparse.ArgumentParser(
        prog="python -m tools.bench.starts", description="Cold and warm start of models."
    )
    out.add_argument(
        "networks", nargs="+", metavar="NETWORK", help=f"a file, or of: {', '.join(known())}"
    )
    out.add_argument("--engine", choices=_KINDS, default="vulkan")
    out.add_argument("--precision", choices=("fp32", "fp16"), default="fp32")
    out.add_argument("--rounds", type=int, default=3, help="starts of each kind (default: 3)")
    out.add_argument("--json", action="store_true", help="print JSON")
    return out


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; 0 where everything ran, 1 where something could not, 2 for bad usage."""
    args = parser().parse_args(arguments)
    if args.rounds < 1:
        parser().error("--rounds takes 1 and up")
    results: dict[str, Any] = {}
    is_good = True
    if not args.json:
        print("\n".join(HOW) + "\n")
    for name in args.networks:
        with tempfile.TemporaryDirectory(prefix="starts-") as temporary:
            folder = Path(temporary)
            try:
                network = prepare(name, folder)
                found = measure_starts(network, args.engine, folder, args.rounds, args.precision)
            except Error as error:
                parser().error(str(error))
            except SkippedError as error:
                print(f"{name}: {error}", file=sys.stderr)
                is_good = False
                continue
        results[network.name] = {kind: start.to_dict() for kind, start in found.items()}
        if not args.json:
            print(table(network.name, args.engine, found), flush=True)
    if args.json:
        print(
            json.dumps({"how": " ".join(HOW), "engine": args.engine, "starts": results}, indent=1)
        )
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
