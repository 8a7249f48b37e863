"""Which operators of a model a device takes, decided as the front doors decide it, without running.

`tflite_vk.Interpreter` runs a model alone where the device takes every operator of every subgraph
that can be asked for. Otherwise LiteRT runs it with the delegate, which takes variables from TFLite's
memory and gives back partitions that do not compile. Needs no Vulkan: a device is its DeviceInfo.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass

from tflite_vk.device_info import DeviceInfo
from tflite_vk.errors import Error, UnsupportedOpError
from tflite_vk.frontend.flatbuffer import Model
from tflite_vk.interpreter.plan import SubgraphPlan, plan_subgraph
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.lowering import Lowered, lower
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
from tflite_vk.passes.fold_shapes import fold_shape_node
from tflite_vk.passes.infer_shapes import infer_shapes
from tflite_vk.passes.inline_composites import inline_composites
from tflite_vk.shape import Shape
from tflite_vk.support_report import SupportReport


@dataclass(frozen=True)
class Partition:
    """Operators that run on the device together.

    Attributes:
        subgraph: index of their subgraph.
        nodes: TFLite's node indices, without those that were computed before running.
        graph: these nodes alone, constants folded.
        lowered: what the device runs.
    """

    subgraph: int
    nodes: tuple[int, ...]
    graph: Graph
    lowered: Lowered


@dataclass(frozen=True)
class Decision:
    """What a device takes of a model.

    Attributes:
        report: every operator, and why the device does not take it.
        partitions: in the report's numbering.
        is_standalone: True where the model needs nothing of LiteRT.
    """

    report: SupportReport
    partitions: tuple[Partition, ...]
    is_standalone: bool


def decide(
    model: Model,
    options: DelegateOptions,
    device: DeviceInfo,
    input_shapes: Mapping[int, Shape] | None = None,
) -> Decision:
    """Decide for a whole model.

    Args:
        model: as read.
        options: limits and exclusions, precision and fusion.
        device: what it would run on.
        input_shapes: shapes of inputs of subgraph 0, by tensor id, other than the file's.

    Raises:
        Error: a subgraph that the device takes does not compile.
    """
    graphs = model.subgraphs
    shapes = [input_shapes if index == 0 else None for index in range(len(graphs))]
    runnable = {0, *(s.subgraph for s in model.signatures)}
    plans = {i: _plan_alone(model, i, shapes[i], options, device) for i in sorted(runnable)}
    taken = {i: plan for i, plan in plans.items() if plan is not None and plan.is_taken}
    lowered = _lower_alone(taken, options, device) if len(taken) == len(plans) else None
    if lowered is not None:
        reports = [taken[i].report if i in taken else SupportReport() for i in range(len(graphs))]
        return Decision(SupportReport.join(reports), lowered, is_standalone=True)
    decisions = [
        _decide_subgraph(graph, i, shapes[i], options, device) for i, graph in enumerate(graphs)
    ]
    return Decision(
        SupportReport.join(report for report, _ in decisions),
        tuple(p for _, partitions in decisions for p in partitions),
        is_standalone=False,
    )


def _lower_alone(
    plans: Mapping[int, SubgraphPlan], options: DelegateOptions, device: DeviceInfo
) -> tuple[Partition, ...] | None:
    """Programs of whole subgraphs; None where a node turns out not to compile."""
    try:
        return tuple(
            Partition(i, _indices(p.graph), p.graph, _lower(p.graph, options, device))
            for i, p in plans.items()
            if p.graph.nodes
        )
    except UnsupportedOpError:
        return None


def _plan_alone(
    model: Model,
    index: int,
    shapes: Mapping[int, Shape] | None,
    options: DelegateOptions,
    device: DeviceInfo,
) -> SubgraphPlan | None:
    """What `tflite_vk.Interpreter` decides; None where it refuses the shapes."""
    graph = model.subgraphs[index]
    inlined = inline_composites(graph, model.subgraphs.__getitem__)
    try:
        inferred = infer_shapes(inlined, registry.infer_shapes, shapes, fold_shape_node)
    except ValueError:
        return None
    return plan_subgraph(graph, inferred, options, device)


def _indices(graph: Graph) -> tuple[int, ...]:
    return tuple(dict.fromkeys(node.index for node in graph.nodes))


def _lower(
    graph: Graph, options: DelegateOptions, device: DeviceInfo, *, host_states: bool = False
) -> Lowered:
    return lower(
        graph,
        device,
        half=options.precision == "fp16",
        fp32_ops=options.fp32_ops,
        fusion=options.fusion,
        host_states=host_states,
    )


def _decide_subgraph(
    graph: Graph,
    index: int,
    shapes: Mapping[int, Shape] | None,
    options: DelegateOptions,
    device: DeviceInfo,
) -> tuple[SupportReport, list[Partition]]:
    """As the delegate does: what does not compile goes back to the CPU, and the rest is regrouped."""
    folded = fold_constants(graph)
    with contextlib.suppress(ValueError):  # shapes that don't fit are each node's own reason
        folded = infer_shapes(folded, registry.infer_shapes, shapes)
    excluded = excluded_by_options(
        graph, options.excluded_ops, options.excluded_nodes if index == 0 else ()
    )
    failed = dict(shared_variable_reasons(graph))

    def unsupported(node: Node, graph: Graph) -> str | None:
        if node.index in failed:
            return failed[node.index]
        reason = written_variable_reason(node, graph)
        return reason or registry.unsupported_reason(node, graph, device.limits)

    while True:
        plan = plan_partitions(
            folded,
            unsupported,
            max_partitions=options.max_delegated_partitions,
            min_nodes=options.min_nodes_per_partition,
            excluded=excluded,
        )
        before = len(failed)
        partitions = _compile(folded, plan, index, options, device, failed)
        if len(failed) == before:
            return SupportReport.from_plan(graph, plan, device.name), partitions


def _compile(
    folded: Graph,
    plan: PartitionPlan,
    subgraph: int,
    options: DelegateOptions,
    device: DeviceInfo,
    failed: dict[int, str],
) -> list[Partition]:
    out: list[Partition] = []
    for nodes in plan.partitions:
        graph = extract(folded, nodes)
        reason = _failure(graph, options, device)
        if reason is None:
            lowered = _lower(graph, options, device, host_states=True)
            out.append(Partition(subgraph, nodes, graph, lowered))
            continue
        alone = {i: _failure(extract(folded, {i}), options, device) for i in nodes}
        blamed = {i: f"It does not compile: {text}" for i, text in alone.items() if text}
        failed.update(blamed or dict.fromkeys(nodes, f"Its partition does not compile: {reason}"))
    return out


def _failure(graph: Graph, options: DelegateOptions, device: DeviceInfo) -> str | None:
    """Why a graph doesn't compile; None where it does."""
    try:
        _lower(graph, options, device, host_states=True)
    except Exception as error:  # a bug in lowering costs nodes, not the model, as in the delegate
        return str(error) if isinstance(error, Error) else f"{type(error).__name__}: {error}"
    return None
