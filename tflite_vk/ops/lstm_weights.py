"""Weights of an LSTM: which a node has, whether they fit, and how the kernel takes them.

Source: tflite/kernels/lstm_shared.h and lstm_eval.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tflite_vk.dtypes import DType
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops.conv_weights import pack_filter
from tflite_vk.shape import LANES, round_up

Floats = npt.NDArray[np.float32]

_VECTORS = 11
"""Vectors of the cells that the kernel takes: 4 biases, 3 peepholes, 4 norms."""


@dataclass(frozen=True)
class Positions:
    """Where a node has its tensors: first of 4 or 3 inputs in the order input, forget, cell, output."""

    input_weights: int = 1
    recurrent_weights: int = 5
    peepholes: int = 9
    biases: int = 12
    projection_weights: int = 16
    projection_bias: int = 17
    norms: int | None = 20


@dataclass(frozen=True)
class LstmWeights:
    """Weights of one direction, float32; gates in the order input, forget, cell, output.

    Attributes:
        input_weights: [cells, inputs] of each gate; no input gate makes three.
        recurrent_weights: [cells, outputs] of each gate.
        vectors: 4 biases, 3 peepholes, 4 norms, None where absent.
        projection: [outputs, cells], None where absent.
        projection_bias: None where absent.
    """

    input_weights: tuple[Floats, ...]
    recurrent_weights: tuple[Floats, ...]
    vectors: tuple[Floats | None, ...]
    projection: Floats | None = None
    projection_bias: Floats | None = None

    @property
    def cells(self) -> int:
        """Number of cells."""
        return int(self.input_weights[0].shape[0])

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return int(self.recurrent_weights[0].shape[1])

    @property
    def has_peephole(self) -> bool:
        """True where gates see the cells."""
        return self.vectors[5] is not None

    @property
    def has_layer_norm(self) -> bool:
        """True where gates are normalized."""
        return self.vectors[8] is not None

    def packed_inputs(self) -> Floats:
        """Input weights of all gates as one matrix of rows, each gate padded to whole groups."""
        return np.concatenate([_pad_rows(w) for w in self.input_weights])

    def packed_recurrent(self) -> npt.NDArray[np.generic]:
        """Recurrent weights in the layout of `pack_filter`, each gate padded to whole groups."""
        rows = np.concatenate([_pad_rows(w) for w in self.recurrent_weights])
        return pack_filter(rows[:, None, :])

    def packed_vectors(self) -> Floats:
        """The vectors, each padded to whole groups, zeros where absent, then the projection bias."""
        width = round_up(self.cells, LANES)
        packed = np.zeros(_VECTORS * width + round_up(self.outputs, LANES), np.float32)
        for i, value in enumerate(self.vectors):
            if value is not None:
                packed[i * width : i * width + value.size] = value
        if self.projection_bias is not None:
            start = _VECTORS * width
            packed[start : start + self.projection_bias.size] = self.projection_bias
        return packed

    def packed_projection(self) -> npt.NDArray[np.generic] | None:
        """Projection weights in the layout of `pack_filter`."""
        return None if self.projection is None else pack_filter(self.projection[:, None, :])


def _pad_rows(matrix: Floats) -> Floats:
    padded = np.zeros((round_up(matrix.shape[0], LANES), matrix.shape[1]), np.float32)
    padded[: matrix.shape[0]] = matrix
    return padded


def constant(node: Node, graph: Graph, position: int) -> Floats | None:
    """The value of an optional constant input.

    Raises:
        ValueError: it isn't constant, or no float.
    """
    tensor = graph.optional_input(node, position)
    if tensor is None:
        return None
    if tensor.data is None or tensor.dtype is not DType.FLOAT32:
        kind = "run-time" if tensor.data is None else "constant"
        raise ValueError(
            f"input {position} is a {kind} {tensor.dtype.name} (supported: constant FLOAT32)"
        )
    return np.asarray(tensor.data, np.float32)


def _expect(name: str, values: Sequence[Floats | None], shape: tuple[int, ...]) -> None:
    for value in values:
        if value is None:
            raise ValueError(f"{name} of some gates are missing")
        if value.shape != shape:
            raise ValueError(f"{name} have shape {list(value.shape)}, {list(shape)} fits")


Read = Callable[[Node, Graph, int], Floats | None]
"""Reads an optional constant input."""


def read_weights(
    node: Node, graph: Graph, at: Positions, inputs: int, read_one: Read = constant
) -> LstmWeights:
    """Weights of a node for so many inputs a step.

    Args:
        node: the node.
        graph: its graph.
        at: where it has its tensors.
        inputs: of a step.
        read_one: reads one of them.

    Raises:
        ValueError: some are missing, not constant, no float, or don't fit.
    """

    def read(first: int, count: int) -> list[Floats | None]:
        return [read_one(node, graph, first + i) for i in range(count)]

    input_weights, recurrent = read(at.input_weights, 4), read(at.recurrent_weights, 4)
    peepholes, biases = read(at.peepholes, 3), read(at.biases, 4)
    norms = read(at.norms, 4) if at.norms is not None else [None] * 4
    projection = read_one(node, graph, at.projection_weights)
    projection_bias = read_one(node, graph, at.projection_bias)
    forget, back = input_weights[1], recurrent[1]
    if forget is None or back is None or forget.ndim != 2 or back.ndim != 2:
        raise ValueError("weights of the forget gate are missing or no matrices")
    cells, outputs = forget.shape[0], back.shape[1]
    first = 1 if input_weights[0] is None else 0
    _expect("input weights", input_weights[first:], (cells, inputs))
    _expect("recurrent weights", recurrent[first:], (cells, outputs))
    _expect("biases", biases[first:], (cells,))
    if any(value is not None for value in peepholes):
        _expect("peephole weights", peepholes[first:], (cells,))
    if any(value is not None for value in norms):
        _expect("layer norm coefficients", norms[first:], (cells,))
    if projection is not None:
        _expect("projection weights", [projection], (outputs, cells))
    elif outputs != cells:
        raise ValueError(f"{outputs} outputs of {cells} cells need projection weights")
    if projection_bias is not None:
        _expect("projection bias", [projection_bias], (outputs,))
    return LstmWeights(
        input_weights=tuple(w for w in input_weights[first:] if w is not None),
        recurrent_weights=tuple(w for w in recurrent[first:] if w is not None),
        vectors=(*biases, *peepholes, *norms),
        projection=projection,
        projection_bias=projection_bias,
    )
