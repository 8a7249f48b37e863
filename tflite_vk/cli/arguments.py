"""Arguments that several commands share, and what they become."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from tflite_vk.analysis.model_inputs import ImageScale, InputError, RandomInputs, read_input
from tflite_vk.device_info import DeviceInfo
from tflite_vk.errors import DeviceError, OptionError
from tflite_vk.frontend.flatbuffer import Model
from tflite_vk.ir.graph import Graph, Tensor
from tflite_vk.options import DelegateOptions
from tflite_vk.runtime.device import Device
from tflite_vk.runtime.kompute import load_kp
from tflite_vk.runtime.null import NULL_DEVICE
from tflite_vk.runtime.open import choose, open_device
from tflite_vk.runtime.vulkan.features import without_enabling
from tflite_vk.runtime.vulkan.probe import probe

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction["Parser"]

Array = npt.NDArray[Any]

NULL = "null"


class Parser(argparse.ArgumentParser):
    """Takes `--num_runs` and `--num-runs` for one flag, as TFLite's tools have underscores."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(allow_abbrev=False, **kwargs)

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """As the base class, with the flags respelled."""
        given = sys.argv[1:] if args is None else args
        return super().parse_known_args([self._respell(a) for a in given], namespace)

    def _respell(self, argument: str) -> str:
        name, equals, value = argument.partition("=")
        if not name.startswith("--") or name in self._option_string_actions:
            return argument
        stem = name[2:]
        for other in (f"--{stem.replace('_', '-')}", f"--{stem.replace('-', '_')}"):
            if other in self._option_string_actions:
                return f"{other}{equals}{value}"
        return argument


def add_output_arguments(parser: argparse.ArgumentParser) -> None:
    """--json and --verbose."""
    group = parser.add_argument_group("output")
    group.add_argument("--json", action="store_true", help="print JSON on stdout")
    group.add_argument("-v", "--verbose", action="store_true", help="say more")


def add_device_arguments(parser: argparse.ArgumentParser) -> None:
    """--device and the other options of the delegate."""
    group = parser.add_argument_group("delegate")
    group.add_argument("--device", help="index, or a part of the device's name")
    group.add_argument(
        "--dispatcher", choices=("auto", "kompute", "vulkan"), help="what runs the shaders"
    )
    group.add_argument(
        "--precision", choices=("fp32", "fp16"), default="fp32", help="of values on the device"
    )
    group.add_argument(
        "--tuning",
        choices=("off", "fast", "exhaustive"),
        help="try sizes of the kernels on the device first (default: off)",
    )
    group.add_argument(
        "--no-fusion", action="store_true", help="one dispatch an operator, to find a fault"
    )
    group.add_argument(
        "--option",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="any option of the delegate, such as excluded_ops=CONV_2D,ADD; may be repeated",
    )


def add_input_arguments(parser: argparse.ArgumentParser) -> None:
    """--input and how to read pictures."""
    group = parser.add_argument_group("inputs")
    group.add_argument(
        "--input",
        metavar="[NAME=]FILE",
        action="append",
        default=[],
        help="a .npy file or a picture; without a name for the inputs in their order",
    )
    group.add_argument(
        "--mean", type=float, default=127.5, help="of pictures: (pixel - mean) / std"
    )
    group.add_argument("--std", type=float, default=127.5, help="default: 127.5, for -1 to 1")


def add_random_arguments(parser: argparse.ArgumentParser) -> None:
    """--seed and --range."""
    group = parser.add_argument_group("random inputs")
    group.add_argument("--seed", type=int, default=0)
    group.add_argument(
        "--range",
        nargs=2,
        type=float,
        default=(-1.0, 1.0),
        metavar=("LOW", "HIGH"),
        help="of floating inputs (default: -1 1); integers take their whole range",
    )


