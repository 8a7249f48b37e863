"""One subgraph during a delegate's Prepare: read it, plan it, compile it, have nodes replaced.

Every partition is compiled before TFLite is asked to replace anything. Once a node is replaced a
failure takes the whole interpreter down, so a partition that will not compile goes back to the CPU
while it still can.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from tflite_vk import tflite_abi as abi
from tflite_vk.cache.compile_cache import CompileCache
from tflite_vk.cache.plans import PlanRecorder
from tflite_vk.delegate.kernel import Compile, Compiled, Kernel
from tflite_vk.errors import DeviceError, Error
from tflite_vk.frontend.context import (
    ContextSubgraph,
    preview_partitions,
    read_params,
    read_subgraph,
)
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops import registry
from tflite_vk.options import DelegateOptions
from tflite_vk.partition import (
    PartitionPlan,
    excluded_by_options,
    extract,
    plan_partitions,
    shared_variable_reasons,
    written_variable_reason,
)
from tflite_vk.passes.fold_constants import fold_constants
from tflite_vk.passes.infer_shapes import InferShapes, infer_shapes
from tflite_vk.shape import Shape

logger = logging.getLogger("tflite_vk")

_DOOR = "delegate"  # keeps the shapes it is given, so its plans are not those of the interpreter

Unsupported = Callable[[Node, Graph], str | None]


@dataclass(frozen=True)
class Target:
    """Where partitions run.

    Attributes:
        compile: makes a graph ready; raises an Error where it can't.
        unsupported: why a node can't run, None where it can.
        name: of the device, for reports.
        cache: what earlier processes found out about graphs.
    """

    compile: Compile
    unsupported: Unsupported
    name: str = ""
    cache: CompileCache | None = None


@dataclass(frozen=True)
class _Group:
    """One kernel to be: the nodes TFLite puts into it, and their graph made ready."""

    nodes: tuple[int, ...]
    graph: Graph
    compiled: Compiled | None


@dataclass
class SubgraphPlan:
    """A subgraph read and planned.

    Attributes:
        original: the graph as read.
        folded: the same with constants computed.
        plan: where each node runs.
    """

    original: Graph
    folded: Graph
    plan: PartitionPlan
    _groups: dict[tuple[int, ...], _Group] = field(default_factory=dict)

    @classmethod
    def make(
        cls,
        context: int,
        target: Target,
        options: DelegateOptions,
        index: int,
        *,
        is_again: bool = False,
    ) -> SubgraphPlan:
        """Read and plan the subgraph behind a context, and compile its partitions.

        Args:
            context: TfLiteContext, inside the delegate's Prepare.
            target: where partitions run.
            options: limits and exclusions.
            index: of the subgraph; excluded nodes are those of subgraph 0.
            is_again: True where TFLite shows the subgraph after a resize. Its inputs then have
                their new shapes, and everything after them the old ones.

        Raises:
            ModelError: the subgraph can't be read at all.
        """
        read = read_subgraph(context, "main" if index == 0 else f"subgraph {index}")
        folded = _fold(read.graph)
        folded = _infer(folded, registry.infer_shapes if is_again else _missing_shapes)
        cache = target.cache
        found = None if cache is None else cache.load_plan(folded, _DOOR)
        if found is not None:
            target = replace(target, unsupported=found.unsupported(target.unsupported))
            return _Planner(context, target, options, read, folded, index).make()
        recorder = PlanRecorder(target.unsupported)
        target = replace(target, unsupported=recorder)
        plan = _Planner(context, target, options, read, folded, index).make()
        if cache is not None:
            cache.save_plan(folded, _DOOR, recorder.plan())
        return plan

    @property
    def nodes_to_replace(self) -> list[int]:
        """Every node that TFLite shall replace, in the plan's order."""
        delegated = self.plan.delegated
        return [n.index for n in self.original.nodes if n.index in delegated]

    @property
    def has_custom(self) -> bool:
        """True where a custom operator, which TFLite may have no kernel for, is replaced."""
        delegated = self.plan.delegated
        return any(n.is_custom for n in self.original.nodes if n.index in delegated)

    def make_kernel(self, params: abi.DelegateParams, target: Target) -> Kernel:
        """The kernel for nodes that TFLite has grouped."""
        nodes, inputs, outputs = read_params(params)
        group = self._groups.pop(nodes, None)
        if group is None:
            # Not the grouping that TFLite had announced; what it does counts.
            group = _Group(nodes, extract(self.folded, nodes, inputs, outputs), None)
        return Kernel(group.graph, target.compile, group.compiled)

    def release(self) -> None:
        """Free what no kernel has taken over, and let go of the model's memory."""
        for group in self._groups.values():
            if group.compiled is not None:
                group.compiled.close()
        self._groups.clear()


