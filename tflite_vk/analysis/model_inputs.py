"""Values for the inputs of a model: random ones that make sense, or from a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_vk.dtypes import DType
from tflite_vk.errors import Error
from tflite_vk.ir.attributes import GatherAttributes, ReverseSequenceAttributes
from tflite_vk.ir.graph import Graph, Node, Tensor

Array = npt.NDArray[Any]

IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".ppm", ".tiff"})
CLI_HINT = "pip install 'tflite_vk[cli]'"

_INTEGER_RANGE = (-50, 50)
"""For integers of 32 bits and more, whose own range would only overflow."""

_MOVES = frozenset({"RESHAPE", "CAST", "SQUEEZE", "EXPAND_DIMS"})
"""Operators behind which indices are still indices."""


class InputError(Error, ValueError):
    """A value given for an input can't be read or doesn't fit it."""


@dataclass(frozen=True)
class RandomInputs:
    """How random inputs are drawn.

    Attributes:
        seed: the same seed draws the same values.
        low, high: of floating inputs.
        ranges: low and high of single inputs, by name, both included for integers.
    """

    seed: int = 0
    low: float = -1.0
    high: float = 1.0
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def draw(self, graph: Graph) -> dict[int, Array]:
        """A value for each run-time input of a graph, by tensor id.

        Raises:
            InputError: an input of a type that has no random values.
        """
        rng = np.random.default_rng(self.seed)
        return {
            t: self._draw_one(graph, graph.tensors[t], rng)
            for t in dict.fromkeys(graph.inputs)
            if not graph.tensors[t].is_const
        }

    def _draw_one(self, graph: Graph, tensor: Tensor, rng: np.random.Generator) -> Array:
        if tensor.dtype.value.numpy is None:
            raise InputError(
                f"input {tensor.name!r} is {tensor.dtype.name}, which has no random values"
            )
        dtype: np.dtype[Any] = tensor.dtype.numpy
        given = self.ranges.get(tensor.name)
        value: Array
        if tensor.dtype is DType.BOOL:
            value = rng.integers(0, 2, tensor.shape)
        elif dtype.kind == "f":
            low, high = given or (self.low, self.high)
            value = rng.uniform(low, high, tensor.shape)
        elif dtype.kind == "c":
            real, imaginary = rng.uniform(self.low, self.high, (2, *tensor.shape))
            value = real + 1j * imaginary
        else:
            least, most = self._integer_range(graph, tensor) if given is None else given
            value = rng.integers(int(least), int(most), tensor.shape, endpoint=True)
        return value.astype(dtype)

    def _integer_range(self, graph: Graph, tensor: Tensor) -> tuple[float, float]:
        limit = _index_limit(graph, tensor.id)
        if limit is not None:
            return 0, max(0, limit - 1)
        dtype: np.dtype[Any] = tensor.dtype.numpy
        info = np.iinfo(dtype)
        if info.bits < 32:
            return info.min, info.max
        least, most = _INTEGER_RANGE
        return max(least, info.min), most


def _index_limit(graph: Graph, tensor_id: int) -> int | None:
    """How many values an index may take, where the tensor is used as one."""
    limits = [limit for limit in _index_limits(graph, tensor_id) if limit is not None]
    return min(limits, default=None)


def _index_limits(graph: Graph, tensor_id: int) -> Iterator[int | None]:
    for node in graph.nodes:
        if tensor_id not in node.inputs:
            continue
        position = node.inputs.index(tensor_id)
        if node.op in _MOVES and position == 0:
            yield from _index_limits(graph, node.outputs[0])
        else:
            yield _index_limit_of(graph, node, position)


def _index_limit_of(graph: Graph, node: Node, position: int) -> int | None:
    if node.op == "GATHER" and position == 1 and isinstance(node.attributes, GatherAttributes):
        return graph.input(node, 0).shape[node.attributes.axis]
    if (node.op, position) in {("GATHER_ND", 1), ("SCATTER_ND", 0)}:
        # One index for each of the leading dimensions: what fits all of them fits each.
        depth = graph.input(node, position).shape[-1]
        indexed = graph.input(node, 0) if node.op == "GATHER_ND" else graph.output(node)
        return min(indexed.shape[:depth], default=None)
    if node.op == "REVERSE_SEQUENCE" and position == 1:
        assert isinstance(node.attributes, ReverseSequenceAttributes)
        return graph.input(node, 0).shape[node.attributes.seq_dim] + 1
    if node.op == "EMBEDDING_LOOKUP" and position == 0:
        return graph.input(node, 1).shape[0]
    if node.op == "ONE_HOT" and position == 0:
        depth_value = graph.input(node, 1).data
        return None if depth_value is None else int(np.asarray(depth_value).reshape(-1)[0])
    return None


@dataclass(frozen=True)
class ImageScale:
    """Pixels 0 to 255 become (pixel - mean) / std in a floating or quantized input.

    Attributes:
        mean: subtracted.
        std: divided by. The defaults give -1 to 1.
    """

    mean: float = 127.5
    std: float = 127.5


def read_input(path: Path, tensor: Tensor, scale: ImageScale | None = None) -> Array:
    """The value of an input in a file: an array of NumPy, or a picture.

    A picture is resized to the input's height and width. uint8 inputs take its pixels as they
    are, floating ones scaled, int8 ones scaled and quantized. An array has to have the input's
    shape, but the first dimension may be missing where it is 1, and dimensions that the model
    leaves open may be anything.

    Raises:
        InputError: the file can't be read, or doesn't fit.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    if path.suffix.lower() == ".npy":
        return fit_array(_read_npy(path), tensor, str(path))
    if path.suffix.lower() in IMAGE_SUFFIXES:
        return _read_image(path, tensor, scale or ImageScale())
    known = ", ".join(sorted(IMAGE_SUFFIXES))
    raise InputError(f"{path}: not a kind of file that is read here (.npy, {known})")


