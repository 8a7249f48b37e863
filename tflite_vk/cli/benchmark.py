"""`tflite-vk benchmark`: how long a model takes, with the flags of TFLite's benchmark_model."""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tflite_vk.analysis.benchmarking import (
    Engine,
    EngineResult,
    Schedule,
    benchmark,
    cpu_engine,
    delegate_engine,
    own_engine,
)
from tflite_vk.analysis.metrics import Difference, Tolerance, measure
from tflite_vk.analysis.profiling import Profile, profile
from tflite_vk.cli.arguments import (
    add_device_arguments,
    add_output_arguments,
    add_random_arguments,
    delegate_options,
    open_chosen,
    refuse_null,
)
from tflite_vk.cli.benchmark_inputs import Array, add_layer_arguments, layer_inputs
from tflite_vk.cli.output import print_facts, print_json, print_table, progress_bar, scientific
from tflite_vk.cli.profile import print_profile
from tflite_vk.cli.run import taken
from tflite_vk.errors import OptionError
from tflite_vk.frontend.flatbuffer import Model, read_file, read_model
from tflite_vk.options import DelegateOptions

if TYPE_CHECKING:
    from tflite_vk.cli.arguments import Subparsers

_DESCRIPTION = """Times a model from setting its inputs to having its outputs. Flags have the names
and meaning of TFLite's benchmark_model, but for what they are here by default: use_gpu is true,
gpu_precision_loss_allowed is false. Engines take turns, run by run."""


def _bool(text: str) -> bool:
    words = {"true": True, "1": True, "false": False, "0": False}
    if text.lower() not in words:
        raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")
    return words[text.lower()]


def add_parser(commands: Subparsers) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "benchmark", help="start-up, first and warm runs, next to the CPU", description=_DESCRIPTION
    )
    parser.add_argument("model", type=Path, nargs="?", metavar="MODEL")
    parser.add_argument("--graph", type=Path, help="the model, as benchmark_model has it")
    group = parser.add_argument_group("runs")
    group.add_argument("--num_runs", type=int, default=50, help="default: 50")
    group.add_argument("--warmup_runs", type=int, default=1, help="default: 1")
    group.add_argument("--min_secs", type=float, default=0.0, help="run for so long at least")
    group.add_argument("--max_secs", type=float, default=150.0, help="default: 150")
    group.add_argument("--run_delay", type=float, default=0.0, help="seconds between runs")
    group = parser.add_argument_group("engines")
    _add_bool(group, "use_gpu", default=True, what="run on the GPU (default: true)")
    _add_bool(group, "compare_cpu", default=False, what="LiteRT's CPU kernels beside it")
    group.add_argument("--num_threads", type=int, help="of LiteRT's CPU kernels")
    group.add_argument(
        "--front_door",
        choices=("interpreter", "delegate"),
        default="interpreter",
        help="tflite_vk.Interpreter, or LiteRT's with the delegate",
    )
    _add_bool(group, "gpu_precision_loss_allowed", default=False, what="as --precision fp16")
    _add_bool(group, "gpu_inference_for_sustained_speed", default=False, what="tune thoroughly")
    group.add_argument("--max_delegated_partitions", type=int, default=0, help="0: no limit")
    group.add_argument("--delegate_serialize_dir", help="folder of the pipeline cache")
    group.add_argument("--delegate_serialize_token", help="name of the model in it")
    group.add_argument("--first_delegate_node_index", type=int, help="leave earlier ones alone")
    group.add_argument("--last_delegate_node_index", type=int, help="leave later ones alone")
    _add_bool(group, "require_full_delegation", default=False, what="fail (1) unless all is taken")
    group = parser.add_argument_group("profile")
    _add_bool(group, "enable_op_profiling", default=False, what="time each dispatch as well")
    group.add_argument("--op_profiling_output_mode", choices=("stdout", "csv"), default="stdout")
    group.add_argument("--op_profiling_output_file", type=Path, help="of the csv")
    add_layer_arguments(parser)
    add_random_arguments(parser)
    add_device_arguments(parser)
    add_output_arguments(parser)
    parser.set_defaults(execute=execute)


def _add_bool(group: Any, name: str, *, default: bool, what: str) -> None:
    group.add_argument(
        f"--{name}", type=_bool, nargs="?", const=True, default=default, metavar="BOOL", help=what
    )


def execute(args: argparse.Namespace) -> int:
    """Run the command."""
    refuse_null(args)
    path, schedule = _model_path(args), _schedule(args)
    content = read_file(path)
    model = read_model(content, path.name)
    options = _options(args, model)
    inputs = layer_inputs(args, model)
    engines = _engines(args, content, options)
    with progress_bar() as progress:
        results = benchmark(engines, inputs, schedule, progress)
    differences = (
        _fp16_differences(content, options, inputs, results[0])
        if args.use_gpu and options.precision == "fp16"
        else []
    )
    found = None
    if args.enable_op_profiling and args.use_gpu:
        found = profile(model, options, open_chosen(args, options))
    is_good = _is_good(args, results)
    if args.json:
        print_json(
            {
                "model": path.name,
                "precision": options.precision,
                "engines": [r.to_dict() for r in results],
                "speedup": _speedup(results),
                "fp16_difference": [d.to_dict() for d in differences],
                "profile": None if found is None else found.to_dict(),
            }
        )
        return 0 if is_good else 1
    _print_results(path.name, results)
    for result, difference in zip(results[0].outputs, differences, strict=False):
        print(
            f"fp16 against fp32, output {list(result.shape)}: at most "
            f"{scientific(difference.max_abs)}, {difference.max_rel:.2%} of the largest value"
        )
    if found is not None:
        print()
        _print_op_profile(found, args, path.name, options.precision)
    if not is_good:
        print("\nFull delegation was required.")
    return 0 if is_good else 1


