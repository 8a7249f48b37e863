"""`tflite-vk compare`: the GPU's outputs against those of LiteRT's reference kernels."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tflite_vk.analysis.comparison import (
    FRONT_DOORS,
    DoorComparison,
    OutputComparison,
    compare,
    run_reference,
)
from tflite_vk.analysis.inspection import inspect_model
from tflite_vk.analysis.layers import Layer, compare_layers, first_parted
from tflite_vk.analysis.litert import litert_errors, load_litert
from tflite_vk.analysis.metrics import Tolerance
from tflite_vk.analysis.model_inputs import InputError
from tflite_vk.cli.arguments import (
    add_device_arguments,
    add_input_arguments,
    add_output_arguments,
    add_random_arguments,
    delegate_options,
    given_inputs,
    open_chosen,
    random_inputs,
    refuse_null,
)
from tflite_vk.cli.inspect import launches
from tflite_vk.cli.output import (
    count,
    decibels,
    print_facts,
    print_json,
    print_table,
    progress_bar,
    scientific,
    shape,
)
from tflite_vk.cli.run import taken
from tflite_vk.frontend.flatbuffer import read_file, read_model
from tflite_vk.testing.substitute import Substitute, substitute

if TYPE_CHECKING:
    from tflite_vk.cli.arguments import Subparsers

_DESCRIPTION = """Runs a model on the GPU and on LiteRT's reference kernels with the same inputs,
random ones by default, and compares every output. A value is close where |got - want| <= rtol *
|want| + atol * (largest |want| of its output). A floating output that is not is good all the same
where LiteRT's own XNNPACK is as far from the reference kernels. Where an output is not good, the
first layer that parts is looked for. For a custom operator that LiteRT has no kernel for
(Convolution2DTransposeBias), the reference is the same model in builtin operators. Exit status 1 where anything is not good."""


def add_parser(commands: Subparsers) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "compare", help="the GPU's outputs against LiteRT's", description=_DESCRIPTION
    )
    parser.add_argument("model", type=Path, metavar="MODEL")
    parser.add_argument(
        "--front-door",
        choices=(*FRONT_DOORS, "both"),
        default="both",
        help="the delegate in LiteRT's interpreter, tflite_vk.Interpreter, or both",
    )
    parser.add_argument(
        "--runs", type=int, default=2, help="each has to give the same bits (default: 2)"
    )
    parser.add_argument("--rtol", type=float, help="default: 1e-4; 1e-2 in fp16")
    parser.add_argument("--atol", type=float, help="default: 1e-5; 1e-2 in fp16")
    parser.add_argument("--layers", action="store_true", help="compare every layer, always")
    parser.add_argument(
        "--require-full-delegation",
        action="store_true",
        help="not good unless every operator runs on the GPU",
    )
    add_input_arguments(parser)
    add_random_arguments(parser)
    add_device_arguments(parser)
    add_output_arguments(parser)
    parser.set_defaults(execute=execute)


def execute(args: argparse.Namespace) -> int:
    """Run the command."""
    if args.runs < 1:
        raise InputError(f"--runs is {args.runs} (allowed: 1 and up)")
    refuse_null(args)
    load_litert()
    options = delegate_options(args)
    tolerance = _tolerance(args)
    content = read_file(args.model)
    model = read_model(content, args.model.name)
    inputs = {**random_inputs(args).draw(model.subgraphs[0]), **given_inputs(args, model)}
    device = open_chosen(args, options)
    found = inspect_model(model, args.model.name, options, device.info)
    doors = FRONT_DOORS if args.front_door == "both" else (args.front_door,)
    with litert_errors("the reference can't run the model"):
        other = substitute(model, {t: value.shape for t, value in inputs.items()})
    runnable = content if other is None else other.content
    with progress_bar() as progress:
        reference = run_reference(runnable, inputs, progress)
        results = [
            compare(
                content,
                inputs,
                reference,
                door,
                options,
                tolerance,
                runs=args.runs,
                progress=progress,
            )
            for door in doors
        ]
        is_good = all(r.is_good for r in results)
        if args.require_full_delegation:
            is_good = is_good and all(r.report.is_fully_delegated for r in results)
        layers: list[Layer] | None = None
        if args.layers or not all(o.is_good for r in results for o in r.outputs):
            layers = compare_layers(runnable, model, inputs, device, options, tolerance, progress)
    if args.json:
        parted = first_parted(layers or [])
        print_json(
            {
                "model": args.model.name,
                "is_good": is_good,
                "precision": options.precision,
                "dispatcher": device.dispatcher,
                "reference": reference.kernels,
                "substitution": None if other is None else other.description,
                "tolerance": dataclasses.asdict(tolerance),
                "inspection": found.to_dict(),
                "front_doors": [r.to_dict() for r in results],
                "layers": None if layers is None else [x.to_dict() for x in layers],
                "first_parted": None if parted is None else parted.to_dict(),
            }
        )
        return 0 if is_good else 1
    print_facts(
        [
            ("model", args.model.name),
            ("device", f"{found.device.name}, {device.dispatcher}, {options.precision}"),
            ("operators", taken(results[0].report)),
            ("launches", launches(found)),
            ("inputs", _inputs(args)),
            ("reference", _reference(reference.kernels, other)),
            ("tolerance", f"{tolerance.rtol:g} of each value, {tolerance.atol:g} of the largest"),
        ]
    )
    print()
    _print_outputs(results)
    if layers is not None:
        print()
        _print_layers(layers, args.precision, is_whole=args.layers, is_good=is_good)
    print()
    for line in _verdict(results, args, is_good=is_good):
        print(line)
    return 0 if is_good else 1


def _tolerance(args: argparse.Namespace) -> Tolerance:
    default = Tolerance.default(args.precision)
    rtol = default.rtol if args.rtol is None else args.rtol
    atol = default.atol if args.atol is None else args.atol
    if not (rtol >= 0 and atol >= 0):
        raise InputError(f"--rtol {rtol:g} --atol {atol:g}: a tolerance is 0 or more")
    return Tolerance(rtol, atol)


def _reference(kernels: str, other: Substitute | None) -> str:
    return f"LiteRT {kernels}" + (f", {other.description}" if other is not None else "")


def _inputs(args: argparse.Namespace) -> str:
    low, high = args.range
    random = f"random, seed {args.seed}, floats {low:g} to {high:g}"
    return f"{', '.join(args.input)}; else {random}" if args.input else random


def _print_outputs(results: Sequence[DoorComparison]) -> None:
    columns = (
        "front door", "output", "shape", "max abs", "of scale", "element", "SNR dB",
        "of tolerance", "XNNPACK's", "",
    )  # fmt: skip
    rows = [_output_row(r.door, o) for r in results for o in r.outputs]
    print_table(columns, rows, "lllrrrrrrl")


def _output_row(door: str, output: OutputComparison) -> tuple[str, ...]:
    verdict = f"{'good' if output.is_good else 'NOT GOOD'}{output.note and ', '}{output.note}"
    d, x = output.difference, output.xnnpack
    numbers: tuple[str, ...] = ("-",) * 5
    if d is not None:
        numbers = (
            scientific(d.max_abs),
            scientific(d.max_rel),
            scientific(d.max_rel_element),
            decibels(d.snr_db),
            f"{d.of_tolerance:.3g}",
        )
    theirs = "-" if x is None else f"{x.of_tolerance:.3g}"
    return (door, output.name, shape(output.shape), *numbers, theirs, verdict)


def _print_layers(
    layers: Sequence[Layer], precision: str, *, is_whole: bool, is_good: bool
) -> None:
    if not layers:
        print("No layer runs on the GPU.")
        return
    if is_whole:
        columns = ("node", "operator", "tensor", "shape", "max abs", "of scale", "of tolerance")
        rows = [
            (
                str(x.node),
                x.op,
                x.name,
                shape(x.shape),
                scientific(x.difference.max_abs),
                scientific(x.difference.max_rel),
                f"{x.difference.of_tolerance:.3g}",
            )
            for x in layers
        ]
        print_table(columns, rows, "rlllrrr")
        print()
    parted = first_parted(list(layers))
    if parted is not None:
        print(_describe_parted(parted, precision))
    elif not is_good:
        print(
            f"All {len(layers)} values are close when each is kept: the fault shows only with "
            "fused operators or shared memory (try --no-fusion), or on the CPU."
        )
    else:
        print(f"All {len(layers)} values are close.")


def _describe_parted(layer: Layer, precision: str) -> str:
    d = layer.difference
    text = (
        f"The first value that parts is {layer.name!r} {shape(layer.shape)} of {layer.op} "
        f"#{layer.node}: at {shape(d.position)} the GPU has {d.got:.9g}, LiteRT {d.want:.9g} "
        f"({d.of_tolerance:.3g} of the tolerance)."
    )
    if layer.alone is None:
        return text
    if layer.alone.is_close:
        return f"{text} From LiteRT's inputs {layer.op} is close: the layers before add up to it."
    if precision == "fp16":
        return (
            f"{text} It is so from LiteRT's inputs too: rounding the values of this {layer.op} to "
            f"float16 is enough (--option fp32_ops=NAMES keeps operators in float32)."
        )
    return f"{text} It is so from LiteRT's inputs too: {layer.op} itself is wrong."


def _verdict(
    results: Sequence[DoorComparison], args: argparse.Namespace, *, is_good: bool
) -> list[str]:
    lines = []
    for r in results:
        if r.differing_runs:
            lines.append(f"{r.door}: {r.differing_runs} of {r.num_runs} runs gave other bits.")
        elif r.num_runs > 1:
            lines.append(f"{r.door}: {r.num_runs} runs, the same bits.")
    if not any(r.report.num_delegated for r in results):
        lines.append("Nothing ran on the GPU: this compared LiteRT with itself.")
    elif not all(r.report.is_fully_delegated for r in results):
        left = max(r.report.num_nodes - r.report.num_delegated for r in results)
        lines.append(f"{count(left, 'operator')} ran on the CPU; `tflite-vk inspect` says why.")
        if args.require_full_delegation:
            lines.append("Full delegation was required.")
    lines.append("good" if is_good else "NOT GOOD")
    return lines
