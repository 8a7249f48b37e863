"""`tflite-vk profile`: device time of every dispatch."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tflite_vk.analysis.ceilings import Ceilings, measure_ceilings
from tflite_vk.analysis.model_inputs import InputError
from tflite_vk.analysis.profiling import DispatchTime, Profile, profile
from tflite_vk.cli.arguments import (
    add_device_arguments,
    add_output_arguments,
    add_random_arguments,
    delegate_options,
    open_chosen,
    random_inputs,
)
from tflite_vk.cli.output import flops, print_facts, print_json, print_table, progress_bar, size
from tflite_vk.cli.run import taken
from tflite_vk.frontend.flatbuffer import load_model

if TYPE_CHECKING:
    from tflite_vk.cli.arguments import Subparsers


def add_parser(commands: Subparsers) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "profile",
        help="device time of every dispatch",
        description="Times every dispatch with the device's timestamps, on random inputs. Bytes "
        "are those of the buffers bound, each once; ceilings are measured on the same device. "
        "Bound by: the ceiling that takes the largest part of a dispatch's time, or latency where "
        "none takes a quarter of it.",
    )
    parser.add_argument("model", type=Path, metavar="MODEL")
    parser.add_argument("--runs", type=int, default=20, help="medians of these (default: 20)")
    parser.add_argument("--warmup-runs", type=int, default=2, help="before them (default: 2)")
    parser.add_argument("--trace", type=Path, help="write a Chrome trace (Perfetto reads it)")
    parser.add_argument(
        "--no-ceilings", action="store_true", help="measure no bandwidth and arithmetic ceilings"
    )
    add_random_arguments(parser)
    add_device_arguments(parser)
    add_output_arguments(parser)
    parser.set_defaults(execute=execute)


def execute(args: argparse.Namespace) -> int:
    """Run the command."""
    if args.runs < 1 or args.warmup_runs < 0:
        raise InputError(f"--runs {args.runs} --warmup-runs {args.warmup_runs}: too few runs")
    options = delegate_options(args)
    model = load_model(args.model)
    device = open_chosen(args, options)
    with progress_bar() as progress:
        progress("ceilings", 0, 1)
        ceilings = None if args.no_ceilings else measure_ceilings(device)
        found = profile(
            model,
            options,
            device,
            runs=args.runs,
            warmup_runs=args.warmup_runs,
            random=random_inputs(args),
            ceilings=ceilings,
            progress=progress,
        )
    if args.trace is not None:
        found.write_trace(args.trace)
    if args.json:
        print_json({"model": args.model.name, "precision": options.precision, **found.to_dict()})
        return 0
    print_profile(found, args.model.name, options.precision)
    if args.trace is not None:
        print(f"\ntrace written to {args.trace}")
    return 0


def print_profile(found: Profile, name: str, precision: str) -> None:
    """Print the tables."""
    total, ceilings = found.total, found.ceilings
    print_facts(
        [
            ("model", name),
            ("device", f"{found.device}, {found.dispatcher}, {precision}"),
            ("operators", taken(found.report)),
            ("ceilings", "" if ceilings is None else _ceilings(ceilings)),
            (
                "time",
                f"{total.us / 1e3:.3f} ms in {total.count} dispatches, medians of {found.runs}",
            ),
        ]
    )
    if not found.dispatches:
        print("\nNothing runs on the GPU: there is nothing to time.")
        return
    print()
    _print_times(found.dispatches, found, first="dispatch")
    print()
    _print_times([*found.by_operator(), total], found, first="operator")


def _ceilings(ceilings: Ceilings) -> str:
    return (
        f"copy {ceilings.copy_gbps:.1f} GB/s, multiply-add {ceilings.arithmetic_gflops:.0f} GFLOP/s, "
        f"a launch {ceilings.launch_us:.1f} us"
    )


def _print_times(times: Sequence[DispatchTime], found: Profile, *, first: str) -> None:
    total_us = found.total.us
    columns = [first, "kernel", "n", "us", "of time", "work", "bytes", "GFLOP/s", "GB/s"]
    align = "llrrrrrrr"
    if found.ceilings is not None:
        columns += ["of multiply-add", "of copy", "bound by"]
        align += "rrl"
    rows = []
    for t in times:
        row = [
            t.label,
            t.shader if t.count == 1 or "," not in t.shader else "several",
            str(t.count),
            f"{t.us:.1f}",
            f"{t.us / total_us:.1%}" if total_us else "-",
            flops(t.flops) if t.flops else "-",
            size(t.bytes),
            f"{t.gflops:.2f}" if t.flops else "-",
            f"{t.gbps:.2f}",
        ]
        if found.ceilings is not None:
            row.append(f"{t.of_arithmetic(found.ceilings):.1%}" if t.flops else "-")
            row.append(f"{t.of_copy(found.ceilings):.1%}")
            row.append(t.bound_by(found.ceilings))
        rows.append(row)
    print_table(columns, rows, align)
