"""Whether the device takes a whole subgraph, and the report of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tflite_vk.device_info import DeviceInfo
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops import registry
from tflite_vk.options import DelegateOptions
from tflite_vk.partition import excluded_by_options, plan_partitions
from tflite_vk.passes.fold_constants import fold_constants
from tflite_vk.support_report import SupportReport


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


def plan_subgraph(
    original: Graph, graph: Graph, options: DelegateOptions, device: DeviceInfo
) -> SubgraphPlan:
    """Decide for a subgraph whose shapes are known.

    Unlike under LiteRT, a constant that had to be computed costs no CPU operator here, even if the
    model returns it: such nodes count to the first partition.

    Args:
        original: as read, which the report is about.
        graph: with shapes, and without the nodes that compute shapes.
        options: what may go to the device.
        device: what has to run it.
    """
    folded = fold_constants(graph)

    def unsupported(node: Node, graph: Graph) -> str | None:
        return registry.unsupported_reason(node, graph, device.limits)

    excluded = excluded_by_options(original, options.excluded_ops, options.excluded_nodes)
    plan = plan_partitions(
        folded,
        unsupported,
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