def delegate_options(args: argparse.Namespace, **more: str) -> DelegateOptions:
    """The delegate's options.

    Args:
        args: of a parser with the device arguments.
        **more: further options as texts.

    Raises:
        OptionError: one of them means nothing.
    """
    texts: dict[str, str] = {"precision": args.precision}
    if args.device is not None and args.device != NULL:
        texts["device"] = args.device
    if args.dispatcher is not None:
        texts["dispatcher"] = args.dispatcher
    if args.tuning is not None:
        texts["tuning"] = args.tuning
    if args.no_fusion:
        texts["fusion"] = "false"
    for item in args.option:
        name, equals, value = item.partition("=")
        if not equals:
            raise OptionError(f"--option {item!r} has no value; give NAME=VALUE")
        texts[name.strip()] = value
    return DelegateOptions.from_tflite({**texts, **more})


def open_chosen(args: argparse.Namespace, options: DelegateOptions) -> Device:
    """The device that the options name, opened."""
    refuse_null(args)
    return open_device(options.device, options.dispatcher)


def refuse_null(args: argparse.Namespace) -> None:
    """The null device is for `inspect`."""
    if args.device == NULL:
        raise OptionError(
            f"device {NULL!r} runs nothing: it serves `tflite-vk inspect` only; "
            "see `tflite-vk devices`"
        )


def describe_chosen(args: argparse.Namespace, options: DelegateOptions) -> DeviceInfo:
    """What the options name, without opening it; the null device where there is none.

    Kompute switches no features on, so what is compiled for it does without.
    """
    if args.device == NULL:
        return NULL_DEVICE
    try:
        found = probe()
    except DeviceError:
        found = []
    if not found and options.device is None:
        return NULL_DEVICE
    info = choose(found, options.device)
    if options.dispatcher == "vulkan" or (options.dispatcher == "auto" and not _has_kompute()):
        return info
    return dataclasses.replace(info, features=without_enabling(info.features))


def _has_kompute() -> bool:
    try:
        load_kp()
    except DeviceError:
        return False
    return True


def random_inputs(args: argparse.Namespace) -> RandomInputs:
    """How random inputs are drawn."""
    low, high = args.range
    if not low <= high:
        raise InputError(f"--range {low:g} {high:g}: the first is the larger one")
    return RandomInputs(args.seed, low, high)


def given_inputs(args: argparse.Namespace, model: Model) -> dict[int, Array]:
    """The inputs given in files, by tensor id.

    Raises:
        InputError: a file doesn't fit, or there is no such input.
    """
    graph = model.subgraphs[0]
    scale = ImageScale(args.mean, args.std)
    if scale.std == 0:
        raise InputError("--std is 0; pixels are divided by it")
    free = list(dict.fromkeys(t for t in graph.inputs if not graph.tensors[t].is_const))
    by_name = {graph.tensors[t].name: graph.tensors[t] for t in free}
    out: dict[int, Array] = {}
    for item in args.input:
        tensor, path = _match(item, by_name, [t for t in free if t not in out], graph)
        out[tensor.id] = read_input(path, tensor, scale)
    return out


def _match(
    item: str, by_name: dict[str, Tensor], left: list[int], graph: Graph
) -> tuple[Tensor, Path]:
    name, equals, path = item.partition("=")
    if equals and name in by_name:
        return by_name[name], Path(path)
    if equals and not Path(item).exists():
        raise InputError(f"the model has no input {name!r}; it has {describe_inputs(graph)}")
    if not left:
        raise InputError(
            f"--input {item}: every input has a value; it has {describe_inputs(graph)}"
        )
    return graph.tensors[left[0]], Path(item)


def describe_inputs(graph: Graph) -> str:
    """Names, types and shapes of a graph's run-time inputs."""
    inputs = (graph.tensors[t] for t in dict.fromkeys(graph.inputs))
    return ", ".join(
        f"{t.name!r} {t.dtype.name}{list(t.shape_signature or t.shape)}"
        for t in inputs
        if not t.is_const
    )
