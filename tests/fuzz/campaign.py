"""Many graphs in a row: draw, run, compare, shrink what fails, count."""

from __future__ import annotations

import faulthandler
import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tests.fuzz import corpus
from tests.fuzz.devices import variants
from tests.fuzz.draw import draw
from tests.fuzz.execute import Door, Outcome, compare, execute
from tests.fuzz.shrink import Failure, shrink
from tests.support.case import Array
from tests.support.oracle import run_interpreter
from tflite_vk.analysis.litert import reference_interpreter
from tflite_vk.runtime.device import Device
from tflite_vk.runtime.open import open_device

DOORS: tuple[Door, ...] = ("session",) * 8 + ("delegate", "interpreter")


@dataclass
class Count:
    """What a campaign has seen.

    Attributes:
        graphs: how many.
        operators: how often each operator.
        exact: outputs that had to agree bit for bit.
        outputs: how many.
        declined: operators the device left to the CPU, by reason.
        faults: one line each.
        oracle: graphs whose whole run by LiteRT is not what its operators make one by one.
    """

    graphs: int = 0
    operators: Counter[str] = field(default_factory=Counter)
    exact: int = 0
    outputs: int = 0
    declined: Counter[tuple[str, str]] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    oracle: list[str] = field(default_factory=list)

    def add(self, other: Count) -> None:
        """Add another's."""
        self.graphs += other.graphs
        self.operators += other.operators
        self.exact += other.exact
        self.outputs += other.outputs
        self.declined += other.declined
        self.faults += other.faults
        self.oracle += other.oracle

    def summary(self) -> str:
        """For people."""
        wrong = sum(" wrong: " in f for f in self.faults)
        lines = [
            f"graphs {self.graphs}, operators {self.operators.total()} of "
            f"{len(self.operators)} kinds, outputs {self.outputs} ({self.exact} bit for bit)",
            f"declined {self.declined.total()}, wrong {wrong}, "
            f"crashed {len(self.faults) - wrong}, oracle at odds with itself {len(self.oracle)}",
        ]
        lines += [f"  declined {n} {op}: {why}" for (op, why), n in self.declined.most_common()]
        return "\n".join([*lines, *self.faults, *self.oracle])


def run_whole(data: bytes, inputs: list[Array]) -> tuple[list[Array], bool]:
    """Outputs of the whole graph by LiteRT, and whether by its reference kernels.

    The wheel's reference resolver lacks some operators; a graph with one of them runs on the
    optimized kernels, which round quantized values otherwise here and there.
    """
    interpreter, kernels = reference_interpreter(data)
    return run_interpreter(interpreter, inputs), kernels == "BUILTIN_REF"


def try_one(
    seed: int, index: int, group: str, device: Device, folder: Path | None = corpus.FOLDER
) -> Count:
    """Run one graph.

    Args:
        seed: of the campaign.
        index: of the graph in it.
        group: "float" or "quantized".
        device: an open device.
        folder: where failures are saved; None for nowhere.
    """
    graph = draw(seed, index, group)
    rng = np.random.default_rng([seed, index, 99])
    door = DOORS[int(rng.integers(len(DOORS)))]
    fusion = bool(rng.random() < 0.9)
    shapes = variants(device)
    shape = str(
        rng.choice(list(shapes), p=[1 - 0.25 * (len(shapes) - 1)] + [0.25] * (len(shapes) - 1))
    )
    if door == "session":
        device = shapes[shape]
    count = Count(1, Counter(graph.ops), sum(t == 0 for t in graph.tolerances), len(graph.outputs))
    where = f"{group} {seed}/{index}, {shape}"
    whole, is_reference = run_whole(graph.data, graph.inputs)
    odd = compare(whole, graph.outputs, graph.tolerances)
    if odd is not None and is_reference:
        count.oracle.append(f"{where} oracle: {odd[1]} in {' '.join(graph.ops)}")
        return count

    def run(f: Failure) -> Outcome:
        return execute(f.data, f.inputs, f.outputs, f.tolerances, device, door, fusion=fusion)

    outcome = run(Failure(graph.data, graph.inputs, graph.outputs, graph.tolerances))
    count.declined.update(outcome.declined)
    if outcome.kind == "good":
        return count
    if odd is not None and outcome.declined:
        return count  # the CPU's part may have run on the kernels that are at odds

    def fails(f: Failure) -> bool:
        return run(f).kind == outcome.kind

    small = shrink(graph.data, graph.values, graph.allowed, fails)
    text = f"{where} {outcome.kind}: {outcome.text}"
    if folder is not None:
        path = corpus.save(small, f"{group}_{seed}_{index}", text, folder)
        text += f" ({path.name})"
    count.faults.append(text)
    return count


@dataclass(frozen=True)
class Chunks:
    """Runs some graphs of a campaign, in whatever process it is sent to.

    It lives here because a spawned process doesn't import the `__main__` of a package.

    Attributes:
        seed: of the campaign.
        group: "float" or "quantized".
        device: index or part of a name.
        dispatcher: "vulkan", "kompute" or "auto".
        folder: where failures are saved; None for nowhere.
        trace: start of the name of a file that holds the present graph.
    """

    seed: int
    group: str
    device: str | None
    dispatcher: str
    folder: Path | None
    trace: str | None

    def __call__(self, indices: range) -> Count:
        """Run these graphs."""
        faulthandler.enable()
        device = open_device(self.device, self.dispatcher)
        total = Count()
        for index in indices:
            # A crash of the process itself leaves behind which graph it was.
            if self.trace is not None:
                text = f"{self.group} {self.seed}/{index}\n"
                Path(f"{self.trace}.{os.getpid()}").write_text(text)
            total.add(try_one(self.seed, index, self.group, device, self.folder))
        return total
