"""`tflite-vk inspect`: what a model becomes, and why the rest of it does not run on the GPU."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tflite_vk.analysis.inspection import Inspection, MemoryUse, inspect_model
from tflite_vk.cli.arguments import (
    add_device_arguments,
    add_output_arguments,
    delegate_options,
    describe_chosen,
)
from tflite_vk.cli.output import count, flops, print_facts, print_json, print_table, size
from tflite_vk.frontend.flatbuffer import load_model
from tflite_vk.ir.printer import format_graph
from tflite_vk.memory import plan_memory
from tflite_vk.program_printer import format_program
from tflite_vk.runtime.null import NULL_DEVICE

if TYPE_CHECKING:
    from tflite_vk.cli.arguments import Subparsers


def add_parser(commands: Subparsers) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "inspect",
        help="operators, partitions, fused groups, memory, and why not",
        description="Compiles a model without running it. Needs no GPU: --device null, or no "
        "device at all, compiles for a device with the least limits that Vulkan promises.",
    )
    parser.add_argument("model", type=Path, metavar="MODEL")
    add_device_arguments(parser)
    add_output_arguments(parser)
    parser.set_defaults(execute=execute)


def execute(args: argparse.Namespace) -> int:
    """Run the command."""
    options = delegate_options(args)
    model = load_model(args.model)
    device = describe_chosen(args, options)
    found = inspect_model(model, args.model.name, options, device)
    if args.json:
        data: dict[str, Any] = found.to_dict()
        if args.verbose:
            data["graphs"], data["programs"] = _texts(found)
        print_json(data)
        return 0
    _print_summary(found, is_null=device is NULL_DEVICE)
    _print_operators(found)
    _print_partitions(found)
    _print_fused(found)
    left = [n for n in found.decision.report.nodes if not n.delegated]
    if left:
        print()
        print(found.decision.report)
    if args.verbose:
        for text in (text for pair in zip(*_texts(found), strict=True) for text in pair):
            print()
            print(text)
    return 0


def _texts(found: Inspection) -> tuple[list[str], list[str]]:
    """Graph and program of each partition as text."""
    lowered = [p.lowered for p in found.decision.partitions]
    programs = [format_program(x.program, plan_memory(x.program)) for x in lowered]
    return [format_graph(x.graph) for x in lowered], programs


def operators_taken(found: Inspection) -> str:
    """How much of the model runs on the GPU, in words."""
    report = found.decision.report
    if not report.num_nodes:
        return "the model has none"
    if not report.num_delegated:
        return f"none of {report.num_nodes} on the GPU: nothing is delegated"
    partitions = count(report.num_partitions, "partition")
    return f"{report.num_delegated} of {report.num_nodes} on the GPU, in {partitions}"


def launches(found: Inspection) -> str:
    """What a run launches, in words."""
    if not found.num_dispatches:
        return ""
    return (
        f"{count(found.num_dispatches, 'dispatch', 'dispatches')}"
        f" of {count(found.num_pipelines, 'pipeline')},"
        f" {count(len(found.fused), 'fused group')}"
    )


def _print_summary(found: Inspection, *, is_null: bool) -> None:
    needs = "nothing" if found.decision.is_standalone else "LiteRT's CPU kernels"
    device = "null, with the least limits of Vulkan" if is_null else found.device.name
    print_facts(
        [
            ("model", found.name),
            ("inputs", "; ".join(found.inputs)),
            ("outputs", "; ".join(found.outputs)),
            ("device", device),
            ("operators", operators_taken(found)),
            ("also needs", needs),
            ("launches", launches(found)),
            ("computes", flops(found.flops) if found.flops else ""),
            ("memory", _memory(found.memory) if found.num_dispatches else ""),
        ]
    )


def _memory(use: MemoryUse) -> str:
    ends = size(use.inputs + use.outputs)
    states = f", variables {size(use.states)}" if use.states else ""
    return (
        f"constants {size(use.constants)}, inputs and outputs {ends}{states}, intermediate "
        f"{size(use.temporaries)} in an arena of {size(use.arena)} (at least "
        f"{size(use.lower_bound)}; {size(use.shared)} under Kompute)"
    )


def _print_operators(found: Inspection) -> None:
    nodes = found.decision.report.nodes
    everything = Counter(n.op for n in nodes)
    taken = Counter(n.op for n in nodes if n.delegated)
    print()
    print_table(
        ("operator", "in the model", "on the GPU"),
        [(op, str(everything[op]), str(taken[op])) for op in sorted(everything)],
        "lrr",
    )


def _print_partitions(found: Inspection) -> None:
    if not found.partitions:
        return
    print()
    columns = (
        "partition", "subgraph", "operators", "dispatches", "pipelines", "fused", "constants",
        "arena", "at least",
    )  # fmt: skip
    rows = [
        (
            str(p.index),
            str(p.subgraph),
            str(len(p.nodes)),
            str(p.num_dispatches),
            str(p.num_pipelines),
            str(len(p.fused)),
            size(p.memory.constants),
            size(p.memory.arena),
            size(p.memory.lower_bound),
        )
        for p in found.partitions
    ]
    print_table(columns, rows, "rrrrrrrrr")
    print()
    pipelines = sorted(found.pipelines.items(), key=lambda item: (-item[1], item[0]))
    print_table(("kernel", "pipelines"), [(name, str(n)) for name, n in pipelines], "lr")


def _print_fused(found: Inspection) -> None:
    if not found.fused:
        return
    kinds: Counter[str] = Counter(" + ".join(group.ops) for group in found.fused)
    print()
    rows = [(ops, str(n)) for ops, n in sorted(kinds.items(), key=lambda k: (-k[1], k[0]))]
    print_table(("fused into one dispatch", "groups"), rows, "lr")
