"""Graph to Program: the passes, then each node's own lowering, then the memory plan's input."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from tflite_vk.device_info import DeviceInfo
from tflite_vk.errors import UnsupportedOpError
from tflite_vk.ir.graph import Graph, Node, Tensor
from tflite_vk.ops import registry
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.precision import fp32_outputs, nodes_named
from tflite_vk.ops.repack import is_better_flat, pack_output, unpack_input
from tflite_vk.ops.sizes import Choice, Effort, Size
from tflite_vk.ops.states import HostState, download_state, upload_state
from tflite_vk.passes.fold_constants import fold_constants
from tflite_vk.passes.manager import run_passes
from tflite_vk.program import Program, verify_program
from tflite_vk.shape import num_elements


@dataclass(frozen=True)
class Lowered:
    """A program and how the graph's tensors meet it.

    Attributes:
        graph: the graph after all passes, which the dispatches follow.
        program: what the device runs.
        buffer: tensor id to buffer, for every run-time graph input and output.
        flat: those of them whose buffer holds the host array as it is, without padded rows.
        choices: dispatches that could run in other sizes, where those were asked for.
        states: of the variables that the host keeps, by tensor id.
    """

    graph: Graph
    program: Program
    buffer: dict[int, int]
    flat: frozenset[int]
    choices: tuple[Choice, ...] = ()
    states: Mapping[int, HostState] = field(default_factory=dict)


def lower(
    graph: Graph,
    device: DeviceInfo,
    *,
    half: bool = False,
    fusion: bool = True,
    fp32_ops: Collection[str] = (),
    host_states: bool = False,
    tuned: Mapping[str, Size] | None = None,
    effort: Effort = "off",
) -> Lowered:
    """Compile a graph whose every node is supported.

    Args:
        graph: a verified graph.
        device: the device the program is for.
        half: keep run-time float tensors as float16.
        fusion: make one kernel of several operators.
        fp32_ops: operators that run in float32 all the same, by TFLite's names.
        host_states: the host keeps variables and passes them in and out; else the device does.
        tuned: sizes that tuning found on such a device, by signature.
        effort: how many other sizes to offer.

    Raises:
        UnsupportedOpError: a node the registry declines, which partitioning should have left out, or
            one that needs a larger buffer between its dispatches than the device binds.
    """
    graph = fold_constants(graph)
    for node in graph.nodes:
        if (reason := registry.unsupported_reason(node, graph, device.limits)) is not None:
            raise UnsupportedOpError(f"{node.op} #{node.index}: {reason}", node.index)
    wanted = nodes_named(graph, fp32_ops)
    graph = run_passes(
        graph,
        registry.ends_in_epilogue,
        fusion=fusion,
        is_table=registry.is_table,
        takes_table=registry.takes_table,
        joins=lambda before, node, g: registry.joins(before, node, g, device),
    )
    ctx = LoweringContext(graph, device, tuned=tuned or {}, effort=effort)
    full = fp32_outputs(graph, wanted) if half else frozenset()
    buffers: dict[int, int] = {}
    flat: set[int] = set()
    for tensor_id in dict.fromkeys(graph.inputs):
        tensor = graph.tensors[tensor_id]
        if tensor.is_const or not tensor.num_elements:
            continue
        if is_better_flat(tensor):
            flat.add(tensor_id)
            ctx.half = half and not any(
                n.outputs[0] in full for n in graph.nodes if tensor_id in n.reads
            )
            buffers[tensor_id] = unpack_input(ctx, tensor, ctx.storage(tensor))
            ctx.half = False
        else:
            buffers[tensor_id] = ctx.mark(tensor_id, "input")
    states = _states(graph) if host_states else []
    uploaded: dict[int, int] = {}
    for tensor in states:
        users = [n for n in graph.nodes if tensor.id in (*n.reads, *n.outputs)]
        ctx.half = half and not any(n.outputs[0] in full for n in users)
        uploaded[tensor.id] = upload_state(ctx, tensor)
        ctx.half = False
    for node in graph.nodes:
        if all(num_elements(graph.tensors[t].shape) == 0 for t in node.outputs):
            continue
        operator = registry.find(node, graph)
        assert operator is not None, node.op
        ctx.half = half and node.outputs[0] not in full
        if operator.is_alias(node, graph):
            ctx.half = ctx.half and ctx.stored_as(node.inputs[0]) == "f16"
            ctx.alias(node.outputs[0], node.inputs[0])
        else:
            _lower_node(node, operator, ctx)
    ctx.half = False
    for tensor_id in dict.fromkeys(graph.outputs):
        tensor = graph.tensors[tensor_id]
        if tensor.is_const or not tensor.num_elements or tensor_id in buffers:
            continue
        if is_better_flat(tensor) and ctx.is_temporary(tensor_id):
            flat.add(tensor_id)
            buffers[tensor_id] = pack_output(ctx, tensor)
        else:
            buffers[tensor_id] = ctx.mark(tensor_id, "output")
    kept = {t.id: HostState(uploaded[t.id], download_state(ctx, t)) for t in states}
    all_buffers, dispatches = ctx.finish()
    program = Program(graph.name, all_buffers, dispatches)
    verify_program(program)
    return Lowered(graph, program, buffers, frozenset(flat), tuple(ctx.choices), kept)


def _states(graph: Graph) -> list[Tensor]:
    """The variables that nodes use."""
    return [t for t in graph.live_tensors() if t.is_variable and t.num_elements]


def _lower_node(node: Node, operator: Operator, ctx: LoweringContext) -> None:
    try:
        operator.lower(node, ctx)
    except UnsupportedOpError as error:
        raise UnsupportedOpError(f"{node.op} #{node.index}: {error}", node.index) from None
