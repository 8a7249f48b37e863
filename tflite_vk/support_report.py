"""SupportReport: what runs on the device and why the rest does not, for people and for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace

from tflite_vk.ir.graph import Graph
from tflite_vk.partition import PartitionPlan


@dataclass(frozen=True)
class NodeReport:
    """Where one operator runs.

    Attributes:
        index: TFLite's node index in its subgraph.
        op: TFLite's operator name, or a custom operator's own.
        delegated: True where it runs on the device, or was computed before running.
        partition: which group of the device's it is in, counted through all subgraphs.
        reason: why it stays on the CPU, None where it doesn't.
        supported: False where the device can't run it; an operator that an option or a limit
            keeps on the CPU is supported all the same.
        subgraph: index of its subgraph.
    """

    index: int
    op: str
    delegated: bool
    partition: int | None = None
    reason: str | None = None
    supported: bool = True
    subgraph: int = 0


@dataclass(frozen=True)
class SupportReport:
    """What the delegate took of a model.

    Attributes:
        nodes: every operator of every subgraph: subgraph 0 first, each in execution order.
        device: name of the device, empty where none is open.
    """

    nodes: tuple[NodeReport, ...] = ()
    device: str = ""

    @classmethod
    def from_plan(cls, graph: Graph, plan: PartitionPlan, device: str = "") -> SupportReport:
        """The report of one subgraph.

        Args:
            graph: as read, before constants were folded.
            plan: the decision about its nodes.
            device: name of the device.
        """
        nodes = []
        for node in graph.nodes:
            partition = plan.partition_of(node.index)
            delegated = partition is not None
            reason = None if delegated else plan.reasons.get(node.index, "Not examined.")
            supported = node.index not in plan.unsupported
            nodes.append(NodeReport(node.index, node.op, delegated, partition, reason, supported))
        return cls(tuple(nodes), device)

    @classmethod
    def join(cls, subgraphs: Iterable[SupportReport]) -> SupportReport:
        """The report of a model from those of its subgraphs, in order."""
        nodes: list[NodeReport] = []
        device = ""
        first_partition = 0
        for number, report in enumerate(subgraphs):
            for node in report.nodes:
                shifted = None if node.partition is None else node.partition + first_partition
                nodes.append(replace(node, subgraph=number, partition=shifted))
            first_partition += report.num_partitions
            device = device or report.device
        return cls(tuple(nodes), device)

    def without(self, index: int, reason: str) -> SupportReport:
        """The report of one subgraph with a node left to the CPU after all."""
        nodes = [
            NodeReport(n.index, n.op, delegated=False, reason=reason, supported=False)
            if n.index == index
            else n
            for n in self.nodes
        ]
        return replace(self, nodes=tuple(nodes))

    @property
    def num_nodes(self) -> int:
        """Operators of all subgraphs."""
        return len(self.nodes)

    @property
    def num_delegated(self) -> int:
        """Operators that run on the device."""
        return sum(n.delegated for n in self.nodes)

    @property
    def num_partitions(self) -> int:
        """Groups that run on the device, each one submission at an invoke."""
        return len({n.partition for n in self.nodes if n.partition is not None})

    @property
    def is_fully_delegated(self) -> bool:
        """True where nothing stays on the CPU."""
        return all(n.delegated for n in self.nodes)

    def to_dict(self) -> dict[str, object]:
        """Plain data for JSON."""
        return {
            "device": self.device,
            "num_nodes": self.num_nodes,
            "num_delegated": self.num_delegated,
            "num_partitions": self.num_partitions,
            "nodes": [asdict(n) for n in self.nodes],
        }

    def __str__(self) -> str:
        """TFLite's wording: reasons first, one line each, then how many operators run where."""
        left = [n for n in self.nodes if not n.delegated]
        where = f" ({self.device})" if self.device else ""
        if not self.nodes:
            return "The model has no operations."
        if not left:
            return (
                f"All {self.num_nodes} operations will run on the GPU{where}, "
                f"in {_count(self.num_partitions, 'partition')}."
            )
        unsupported = _reasons(n for n in left if not n.supported)
        kept = _reasons(n for n in left if n.supported)
        lines = []
        if unsupported:
            lines += ["Following operations are not supported by Vulkan delegate:", *unsupported]
        if kept:
            lines += ["Following operations are supported but stay on the CPU:", *kept]
        if len(left) == self.num_nodes:
            lines.append(
                f"No operations will run on the GPU{where}, "
                f"and all {self.num_nodes} operations will run on the CPU."
            )
        else:
            lines.append(
                f"{self.num_delegated} operations will run on the GPU{where}, "
                f"in {_count(self.num_partitions, 'partition')}, "
                f"and the remaining {len(left)} operations will run on the CPU."
            )
        return "\n".join(lines)


def _reasons(left: Iterable[NodeReport]) -> list[str]:
    """`<OP>: <reason>` lines, sorted, each once with how many nodes it stands for."""
    lines = Counter(f"{n.op}: {n.reason}" for n in left)
    return [
        f"{line} ({count} nodes)" if count > 1 else line for line, count in sorted(lines.items())
    ]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
