"""`tflite-vk run`: one run of a model on given inputs."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tflite_vk.analysis.litert import allocate, litert_errors, run
from tflite_vk.analysis.model_inputs import InputError
from tflite_vk.cli.arguments import (
    add_device_arguments,
    add_input_arguments,
    add_output_arguments,
    add_random_arguments,
    delegate_options,
    describe_inputs,
    given_inputs,
    random_inputs,
    refuse_null,
)
from tflite_vk.cli.output import count, print_facts, print_json, shape
from tflite_vk.errors import Error
from tflite_vk.frontend.flatbuffer import read_file, read_model
from tflite_vk.interpreter import Interpreter
from tflite_vk.ir.graph import Graph
from tflite_vk.support_report import SupportReport

if TYPE_CHECKING:
    from tflite_vk.cli.arguments import Subparsers

Array = npt.NDArray[Any]


def add_parser(commands: Subparsers) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "run",
        help="run a model once on arrays or pictures",
        description="Runs a model once and prints its outputs. Pictures are resized to the "
        "input; floating inputs take (pixel - mean) / std, uint8 inputs the pixels themselves.",
    )
    parser.add_argument("model", type=Path, metavar="MODEL")
    add_input_arguments(parser)
    group = parser.add_argument_group("results")
    group.add_argument("--output-dir", type=Path, help="write each output there as .npy")
    group.add_argument("--top", type=int, default=5, help="largest values to print (default: 5)")
    group.add_argument("--labels", type=Path, help="a file with a line for each class")
    add_random_arguments(parser)
    parser.add_argument(
        "--random", action="store_true", help="draw the inputs that no --input gives"
    )
    parser.add_argument("--num-threads", type=int, help="of LiteRT's CPU kernels, where needed")
    add_device_arguments(parser)
    add_output_arguments(parser)
    parser.set_defaults(execute=execute)


def execute(args: argparse.Namespace) -> int:
    """Run the command."""
    refuse_null(args)
    options = delegate_options(args)
    labels = _read_labels(args.labels)
    content = read_file(args.model)
    model = read_model(content, args.model.name)
    graph = model.subgraphs[0]
    inputs = _all_inputs(args, graph, given_inputs(args, model))
    with litert_errors("tflite_vk.Interpreter can't load the model"):
        interpreter = Interpreter(
            model_content=content, options=options, num_threads=args.num_threads
        )
    with interpreter:
        allocate(interpreter, inputs)
        values = run(interpreter, inputs)
        details = interpreter.get_output_details()
        report = interpreter.report
    outputs = [
        {**_summary(detail, value, args.top, labels), **_write(args.output_dir, i, detail, value)}
        for i, (detail, value) in enumerate(zip(details, values, strict=True))
    ]
    if args.json:
        print_json({"model": args.model.name, "report": report.to_dict(), "outputs": outputs})
        return 0
    print_facts(
        [
            ("model", args.model.name),
            ("device", report.device),
            ("operators", taken(report)),
        ]
    )
    for output in outputs:
        _print_output(output)
    return 0


def taken(report: SupportReport) -> str:
    """How much ran on the GPU, in words."""
    if not report.num_nodes:
        return "the model has none"
    if not report.num_delegated:
        return f"none of {report.num_nodes} on the GPU: LiteRT's CPU kernels ran all of them"
    partitions = count(report.num_partitions, "partition")
    return f"{report.num_delegated} of {report.num_nodes} on the GPU, in {partitions}"


def _all_inputs(
    args: argparse.Namespace, graph: Graph, given: dict[int, Array]
) -> dict[int, Array]:
    wanted = [t for t in dict.fromkeys(graph.inputs) if not graph.tensors[t].is_const]
    lost = [graph.tensors[t].name for t in wanted if t not in given]
    if not lost:
        return given
    if not args.random:
        raise InputError(
            f"no --input for {', '.join(map(repr, lost))} (the model has {describe_inputs(graph)}); "
            "give one each, or --random"
        )
    return {**random_inputs(args).draw(graph), **given}


def _read_labels(path: Path | None) -> list[str]:
    if path is None:
        return []
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except ValueError as error:
        raise Error(f"{path}: not a text file: {error}") from None


def _summary(detail: dict[str, Any], value: Array, top: int, labels: list[str]) -> dict[str, Any]:
    out: dict[str, Any] = {
        "index": int(detail["index"]),
        "name": detail["name"],
        "shape": list(value.shape),
        "dtype": value.dtype.name,
    }
    if not value.size or value.dtype.kind in "OSU":
        return out
    if value.dtype.kind == "c":
        return out
    numbers = value.astype(np.float64)
    out["min"], out["max"] = float(numbers.min()), float(numbers.max())
    out["mean"] = float(numbers.mean())
    out["top"] = [_top(detail, value, int(i), labels) for i in _largest(numbers, top)]
    return out


def _largest(numbers: npt.NDArray[np.float64], top: int) -> Array:
    """Flat positions of the largest values, largest first; a NaN is no value."""
    flat = np.where(np.isnan(numbers), -np.inf, numbers).reshape(-1)
    kept = max(0, min(top, flat.size))
    # Stable, so that the first of equal values comes first.
    return np.argsort(-flat, kind="stable")[:kept]


def _top(detail: dict[str, Any], value: Array, flat: int, labels: list[str]) -> dict[str, Any]:
    position = [int(i) for i in np.unravel_index(flat, value.shape)]
    out: dict[str, Any] = {"position": position, "value": value.reshape(-1)[flat].item()}
    scale, zero_point = detail["quantization"]
    if scale and value.dtype.kind in "iu":
        out["real"] = float(scale) * (int(out["value"]) - int(zero_point))
    if position and len(labels) >= value.shape[-1]:
        out["label"] = labels[position[-1]]
    return out


def _write(
    folder: Path | None, position: int, detail: dict[str, Any], value: Array
) -> dict[str, str]:
    if folder is None:
        return {}
    folder.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", str(detail["name"])).strip("._") or "output"
    path = folder / f"{position}_{name}.npy"
    np.save(path, value, allow_pickle=False)
    return {"file": str(path)}


def _print_output(output: dict[str, Any]) -> None:
    print()
    print(f"{output['name']}  {output['dtype']}{shape(output['shape'])}")
    if "min" in output:
        print(f"  min {output['min']:.6g}, max {output['max']:.6g}, mean {output['mean']:.6g}")
        for item in output["top"]:
            real = f" ({item['real']:.6g})" if "real" in item else ""
            label = f" {item['label']}" if "label" in item else ""
            print(f"  {_number(item['value'])}{real} at {shape(item['position'])}{label}")
    if "file" in output:
        print(f"  written to {output['file']}")


def _number(value: float | bool) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
