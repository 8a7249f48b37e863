"""Which nodes go to the device and in which groups: pure functions from a graph to a plan.

TFLite decides the final grouping itself, from the set of nodes a delegate asks for. This module
computes the same grouping beforehand, so that limits on partitions can be applied, and so that a
report is right before anything runs.

Source: TFLite's partitioner (tflite/graph_info.h), which documents its rule with examples.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tflite_vk.dtypes import DType
from tflite_vk.ir.graph import Graph, Node

Unsupported = Callable[[Node, Graph], str | None]
"""Why a node can't run on the device, None where it can."""

_SIDE_EFFECT_OPS = frozenset({"IF", "WHILE", "CALL_ONCE"})

_CELLS = ("LSTM", "RNN", "SVDF")
"""What the names of operators end in that write variables among their inputs."""


@dataclass(frozen=True)
class PartitionPlan:
    """Where every node of a graph runs.

    Attributes:
        partitions: node indices of each group for the device, groups and nodes in execution order.
        reasons: for each node left on the CPU, why.
        folded: for each node computed before running, the partition it counts to: that of its
            first reader. TFLite is asked to replace these nodes too.
        unsupported: those of `reasons` that the device can't run; the others it could.
    """

    partitions: tuple[tuple[int, ...], ...] = ()
    reasons: Mapping[int, str] = field(default_factory=dict)
    folded: Mapping[int, int] = field(default_factory=dict)
    unsupported: frozenset[int] = frozenset()

    @property
    def delegated(self) -> frozenset[int]:
        """Every node that TFLite is asked to replace, folded ones included."""
        return frozenset(self.folded).union(*self.partitions)

    def partition_of(self, index: int) -> int | None:
        """The partition a node counts to, None for a node on the CPU."""
        for number, nodes in enumerate(self.partitions):
            if index in nodes:
                return number
        return self.folded.get(index)


def excluded_by_options(
    graph: Graph, excluded_ops: Collection[str] = (), excluded_nodes: Collection[int] = ()
) -> dict[int, str]:
    """The nodes that options force to the CPU, with the reason.

    Args:
        graph: as read, so that nodes which folding removes can be excluded too.
        excluded_ops: operators by name; builtin names in any case.
        excluded_nodes: node indices.
    """
    builtin = {name.upper() for name in excluded_ops}
    out: dict[int, str] = {}
    for node in graph.nodes:
        if node.index in excluded_nodes:
            out[node.index] = "Excluded by option excluded_nodes."
        elif node.op in (excluded_ops if node.is_custom else builtin):
            out[node.index] = "Excluded by option excluded_ops."
    return out


def shared_variable_reasons(graph: Graph) -> Mapping[int, str]:
    """Reasons for every node of a graph where replacing any node could put a variable out of order.

    TFLite groups nodes by what they give to each other. It does not see that one changes a variable
    that another reads, so the two may change places, on the CPU too.
    """
    users: dict[int, list[tuple[Node, bool]]] = {}
    for node in graph.nodes:
        changes = node.is_custom or node.op.endswith(_CELLS)
        for t, is_change in (
            *((t, changes) for t in node.reads),
            *((t, True) for t in node.outputs),
        ):
            if graph.tensors[t].is_variable:
                users.setdefault(t, []).append((node, is_change))
    for t, found in users.items():
        if len(found) > 1 and any(is_change for _, is_change in found):
            names = " and ".join(f"{node.op} #{node.index}" for node, _ in found[:2])
            reason = (
                f"Variable {t} {graph.tensors[t].name!r} is used by {names}; a delegate might change "
                "their order."
            )
            return {node.index: reason for node in graph.nodes}
    return {}


def written_variable_reason(node: Node, graph: Graph) -> str | None:
    """Reason where a node's output is a variable."""
    for t in node.outputs:
        if graph.tensors[t].is_variable:
            name = graph.tensors[t].name
            return f"output {t} {name!r} is a variable (supported: variables among the inputs)"
    return None


