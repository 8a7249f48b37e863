"""What a model becomes on a device: operators taken, partitions, dispatches, pipelines, memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from tflite_vk.analysis.decision import Decision, Partition, decide
from tflite_vk.device_info import DeviceInfo
from tflite_vk.frontend.flatbuffer import Model
from tflite_vk.ir.graph import Graph, Node, Tensor
from tflite_vk.memory import plan_memory
from tflite_vk.options import DelegateOptions
from tflite_vk.program import BufferKind, Kernel, MemoryPlan, Program

WORD_BYTES = 4


@dataclass(frozen=True)
class MemoryUse:
    """Device memory of programs, in bytes.

    Attributes:
        constants: weights as the kernels want them.
        inputs: what the host writes before each run.
        outputs: what it reads behind each run.
        states: variables.
        temporaries: intermediate values, were each to have memory of its own.
        shared: what they take in allocations that they share (Kompute).
        arena: what they take in one arena (the Vulkan dispatcher).
        lower_bound: the most that is alive at once; no plan can do with less.
    """

    constants: int = 0
    inputs: int = 0
    outputs: int = 0
    states: int = 0
    temporaries: int = 0
    shared: int = 0
    arena: int = 0
    lower_bound: int = 0

    @classmethod
    def of(cls, program: Program, plan: MemoryPlan) -> MemoryUse:
        """The memory of one program."""
        kinds: Counter[BufferKind] = Counter()
        for buffer in program.buffers:
            kinds[buffer.kind] += WORD_BYTES * buffer.words
        own = {plan.slot[b.id] for b in program.buffers if b.kind != "temporary"}
        shared = sum(words for slot, words in enumerate(plan.slot_words) if slot not in own)
        return cls(
            constants=kinds["constant"],
            inputs=kinds["input"],
            outputs=kinds["output"],
            states=kinds["state"],
            temporaries=kinds["temporary"],
            shared=WORD_BYTES * shared,
            arena=WORD_BYTES * plan.arena_words,
            lower_bound=WORD_BYTES * plan.lower_bound_words,
        )

    @classmethod
    def total(cls, uses: Iterable[MemoryUse]) -> MemoryUse:
        """The sum of several programs."""
        sums: Counter[str] = Counter()
        for use in uses:
            sums.update(asdict(use))
        return cls(**sums)


@dataclass(frozen=True)
class FusedGroup:
    """Operators that became one dispatch.

    Attributes:
        subgraph: index of their subgraph.
        nodes: TFLite's node indices.
        ops: operator names in order.
    """

    subgraph: int
    nodes: tuple[int, ...]
    ops: tuple[str, ...]


@dataclass(frozen=True)
class InspectedPartition:
    """One partition compiled.

    Attributes:
        index: number in the report.
        subgraph: index of its subgraph.
        nodes: TFLite's node indices.
        ops: operator name to how many.
        fused: groups of operators that share a dispatch.
        num_dispatches: kernels launched at each run.
        num_pipelines: distinct pipelines among them.
        flops: operations of one run.
        memory: what its program takes.
    """

    index: int
    subgraph: int
    nodes: tuple[int, ...]
    ops: dict[str, int]
    fused: tuple[FusedGroup, ...]
    num_dispatches: int
    num_pipelines: int
    flops: int
    memory: MemoryUse


@dataclass(frozen=True)
class Inspection:
    """A model on a device.

    Attributes:
        name: of the model.
        device: what it was compiled for.
        decision: what is taken, with the graphs and programs themselves.
        inputs: description of each input of subgraph 0.
        outputs: of each output.
        partitions: in the report's numbering.
        pipelines: shader name to the number of distinct pipelines of it, over all partitions.
        memory: of all partitions.
    """

    name: str
    device: DeviceInfo
    decision: Decision
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    partitions: tuple[InspectedPartition, ...]
    pipelines: dict[str, int]
    memory: MemoryUse

    @property
    def num_dispatches(self) -> int:
        """Kernels launched at each run."""
        return sum(p.num_dispatches for p in self.partitions)

    @property
    def num_pipelines(self) -> int:
        """Distinct pipelines, which decide how long the first start takes."""
        return sum(self.pipelines.values())

    @property
    def fused(self) -> list[FusedGroup]:
        """Groups of operators that share a dispatch."""
        return [group for p in self.partitions for group in p.fused]

    @property
    def flops(self) -> int:
        """Operations of one run on the device."""
        return sum(p.flops for p in self.partitions)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "model": self.name,
            "device": self.device.name,
            "inputs": list(self.inputs),
            "outputs": list(self.outputs),
            "report": self.decision.report.to_dict(),
            "is_standalone": self.decision.is_standalone,
            "num_fused_groups": len(self.fused),
            "num_dispatches": self.num_dispatches,
            "num_pipelines": self.num_pipelines,
            "pipelines": self.pipelines,
            "flops": self.flops,
            "memory_bytes": asdict(self.memory),
            "partitions": [asdict(p) for p in self.partitions],
        }


def inspect_model(
    model: Model, name: str, options: DelegateOptions, device: DeviceInfo
) -> Inspection:
    """Compile a model for a device that need not be there.

    Args:
        model: as read.
        name: for people.
        options: limits and exclusions, precision and fusion.
        device: one of `devices()`, or `NULL_DEVICE`.

    Raises:
        Error: a subgraph that the device takes does not compile.
    """
    decision = decide(model, options, device)
    main = model.subgraphs[0]
    kernels: dict[Kernel, None] = {}
    for partition in decision.partitions:
        kernels.update(dict.fromkeys(partition.lowered.program.kernels()))
    partitions = tuple(_inspect(p, i) for i, p in enumerate(decision.partitions))
    return Inspection(
        name=name,
        device=device,
        decision=decision,
        inputs=tuple(_describe(main.tensors[t]) for t in main.inputs),
        outputs=tuple(_describe(main.tensors[t]) for t in main.outputs),
        partitions=partitions,
        pipelines=dict(sorted(Counter(k.shader for k in kernels).items())),
        memory=MemoryUse.total(p.memory for p in partitions),
    )


def fused_groups(graph: Graph, subgraph: int) -> tuple[FusedGroup, ...]:
    """The nodes of a graph after all passes that stand for several of TFLite's."""
    return tuple(
        FusedGroup(subgraph, node.origins, _ops(node))
        for node in graph.nodes
        if len(node.origins) > 1
    )


def _ops(node: Node) -> tuple[str, ...]:
    """The operator and its fused ones; a chain without a producer has no operator of its own."""
    return node.ops[1:] if node.op == "ELEMENTWISE" else node.ops


def _inspect(partition: Partition, index: int) -> InspectedPartition:
    program = partition.lowered.program
    return InspectedPartition(
        index=index,
        subgraph=partition.subgraph,
        nodes=partition.nodes,
        ops=dict(sorted(Counter(node.op for node in partition.graph.nodes).items())),
        fused=fused_groups(partition.lowered.graph, partition.subgraph),
        num_dispatches=len(program.dispatches),
        num_pipelines=len(program.kernels()),
        flops=sum(d.flops for d in program.dispatches),
        memory=MemoryUse.of(program, plan_memory(program)),
    )


def _describe(tensor: Tensor) -> str:
    shape = ",".join(map(str, tensor.shape_signature or tensor.shape))
    return f"{tensor.name or '(unnamed)'} {tensor.dtype.name}[{shape}]"
