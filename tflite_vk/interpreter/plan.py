"""Whether the device takes a whole subgraph, and the report of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tflite_vk.cache.compile_cache import CompileCache
from tflite_vk.cache.plans import PlanRecorder, changed_shapes
from tflite_vk.device_info import DeviceInfo
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops import registry
from tflite_vk.options import DelegateOptions
from tflite_vk.partition import (
    Unsupported,
    excluded_by_options,
    plan_partitions,
    written_variable_reason,
)
from tflite_vk.passes.fold_constants import fold_constants
from tflite_vk.passes.fold_shapes import fold_shape_node
from tflite_vk.passes.infer_shapes import infer_shapes, with_shape
from tflite_vk.shape import Shape
from tflite_vk.support_report import SupportReport

_DOOR = "interpreter"  # infers all shapes anew, so its plans are not those of the delegate


@dataclass(frozen=True)
class SubgraphPlan:
    """A subgraph with known shapes, and what the device takes of it.

    Attributes:
        graph: after constants were folded; what a session compiles if everything is taken.
        report: where each operator would run.
        is_taken: True where the device runs all of it.
    """

    graph: Graph
    report: SupportReport
    is_taken: bool

    def without(self, node: int, reason: str) -> SubgraphPlan:
        """The plan with a node left to the CPU that turned out not to compile."""
        return replace(self, report=self.report.without(node, reason), is_taken=False)


def plan_for_shapes(
    original: Graph,
    inlined: Graph,
    input_shapes: Mapping[int, Shape],
    options: DelegateOptions,
    device: DeviceInfo,
    cache: CompileCache | None = None,
) -> SubgraphPlan:
    """Decide for a subgraph and the shapes of its inputs.

    Args:
        original: as read, which the report is about.
        inlined: the same with composites replaced by what they are made of.
        input_shapes: by tensor id.
        options: what may go to the device.
        device: what has to run it.
        cache: asked first, and told afterwards.

    Raises:
        ValueError: the shapes do not fit an operator; names it.
    """

    def unsupported(node: Node, graph: Graph) -> str | None:
        return registry.unsupported_reason(node, graph, device.limits)

    resized = inlined.with_(
        tensors=[
            with_shape(inlined.tensors[t], shape)
            for t, shape in input_shapes.items()
            if shape != inlined.tensors[t].shape
        ]
    )
    found = None if cache is None else cache.load_plan(resized, _DOOR)
    if found is not None:
        graph = found.with_shapes(resized)
        return plan_subgraph(original, graph, options, device, found.unsupported(unsupported))
    graph = infer_shapes(inlined, registry.infer_shapes, input_shapes, fold_shape_node)
    recorder = PlanRecorder(unsupported)
    plan = plan_subgraph(original, graph, options, device, recorder)
    shapes = None if cache is None else changed_shapes(resized, graph)
    if cache is not None and shapes is not None:
        cache.save_plan(resized, _DOOR, recorder.plan(shapes))
    return plan


def plan_subgraph(
    original: Graph,
    graph: Graph,
    options: DelegateOptions,
    device: DeviceInfo,
    unsupported: Unsupported | None = None,
) -> SubgraphPlan:
    """Decide for a subgraph whose shapes are known.

    Unlike under LiteRT, a constant that had to be computed costs no CPU operator here, even if the
    model returns it: such nodes count to the first partition.

    Args:
        original: as read, which the report is about.
        graph: with shapes, and without the nodes that compute shapes.
        options: what may go to the device.
        device: what has to run it.
        unsupported: why a node can't run there; None asks the registry.
    """
    folded = fold_constants(graph)

    def ask(node: Node, graph: Graph) -> str | None:
        reason = _host_variable_reason(node, graph) or written_variable_reason(node, graph)
        if reason is not None or unsupported is None:
            return reason or registry.unsupported_reason(node, graph, device.limits)
        return unsupported(node, graph)

    excluded = excluded_by_options(original, options.excluded_ops, options.excluded_nodes)
    plan = plan_partitions(
        folded,
        ask,
        max_partitions=options.max_delegated_partitions,
        min_nodes=options.min_nodes_per_partition,
        excluded=excluded,
    )
    left = plan.reasons.keys() & ({n.index for n in folded.nodes} | excluded.keys())
    if not left:
        indices = sorted({i for sources in folded.folded.values() for i in sources})
        plan = replace(plan, reasons={}, folded={i: plan.folded.get(i, 0) for i in indices})
    report = SupportReport.from_plan(original, plan, device.name)
    return SubgraphPlan(folded, report, is_taken=not left)


def _host_variable_reason(node: Node, graph: Graph) -> str | None:
    """Reason where a variable is an input of the model: TFLite leaves its new content in the input."""
    for t in node.reads:
        if graph.tensors[t].is_variable and t in graph.inputs:
            name = graph.tensors[t].name
            return f"variable {t} {name!r} is an input of the model (supported: under LiteRT)"
    return None