def plan_partitions(
    graph: Graph,
    unsupported: Unsupported,
    *,
    max_partitions: int = 0,
    min_nodes: int = 1,
    excluded: Mapping[int, str] | None = None,
) -> PartitionPlan:
    """Decide for every node of a graph, folded ones included, where it runs.

    Args:
        graph: after constants were folded, before anything was fused.
        unsupported: asked once for each node that is not excluded; an exception counts as a
            reason, so that one odd node never sinks a model.
        max_partitions: keep only that many partitions, those with most nodes; 0 for no limit.
        min_nodes: leave smaller partitions on the CPU.
        excluded: nodes that stay on the CPU whatever their support, with the reason.
    """
    excluded = excluded or {}
    reasons: dict[int, str] = {}
    for node in graph.nodes:
        reason = None if node.index in excluded else _ask(unsupported, node, graph)
        if reason is not None:
            reasons.setdefault(node.index, reason)
    cannot = frozenset(reasons)
    reasons.update({n.index: excluded[n.index] for n in graph.nodes if n.index in excluded})
    taken = {n.index for n in graph.nodes} - reasons.keys()
    while True:
        folded = _folded_for_device(graph, taken, excluded)
        partitions = [
            tuple(i for i in group if i in taken)
            for group in independent_subsets(_steps(graph), taken | folded)
        ]
        partitions = [p for p in partitions if p]
        dropped = _too_small(partitions, min_nodes) or _beyond(partitions, max_partitions)
        if not dropped:
            break
        # Fewer nodes may group differently, so the grouping is computed anew until it holds.
        reasons.update(dropped)
        taken -= dropped.keys()
    reasons.update(_folded_reasons(graph, taken, folded, excluded))
    counted = _folded_partitions(graph, partitions, folded)
    return PartitionPlan(tuple(partitions), reasons, counted, cannot)


@dataclass(frozen=True)
class _Step:
    """What the partitioner needs of a node."""

    index: int
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    has_side_effect: bool = False


def independent_subsets(
    steps: Sequence[_Step], delegated: Collection[int]
) -> list[tuple[int, ...]]:
    """Groups of delegated nodes as TFLite makes them, in execution order.

    Groups for the device and for the CPU take turns. A turn takes every node of its kind whose
    inputs are there; the first node that is ready when a turn starts decides whose turn it is.
    Nodes with side effects keep their order.
    """
    missing = {t for s in steps for t in s.writes}
    waiting = list(steps)
    groups: list[tuple[int, ...]] = []
    while waiting:
        kind: bool | None = None
        group: list[int] = []
        progress = True
        while progress:
            progress = False
            left: list[_Step] = []
            side_effect_waits = False
            for step in waiting:
                blocked = step.has_side_effect and side_effect_waits
                ready = not blocked and missing.isdisjoint(step.reads)
                is_delegated = step.index in delegated
                if ready and kind in (None, is_delegated):
                    kind = is_delegated
                    group.append(step.index)
                    missing.difference_update(step.writes)
                    progress = True
                else:
                    left.append(step)
                    side_effect_waits = side_effect_waits or step.has_side_effect
            waiting = left
        if not group:
            # A cycle, which no TFLite graph has: leave what is left to the CPU.
            break
        if kind:
            groups.append(tuple(group))
    return groups


def _steps(graph: Graph) -> list[_Step]:
    """The nodes as TFLite still has them: folded ones stand in their old places."""
    by_sources = {sources: tensor for tensor, sources in graph.folded.items()}
    old: dict[int, _Step] = {}
    for tensor, sources in graph.folded.items():
        for index in sources[:-1]:
            old.setdefault(index, _Step(index, (), ()))
        before = by_sources.get(sources[:-1])
        reads = () if before is None else (before,)
        writes = old[sources[-1]].writes if sources[-1] in old else ()
        old[sources[-1]] = _Step(sources[-1], reads, (*writes, tensor))
    pending = sorted(old)
    out: list[_Step] = []
    # What was put in a composite's place is one node for TFLite.
    for index, group in itertools.groupby(graph.nodes, lambda n: n.index):
        while pending and pending[0] < index:
            out.append(old[pending.pop(0)])
        out.append(_step(index, list(group), graph))
    out.extend(old[index] for index in pending)
    return out


def _step(index: int, nodes: list[Node], graph: Graph) -> _Step:
    writes = tuple(t for n in nodes for t in n.outputs)
    reads = tuple(t for n in nodes for t in n.reads if t not in writes)
    return _Step(index, reads, writes, any(_has_side_effect(n, graph) for n in nodes))


def _has_side_effect(node: Node, graph: Graph) -> bool:
    if node.op in _SIDE_EFFECT_OPS:
        return True
    touched = (*node.reads, *node.outputs)
    return any(graph.tensors[t].dtype is DType.RESOURCE for t in touched)


def _ask(unsupported: Unsupported, node: Node, graph: Graph) -> str | None:
    try:
        return unsupported(node, graph)
    except Exception as error:  # any bug in a check costs one node, not the model
        return f"The check for support failed: {type(error).__name__}: {error}"


