"""Time of an invoke() that computes next to nothing: `python -m tools.bench.invoke`.

A model of one operator on four floats, through each dispatcher and front door, beside LiteRT's CPU
kernels. What is left is what an invoke costs at least. Engines take turns of many invokes.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

if __package__ == "tools.bench":  # started from a checkout
    _TOOLS = Path(__file__).resolve().parent.parent
    sys.path[:0] = [str(_TOOLS), str(_TOOLS.parent)]

from tflite_vk.analysis.litert import cpu_interpreter, delegate_interpreter, has_litert
from tflite_vk.analysis.statistics import Statistics
from tflite_vk.errors import DeviceError
from tflite_vk.frontend.flatbuffer import read_model
from tflite_vk.interpreter import Interpreter
from tflite_vk.ir.attributes import NoAttributes
from tflite_vk.options import DelegateOptions
from tflite_vk.runtime.open import open_device
from tflite_vk.session import Session
from tflite_vk.testing.model_writer import ModelWriter

Invoke = Callable[[], None]
Engines = dict[str, Invoke]
Dispatcher = Literal["vulkan", "kompute"]

DISPATCHERS: tuple[Dispatcher, ...] = ("vulkan", "kompute")


def one_operator() -> bytes:
    """A model of one ABS on four floats."""
    w = ModelWriter()
    x = w.input((1, 4), name="x")
    w.output(w.op("ABS", [x], [(1, 4)], NoAttributes()))
    return w.build()


def engines(content: bytes, device: str | None = None) -> tuple[Engines, dict[str, str]]:
    """What can run here, ready to be invoked, and why the rest can't.

    Args:
        content: a model.
        device: as option `device`.
    """
    found: Engines = {}
    missing: dict[str, str] = {}
    for dispatcher in DISPATCHERS:
        try:
            found.update(_of_dispatcher(content, dispatcher, device))
        except DeviceError as error:
            missing[dispatcher] = str(error)
    if has_litert():
        cpu = cpu_interpreter(content, 1)
        cpu.allocate_tensors()
        found["LiteRT CPU, 1 thread"] = cpu.invoke
    else:
        missing["LiteRT"] = "not installed"
    return found, missing


def _of_dispatcher(content: bytes, dispatcher: Dispatcher, device: str | None) -> Engines:
    options = DelegateOptions(dispatcher=dispatcher, device=device)
    opened = open_device(device, dispatcher)
    session = Session.of(read_model(content, "one").subgraphs[0], opened, options)
    own = Interpreter(model_content=content, options=options)
    own.allocate_tensors()
    out: Engines = {
        f"{dispatcher}: submit and wait": session.executable.run,
        f"{dispatcher}: tflite_vk.Interpreter": own.invoke,
    }
    if has_litert():
        interpreter, _ = delegate_interpreter(content, options, 1)
        interpreter.allocate_tensors()
        out[f"{dispatcher}: LiteRT with the delegate"] = interpreter.invoke
    return out


def measure(found: Mapping[str, Invoke], rounds: int, invokes: int) -> dict[str, list[float]]:
    """Microseconds of an invoke, the mean of each turn.

    Args:
        found: engines.
        rounds: turns of each.
        invokes: invokes of a turn.
    """
    samples: dict[str, list[float]] = {name: [] for name in found}
    for turn in range(rounds + 1):
        for name, invoke in found.items():
            start = time.perf_counter()
            for _ in range(invokes):
                invoke()
            if turn:  # the first one warms up
                samples[name].append((time.perf_counter() - start) / invokes * 1e6)
    return samples


def parser() -> argparse.ArgumentParser:
    """The parser."""
    out = argparse.ArgumentParser(
        prog="python -m tools.bench.invoke", description="What an invoke() costs at least."
    )
    out.add_argument("--device", help="index, or part of a name")
    out.add_argument("--rounds", type=int, default=20, help="turns of each (default: 20)")
    out.add_argument("--invokes", type=int, default=100, help="of a turn (default: 100)")
    out.add_argument("--json", action="store_true", help="print JSON")
    return out


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; 0 where something ran, 1 where nothing could, 2 for bad usage."""
    args = parser().parse_args(arguments)
    if args.rounds < 1 or args.invokes < 1:
        parser().error("--rounds and --invokes take 1 and up")
    found, missing = engines(one_operator(), args.device)
    for name, reason in missing.items():
        print(f"{name}: skipped: {reason}", file=sys.stderr)
    samples = measure(found, args.rounds, args.invokes)
    statistics = {name: Statistics.of(us) for name, us in samples.items()}
    if args.json:
        print(json.dumps({name: s.to_dict() for name, s in statistics.items()}, indent=1))
    else:
        print(f"{'us an invoke, one ABS of four floats':<42}{'median':>8}{'least':>8}")
        for name, s in statistics.items():
            print(f"{name:<42}{s.median:8.1f}{s.min:8.1f}")
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())
