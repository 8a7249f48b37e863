"""benchmark_model's flags about inputs: --input_layer and what goes with it."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_vk.analysis.model_inputs import InputError, read_input
from tflite_vk.cli.arguments import describe_inputs, random_inputs
from tflite_vk.frontend.flatbuffer import Model
from tflite_vk.ir.graph import Graph, Tensor
from tflite_vk.shape import Shape

Array = npt.NDArray[Any]


def add_layer_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    group = parser.add_argument_group("inputs")
    group.add_argument("--input_layer", default="", metavar="NAME,NAME")
    group.add_argument(
        "--input_layer_shape", default="", metavar="1,224,224,3:1,10", help="of --input_layer's"
    )
    group.add_argument(
        "--input_layer_value_range",
        default="",
        metavar="NAME,LOW,HIGH:...",
        help="random values of an input; both ends included for integers",
    )
    group.add_argument(
        "--input_layer_value_files",
        default="",
        metavar="NAME:FILE,...",
        help="a .npy file or a picture; anything else is read as the input's bytes",
    )


def layer_inputs(args: argparse.Namespace, model: Model) -> dict[int, Array]:
    """Values of all inputs, by tensor id.

    Raises:
        InputError: a flag names no input, or its value doesn't fit.
    """
    graph = model.subgraphs[0]
    by_name = {
        graph.tensors[t].name: graph.tensors[t]
        for t in graph.inputs
        if not graph.tensors[t].is_const
    }
    shapes = _shapes(args.input_layer, args.input_layer_shape)
    changed = [
        dataclasses.replace(_find(by_name, name, graph), shape=shape)
        for name, shape in shapes.items()
    ]
    graph = graph.with_(tensors=changed)
    by_name.update({t.name: t for t in changed})
    ranges = {
        _find(by_name, name, graph).name: limits
        for name, limits in _ranges(args.input_layer_value_range).items()
    }
    random = dataclasses.replace(random_inputs(args), ranges=ranges)
    files = {
        _find(by_name, name, graph).id: _read(path, by_name[name])
        for name, path in _files(args.input_layer_value_files).items()
    }
    return {**random.draw(graph), **files}


def _find(by_name: Mapping[str, Tensor], name: str, graph: Graph) -> Tensor:
    if name not in by_name:
        raise InputError(f"the model has no input {name!r}; it has {describe_inputs(graph)}")
    return by_name[name]


def _shapes(names: str, shapes: str) -> dict[str, Shape]:
    layers = [n for n in names.split(",") if n]
    texts = [s for s in shapes.split(":") if s]
    if texts and len(layers) != len(texts):
        raise InputError(
            f"--input_layer names {len(layers)} inputs, --input_layer_shape {len(texts)} shapes"
        )
    return {n: _shape(text) for n, text in zip(layers, texts, strict=False)}


def _shape(text: str) -> Shape:
    try:
        shape = tuple(int(d) for d in text.split(","))
    except ValueError:
        shape = (-1,)
    if min(shape) < 0:
        raise InputError(f"--input_layer_shape {text!r} is no shape, such as 1,224,224,3")
    return shape


def _ranges(text: str) -> dict[str, tuple[float, float]]:
    out = {}
    for item in (i for i in text.split(":") if i):
        try:
            name, low, high = item.rsplit(",", 2)
            out[name] = float(low), float(high)
        except ValueError:
            raise InputError(f"--input_layer_value_range {item!r} is not NAME,LOW,HIGH") from None
        if out[name][0] > out[name][1]:
            raise InputError(f"--input_layer_value_range {item!r}: LOW is the larger one")
    return out


def _files(text: str) -> dict[str, Path]:
    out = {}
    for item in (i for i in text.split(",") if i):
        # The name may have colons itself, as those of Keras do.
        name, colon, path = item.rpartition(":")
        if not colon:
            raise InputError(f"--input_layer_value_files {item!r} is not NAME:FILE")
        out[name] = Path(path)
    return out


def _read(path: Path, tensor: Tensor) -> Array:
    try:
        return read_input(path, tensor)
    except InputError:
        if not path.is_file() or path.suffix.lower() == ".npy":
            raise
    dtype = tensor.dtype.numpy
    data = path.read_bytes()
    if len(data) != tensor.num_elements * dtype.itemsize:
        raise InputError(
            f"{path}: {len(data)} bytes, input {tensor.name!r} takes "
            f"{tensor.num_elements * dtype.itemsize}"
        )
    return np.frombuffer(data, dtype).reshape(tensor.shape)