class _Planner:
    def __init__(
        self,
        context: int,
        target: Target,
        options: DelegateOptions,
        read: ContextSubgraph,
        folded: Graph,
        index: int,
    ) -> None:
        self._context = context
        self._target = target
        self._options = options
        self._read = read
        self._folded = folded
        self._failed: dict[int, str] = {}
        self._shared = shared_variable_reasons(read.graph)
        self._excluded = excluded_by_options(
            read.graph, options.excluded_ops, options.excluded_nodes if index == 0 else ()
        )

    def make(self) -> SubgraphPlan:
        groups: dict[tuple[int, ...], _Group] = {}
        while True:
            plan = plan_partitions(
                self._folded,
                self._unsupported,
                max_partitions=self._options.max_delegated_partitions,
                min_nodes=self._options.min_nodes_per_partition,
                excluded=self._excluded,
            )
            previous, groups = groups, {}
            failure: dict[int, str] = {}
            for nodes, inputs, outputs in self._preview(plan):
                graph = extract(self._folded, nodes, inputs, outputs)
                group = previous.pop(nodes, None)
                if group is None or group.graph.outputs != graph.outputs:
                    compiled, error = self._compile(graph)
                    failure.update(self._blame(graph, error))
                    group = _Group(nodes, graph, compiled)
                groups[nodes] = group
            result = SubgraphPlan(self._read.graph, self._folded, _actual(plan, groups), groups)
            for group in previous.values():
                if group.compiled is not None:
                    group.compiled.close()
            if not failure:
                return result
            self._failed.update(failure)

    def _unsupported(self, node: Node, graph: Graph) -> str | None:
        for reasons in (self._shared, self._failed, self._read.unread):
            if node.index in reasons:
                return reasons[node.index]
        return written_variable_reason(node, graph) or self._target.unsupported(node, graph)

    def _preview(
        self, plan: PartitionPlan
    ) -> list[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]:
        delegated = plan.delegated
        if not delegated:
            return []
        ordered = [n.index for n in self._read.graph.nodes if n.index in delegated]
        # With nodes left over TFLite lists the CPU's groups too.
        return [p for p in preview_partitions(self._context, ordered) if p[0][0] in delegated]

    def _compile(self, graph: Graph) -> tuple[Compiled | None, Exception | None]:
        if not graph.nodes:
            return None, None
        try:
            return self._target.compile(graph), None
        except Exception as error:  # a bug in lowering costs nodes, not the model
            logger.debug("partition does not compile", exc_info=True)
            return None, error

    def _blame(self, graph: Graph, error: Exception | None) -> dict[int, str]:
        """Nodes to leave to the CPU because their partition does not compile, with the reason.

        Those that do not compile alone either; where there are none, or where the device itself
        failed and would fail again, the whole partition.
        """
        if error is None:
            return {}
        alone: dict[int, str] = {}
        for node in graph.nodes if not isinstance(error, DeviceError) else ():
            compiled, own = self._compile(extract(graph, (node.index,)))
            if compiled is not None:
                compiled.close()
            if own is not None:
                alone[node.index] = f"It does not compile: {_text(own)}"
        reason = f"Its partition does not compile: {_text(error)}"
        return alone or {n.index: reason for n in graph.nodes}


def _text(error: Exception) -> str:
    return str(error) if isinstance(error, Error) else f"{type(error).__name__}: {error}"


def _fold(graph: Graph) -> Graph:
    try:
        return fold_constants(graph)
    except Exception:  # an odd constant costs the folding, not the model
        logger.debug("constants are not folded", exc_info=True)
        return graph


def _missing_shapes(node: Node, graph: Graph) -> Sequence[Shape] | None:
    """Shapes where the converter wrote none; any shape that is written counts."""
    written = [graph.tensors[t].shape for t in node.outputs]
    return written if all(written) else registry.infer_shapes(node, graph)


def _infer(graph: Graph, infer: InferShapes) -> Graph:
    try:
        return infer_shapes(graph, infer)
    except Exception:  # shapes that don't fit are each node's own reason later
        logger.debug("shapes are not inferred", exc_info=True)
        return graph


def _actual(plan: PartitionPlan, groups: dict[tuple[int, ...], _Group]) -> PartitionPlan:
    """The plan with TFLite's groups, which differ from ours where clustering is switched off."""
    partitions = tuple(
        tuple(n.index for n in group.graph.nodes) for group in groups.values() if group.graph.nodes
    )
    if partitions == plan.partitions:
        return plan
    number = {index: i for i, nodes in enumerate(partitions) for index in nodes}
    old = {i: nodes[0] for i, nodes in enumerate(plan.partitions)}
    counted = {index: number.get(old[i], 0) for index, i in plan.folded.items()}
    return replace(plan, partitions=partitions, folded=counted)