def _model_path(args: argparse.Namespace) -> Path:
    if (args.model is None) == (args.graph is None):
        raise OptionError("give the model once: MODEL, or --graph=MODEL")
    path: Path = args.model if args.graph is None else args.graph
    return path


def _schedule(args: argparse.Namespace) -> Schedule:
    for name, least in (("num_runs", 1), ("warmup_runs", 0), ("max_secs", 0), ("min_secs", 0)):
        if getattr(args, name) < least:
            raise OptionError(f"--{name} is {getattr(args, name)} (allowed: {least} and up)")
    if args.num_threads is not None and args.num_threads < 1:
        raise OptionError(f"--num_threads is {args.num_threads} (allowed: 1 and up)")
    return Schedule(
        args.num_runs, args.warmup_runs, args.min_secs, args.max_secs, max(0.0, args.run_delay)
    )


def _options(args: argparse.Namespace, model: Model) -> DelegateOptions:
    texts = {"max_delegated_partitions": str(args.max_delegated_partitions)}
    if args.gpu_precision_loss_allowed:
        texts["precision"] = "fp16"
    if args.gpu_inference_for_sustained_speed:
        texts["tuning"] = "exhaustive"
    if args.delegate_serialize_dir:
        texts["cache_dir"] = args.delegate_serialize_dir
    if args.delegate_serialize_token:
        texts["model_token"] = args.delegate_serialize_token
    first, last = args.first_delegate_node_index, args.last_delegate_node_index
    if first is not None or last is not None:
        nodes = [n.index for n in model.subgraphs[0].nodes]
        low, high = first or 0, max(nodes, default=0) if last is None else last
        texts["excluded_nodes"] = ",".join(str(i) for i in nodes if not low <= i <= high)
    return delegate_options(args, **texts)


def _engines(args: argparse.Namespace, content: bytes, options: DelegateOptions) -> list[Engine]:
    engines: list[Engine] = []
    if args.use_gpu:
        make = delegate_engine if args.front_door == "delegate" else own_engine
        engines.append(make(content, options, args.num_threads))
    if args.compare_cpu or not args.use_gpu:
        engines.append(cpu_engine(content, args.num_threads))
    return engines


def _fp16_differences(
    content: bytes, options: DelegateOptions, inputs: dict[int, Array], result: EngineResult
) -> list[Difference]:
    """What half precision costs, against the same engine in fp32."""
    texts = {f: getattr(options, f) for f in options.__dataclass_fields__}
    full = DelegateOptions(**{**texts, "precision": "fp32"})
    exact = benchmark([own_engine(content, full)], inputs, Schedule(num_runs=1, warmup_runs=0))[0]
    tolerance = Tolerance.default("fp16")
    return [
        measure(got, want, tolerance)
        for got, want in zip(result.outputs, exact.outputs, strict=True)
    ]


def _is_good(args: argparse.Namespace, results: Sequence[EngineResult]) -> bool:
    reports = [r.report for r in results if r.report is not None]
    return not args.require_full_delegation or all(r.is_fully_delegated for r in reports)


def _speedup(results: Sequence[EngineResult]) -> float | None:
    if len(results) < 2:
        return None
    return results[1].warm.median / results[0].warm.median


def _print_results(name: str, results: Sequence[EngineResult]) -> None:
    report = results[0].report
    print_facts(
        [
            ("model", name),
            ("device", "" if report is None else report.device),
            ("operators", "" if report is None else taken(report)),
            ("runs", f"{results[0].warm.count} each"),
        ]
    )
    print()
    columns = ("engine", "init ms", "first ms", "median ms", "p90", "mean", "std", "min", "invoke")
    rows = [
        (
            r.name,
            *(f"{v:.2f}" for v in (r.init_ms, r.first_ms)),
            *(f"{v:.3f}" for v in (r.warm.median, r.warm.p90, r.warm.mean, r.warm.std, r.warm.min)),
            f"{r.invoke.median:.3f}",
        )
        for r in results
    ]
    print_table(columns, rows, "l" + "r" * 8)
    speedup = _speedup(results)
    if speedup is not None:
        print(
            f"\nThe GPU takes {1 / speedup:.3g} times the CPU's median: {speedup:.3g}x its speed."
        )


def _print_op_profile(found: Profile, args: argparse.Namespace, name: str, precision: str) -> None:
    if args.op_profiling_output_mode == "stdout":
        print_profile(found, name, precision)
        return
    text = profile_csv(found)
    if args.op_profiling_output_file is None:
        print(text, end="")
        return
    args.op_profiling_output_file.write_text(text, encoding="utf-8")
    print(f"profile written to {args.op_profiling_output_file}")


def profile_csv(found: Profile) -> str:
    """One line for each dispatch, below a heading."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        ("partition", "node", "operators", "shader", "us", "flops", "bytes", "gflops", "gbps")
    )
    for d in found.dispatches:
        label = d.label.rpartition(" #")[0]
        numbers = (f"{d.us:.3f}", d.flops, d.bytes, f"{d.gflops:.3f}", f"{d.gbps:.3f}")
        writer.writerow((d.partition, d.node, label, d.shader, *numbers))
    return out.getvalue()