def _read_npy(path: Path) -> Array:
    try:
        array = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"{path}: can't read the array: {error}") from None
    if not isinstance(array, np.ndarray):
        raise InputError(f"{path}: an archive of arrays; save one with numpy.save")
    return array


def fit_array(array: Array, tensor: Tensor, source: str) -> Array:
    """An array in an input's shape and type.

    Raises:
        InputError: it doesn't fit; says how.
    """
    dtype = tensor.dtype.numpy
    if dtype.kind == "f" and array.dtype.kind in "fiu":
        array = array.astype(dtype)
    elif array.dtype != dtype:
        same_kind = array.dtype.kind in "iu" and dtype.kind in "iu"
        if not same_kind or not np.array_equal(array.astype(dtype), array):
            raise InputError(
                f"{source}: holds {array.dtype.name}, input {tensor.name!r} takes {dtype.name}"
            )
        array = array.astype(dtype)
    wanted = tensor.shape_signature or tensor.shape
    for shaped in (array, array[np.newaxis]):
        if len(wanted) == shaped.ndim and all(
            want in (-1, have) for want, have in zip(wanted, shaped.shape, strict=True)
        ):
            return shaped
    raise InputError(
        f"{source}: shape {list(array.shape)}, input {tensor.name!r} takes {list(wanted)}"
    )


def _read_image(path: Path, tensor: Tensor, scale: ImageScale) -> Array:
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise InputError(f"{path}: pictures need Pillow; {CLI_HINT}") from None
    shape = tensor.shape[1:] if tensor.rank == 4 else tensor.shape
    modes = {1: "L", 3: "RGB", 4: "RGBA"}
    if len(shape) != 3 or shape[2] not in modes or (tensor.rank == 4 and tensor.shape[0] != 1):
        raise InputError(
            f"{path}: a picture can't fill input {tensor.name!r} of shape {list(tensor.shape)}"
            " (it takes [1, height, width, channels] with 1, 3 or 4 channels)"
        )
    height, width, channels = shape
    try:
        with Image.open(path) as image:
            resized = image.convert(modes[channels]).resize(
                (width, height), Image.Resampling.BILINEAR
            )
    except (OSError, UnidentifiedImageError, Image.DecompressionBombError) as error:
        raise InputError(f"{path}: can't read the picture: {error}") from None
    pixels = np.asarray(resized, np.uint8).reshape(tensor.shape)
    return _convert_pixels(pixels, tensor, scale, str(path))


def _convert_pixels(
    pixels: npt.NDArray[np.uint8], tensor: Tensor, scale: ImageScale, source: str
) -> Array:
    if tensor.dtype is DType.UINT8:
        return pixels
    real = (pixels.astype(np.float32) - np.float32(scale.mean)) / np.float32(scale.std)
    if tensor.dtype.is_float:
        return real.astype(tensor.dtype.numpy)
    q = tensor.quantization
    if tensor.dtype is not DType.INT8 or q is None or not q.is_per_tensor:
        raise InputError(
            f"{source}: a picture can't fill input {tensor.name!r} of type {tensor.dtype.name}"
            " (it takes FLOAT32, UINT8, or quantized INT8)"
        )
    stored: Array = np.round(real / q.scale[0]) + q.zero_point[0]
    return np.clip(stored, -128, 127).astype(np.int8)