def _too_small(partitions: Sequence[tuple[int, ...]], min_nodes: int) -> dict[int, str]:
    return {
        index: f"Its partition has {len(nodes)} node(s); option min_nodes_per_partition is {min_nodes}."
        for nodes in partitions
        if len(nodes) < min_nodes
        for index in nodes
    }


def _beyond(partitions: Sequence[tuple[int, ...]], limit: int) -> dict[int, str]:
    if not limit or len(partitions) <= limit:
        return {}
    by_size = sorted(partitions, key=len, reverse=True)
    return {
        index: f"Not among the largest partitions; option max_delegated_partitions is {limit}."
        for nodes in by_size[limit:]
        for index in nodes
    }


def _readers(graph: Graph) -> dict[int, list[Node | None]]:
    """For each folded tensor what reads it, in order; None stands for the caller (an output)."""
    out: dict[int, list[Node | None]] = {t: [] for t in graph.folded}
    for node in graph.nodes:
        for t in dict.fromkeys(node.reads):
            if t in out:
                out[t].append(node)
    for t in graph.outputs:
        if t in out:
            out[t].append(None)
    return out


def _readers_of_folded(graph: Graph) -> dict[int, list[Node | None]]:
    """For each folded node what reads its value, directly or through other folded nodes."""
    readers = _readers(graph)
    out: dict[int, list[Node | None]] = {}
    for tensor, sources in graph.folded.items():
        for index in sources:
            out.setdefault(index, []).extend(readers[tensor])
    return out


def _folded_for_device(graph: Graph, taken: Collection[int], excluded: Collection[int]) -> set[int]:
    """Folded nodes whose value the device alone needs."""
    return {
        index
        for index, readers in _readers_of_folded(graph).items()
        if index not in excluded
        and readers
        and all(r is not None and r.index in taken for r in readers)
    }


def _folded_reasons(
    graph: Graph, taken: Collection[int], folded: Collection[int], excluded: Mapping[int, str]
) -> dict[int, str]:
    out: dict[int, str] = {}
    for index, readers in _readers_of_folded(graph).items():
        if index in folded:
            continue
        elsewhere = [r for r in readers if r is None or r.index not in taken]
        if index in excluded:
            out[index] = excluded[index]
        elif not elsewhere:
            out[index] = "A constant that no node reads."
        elif elsewhere[0] is None:
            out[index] = "A constant, also an output of the model."
        else:
            also = "also " if len(elsewhere) < len(readers) else ""
            out[index] = f"A constant, {also}read by CPU node {elsewhere[0].index}."
    return out


def _folded_partitions(
    graph: Graph, partitions: Sequence[tuple[int, ...]], folded: Collection[int]
) -> dict[int, int]:
    number = {index: i for i, nodes in enumerate(partitions) for index in nodes}
    readers = _readers_of_folded(graph)
    return {
        index: min(number[r.index] for r in readers[index] if r is not None)
        for index in sorted(folded)
    }


def extract(
    graph: Graph,
    nodes: Collection[int],
    inputs: Sequence[int] | None = None,
    outputs: Sequence[int] | None = None,
) -> Graph:
    """The graph of some nodes alone.

    Args:
        graph: where the nodes are.
        nodes: indices of the nodes to keep, in any order.
        inputs: order of the inputs; ids that the nodes don't read at run time are left out, ids
            they read that are missing come last. None orders by id.
        outputs: order of the outputs, needed outside or not; ids that the nodes don't write are
            left out, ids needed outside that are missing come last. None orders by id.

    Returns:
        A graph whose inputs are the run-time tensors read from outside, and whose outputs are
        the tensors that other nodes read or the graph returns. Constants and variables come along.
    """
    wanted = set(nodes)
    kept = tuple(n for n in graph.nodes if n.index in wanted)
    written = {t for n in kept for t in n.outputs}
    read = {t for n in kept for t in n.reads}
    outside = {t for n in graph.nodes if n.index not in wanted for t in n.reads}
    needed = written & (outside | set(graph.outputs) | set(outputs or ()))
    from_outside = {
        t for t in read - written if not (graph.tensors[t].is_const or graph.tensors[t].is_variable)
    }
    used = read | written
    return replace(
        graph,
        tensors={i: t for i, t in graph.tensors.items() if i in used},
        nodes=kept,
        inputs=_ordered(from_outside, inputs),
        outputs=_ordered(needed, outputs),
        folded={t: sources for t, sources in graph.folded.items() if t in used},
    )


def _ordered(needed: Collection[int], order: Sequence[int] | None) -> tuple[int, ...]:
    first = [t for t in dict.fromkeys(order or ()) if t in needed]
    return (*first, *sorted(set(needed) - set(first)))
