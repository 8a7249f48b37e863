"""LSTM of int8 with int16 gates and cells, over sequences or one step ("8x8_16").

Source: EvalInteger8x8_16 of tflite/kernels/lstm_eval.cc; PopulateQuantizedLstmParams8x8_16 and
PopulatePrecomputedZPTimesWeightsWithBias of unidirectional_sequence_lstm.cc. Factors are computed in
float32, as there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import LstmAttributes
from tflite_vk.ir.graph import Graph, Node, Tensor
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.fully_connected import FEW_ROWS
from tflite_vk.ops.launch import fold
from tflite_vk.ops.lstm_basic import is_basic
from tflite_vk.ops.lstm_lowering import States
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.quantization import (
    Multiplier,
    affine,
    check_affine,
    is_power_of_two,
    quantize_multiplier,
)
from tflite_vk.ops.quantized import fixed16
from tflite_vk.ops.quantized.fully_connected import lower_rows, rows_product
from tflite_vk.ops.quantized.product import lower_raw
from tflite_vk.ops.quantized.tables16 import words_of
from tflite_vk.ops.quantized.weights import Ints, pack_dot4
from tflite_vk.ops.registry import register
from tflite_vk.ops.sequences import Sequences, check_states, local_size
from tflite_vk.program import int_word
from tflite_vk.shape import LANES, Shape, ceil_div, round_up

F32 = np.float32

_INPUT, _OUTPUT_STATE, _CELL_STATE = 0, 18, 19
_INPUT_WEIGHTS, _RECURRENT_WEIGHTS, _PEEPHOLES, _BIASES = 1, 5, 9, 12
_PROJECTION, _PROJECTION_BIAS = 16, 17
_NORMS = 20
_HIDDEN = 4
"""Of the intermediates: what the cells give, before a projection."""
_INTERMEDIATES = 5
_MOST_TANH_BITS = 6
_GATE_BITS = 3
"""Integer bits of a gate: Q3.12."""
_GATE_SCALE = F32(2.0**-12)
_NORM_BITS = 12
_MOST_CELLS = 1 << 15
"""Whose sum 32 bits hold."""


@dataclass(frozen=True)
class Gate:
    """One gate.

    Attributes:
        inputs, recurrent: weights [cells, inputs] and [cells, outputs].
        input_bias, recurrent_bias: with all that the zero points add.
        input_factor, recurrent_factor: from sums to the gate's steps: Q3.12 without a normalization.
        peephole: weights of the cells; None for none.
        peephole_factor: from products to the gate's steps.
        norm: coefficients and biases of a layer normalization; None for none.
        norm_factor: from normalized values to Q3.12.
        variance_guard: variance where there is none.
    """

    inputs: Ints
    recurrent: Ints
    input_bias: Ints
    recurrent_bias: Ints
    input_factor: Multiplier
    recurrent_factor: Multiplier
    peephole: Ints | None
    peephole_factor: Multiplier
    norm: tuple[Ints, Ints] | None
    norm_factor: Multiplier
    variance_guard: int


@dataclass(frozen=True)
class Cells:
    """An LSTM as the kernel takes it.

    Attributes:
        gates: input, forget, cell, output; no input gate makes three.
        cell_exponent: a cell's scale is 2 to it.
        hidden_factor, hidden_zero: of products of output gate and tanh.
        projection: [outputs, cells]; None for none.
        projection_bias: with all that the zero point of its input adds.
        projection_factor: from sums to outputs.
        output_zero: zero point of the outputs.
        cell_clip, projection_clip: 0 for none.
    """

    gates: tuple[Gate, ...]
    cell_exponent: int
    hidden_factor: Multiplier
    hidden_zero: int
    projection: Ints | None
    projection_bias: Ints
    projection_factor: Multiplier
    output_zero: int
    cell_clip: int
    projection_clip: int

    @property
    def cells(self) -> int:
        """Number of cells."""
        return int(self.gates[0].inputs.shape[0])

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return int(self.gates[0].recurrent.shape[1])

    @property
    def has_peephole(self) -> bool:
        """True where gates see the cells."""
        return self.gates[-1].peephole is not None

    @property
    def has_layer_norm(self) -> bool:
        """True where gates are normalized."""
        return self.gates[-1].norm is not None


def _constant(
    node: Node, graph: Graph, position: int, dtype: DType, shape: Shape | None
) -> Tensor | None:
    """An optional constant input.

    Raises:
        ValueError: it isn't constant, or has another type or shape.
    """
    tensor = graph.optional_input(node, position)
    if tensor is None:
        return None
    if tensor.data is None or tensor.dtype is not dtype:
        kind = "run-time" if tensor.data is None else "constant"
        raise ValueError(
            f"input {position} is a {kind} {tensor.dtype.name} (supported: constant {dtype.name})"
        )
    if shape is not None and tensor.shape != shape:
        raise ValueError(f"input {position} has shape {list(tensor.shape)}, {list(shape)} fits")
    return tensor


def _needed(tensor: Tensor | None, what: str) -> Tensor:
    if tensor is None:
        raise ValueError(f"{what} of some gates are missing")
    if (reason := check_affine(tensor, what)) is not None:
        raise ValueError(reason)
    return tensor


def _scale(tensor: Tensor) -> np.float32:
    return F32(affine(tensor).scale)


def _ints(tensor: Tensor) -> Ints:
    assert tensor.data is not None
    return tensor.data.astype(np.int64)


def _clip(limit: float, scale: np.float32, most: int) -> int:
    return int(min(F32(limit) / scale, F32(most))) if limit > 0 else 0


def _read_gate(node: Node, graph: Graph, at: int, cells: int, outputs: int) -> Gate:
    """Gate number `at` in the order input, forget, cell, output."""
    x, h, c = (graph.input(node, i) for i in (_INPUT, _OUTPUT_STATE, _CELL_STATE))
    weights = _needed(
        _constant(node, graph, _INPUT_WEIGHTS + at, DType.INT8, (cells, x.shape[-1])),
        "input weights",
    )
    back = _needed(
        _constant(node, graph, _RECURRENT_WEIGHTS + at, DType.INT8, (cells, outputs)),
        "recurrent weights",
    )
    bias = _constant(node, graph, _BIASES + at, DType.INT32, (cells,))
    if bias is None:
        raise ValueError("biases of some gates are missing")
    # The cell gate has none: the three stand for input, forget and output.
    peephole = None
    if at != 2 and node.has_input(_PEEPHOLES + 2):
        place = _PEEPHOLES + min(at, 2)
        found = _constant(node, graph, place, DType.INT16, (cells,))
        peephole = _needed(found, "peephole weights")
    norm = None
    step, norm_scale = _GATE_SCALE, F32(1)
    if _has_norms(node):
        found = _constant(node, graph, _NORMS + at, DType.INT16, (cells,))
        coefficients = _needed(found, "layer norm coefficients")
        norm, norm_scale = (_ints(coefficients), _ints(bias)), _scale(coefficients)
        between = node.intermediates[at]
        if between is None or not between.scale[0] > 0:
            raise ValueError(f"its intermediate tensor {at} has no scale")
        step = F32(between.scale[0])
    peephole_scale = 0.0
    if peephole is not None:
        cell_scale = 2.0 ** _exponent(c)
        peephole_scale = float(F32(cell_scale * float(_scale(peephole)) / float(step)))
    factor = quantize_multiplier(float(norm_scale))
    added = 0 if norm is not None else _ints(bias)
    return Gate(
        inputs=_ints(weights),
        recurrent=_ints(back),
        input_bias=added - affine(x).zero_point * _ints(weights).sum(axis=1),
        recurrent_bias=-affine(h).zero_point * _ints(back).sum(axis=1),
        input_factor=quantize_multiplier(float(_scale(weights) * _scale(x) / step)),
        recurrent_factor=quantize_multiplier(float(_scale(back) * _scale(h) / step)),
        peephole=None if peephole is None else _ints(peephole),
        peephole_factor=quantize_multiplier(peephole_scale),
        norm=norm,
        norm_factor=Multiplier(factor.value, factor.shift + _NORM_BITS),
        variance_guard=max(1, int(F32(10000) * norm_scale)),
    )


def _has_norms(node: Node) -> bool:
    return node.has_input(_NORMS + 1)


def _exponent(cell: Tensor) -> int:
    return round(math.log2(affine(cell).scale))


def _check_node(node: Node, graph: Graph) -> LstmAttributes:
    """Attributes of a node whose tensors have the types of this kernel.

    Raises:
        ValueError: a part that isn't supported.
    """
    a = node.attributes
    assert isinstance(a, LstmAttributes)
    if is_basic(node):
        raise ValueError("kernel_type BASIC of integers (supported: FULL)")
    if a.diagonal_recurrent_tensors:
        raise ValueError("diagonal_recurrent_tensors is set (supported: full matrices)")
    if len(node.inputs) not in (20, 24) or len(node.outputs) != 1:
        raise ValueError(f"has {len(node.inputs)} inputs (supported: 20 or 24, and 1 output)")
    if len(node.intermediates) != _INTERMEDIATES:
        raise ValueError(
            f"has {len(node.intermediates)} intermediate tensors (supported: {_INTERMEDIATES})"
        )
    if a.fused_activation_function != "TANH":
        raise ValueError(f"activation {a.fused_activation_function} of integers (supported: TANH)")
    for position, dtype in (
        (_INPUT, DType.INT8),
        (_OUTPUT_STATE, DType.INT8),
        (_CELL_STATE, DType.INT16),
    ):
        tensor = graph.optional_input(node, position)
        if tensor is None or tensor.dtype is not dtype:
            raise ValueError(f"input {position} must be {dtype.name}")
        if (reason := check_affine(tensor, f"input {position}")) is not None:
            raise ValueError(reason)
    if graph.output(node).dtype is not DType.INT8:
        raise ValueError(f"output is {graph.output(node).dtype.name} (supported: INT8)")
    if (reason := check_affine(graph.output(node), "output")) is not None:
        raise ValueError(reason)
    cell = graph.input(node, _CELL_STATE)
    if not is_power_of_two(affine(cell).scale) or affine(cell).zero_point:
        raise ValueError("cell state has a scale that is no power of two, or a zero point")
    if not 0 <= 15 + _exponent(cell) <= _MOST_TANH_BITS:
        raise ValueError(f"cell state has scale {affine(cell).scale} (supported: 2^-15 to 2^-9)")
    return a


def read_cells(node: Node, graph: Graph) -> tuple[Cells, Sequences]:
    """Everything about a node.

    Raises:
        ValueError: a part that isn't supported or doesn't fit.
    """
    a = _check_node(node, graph)
    shape = graph.input(node, _INPUT).shape
    rank = 2 if node.op == "LSTM" else 3
    if len(shape) != rank:
        raise ValueError(f"input has shape {list(shape)} (supported: rank {rank})")
    sequences = Sequences.of(shape, time_major=a.time_major and rank == 3)
    h, c, y = (*(graph.input(node, i) for i in (_OUTPUT_STATE, _CELL_STATE)), graph.output(node))
    cells, outputs = c.shape[-1], h.shape[-1]
    check_states(
        node,
        graph,
        {_OUTPUT_STATE: (sequences.count, outputs), _CELL_STATE: (sequences.count, cells)},
    )
    if cells > _MOST_CELLS:
        raise ValueError(f"{cells} cells (supported: {_MOST_CELLS})")
    first = 0 if node.has_input(_INPUT_WEIGHTS) else 1
    gates = tuple(_read_gate(node, graph, at, cells, outputs) for at in range(first, 4))
    projection = _constant(node, graph, _PROJECTION, DType.INT8, (outputs, cells))
    if projection is None and outputs != cells:
        raise ValueError(f"{outputs} outputs of {cells} cells need projection weights")
    if projection is not None and gates[-1].peephole is not None and outputs != cells:
        # TFLite's kernel counts outputs where it means cells.
        raise ValueError("peepholes with a projection to another size")
    hidden = node.intermediates[_HIDDEN]
    if hidden is None or not hidden.scale[0] > 0:
        raise ValueError("its intermediate tensor 4 has no scale")
    zero, factor = hidden.zero_point[0], Multiplier(0, 0)
    bias = np.zeros(outputs, np.int64)
    if projection is not None:
        if (reason := check_affine(projection, "projection weights")) is not None:
            raise ValueError(reason)
        added = _constant(node, graph, _PROJECTION_BIAS, DType.INT32, (outputs,))
        bias = zero * _ints(projection).sum(axis=1)
        if added is not None:
            bias = bias + _ints(added)
        real = _scale(projection) * F32(hidden.scale[0]) / _scale(h)
        factor = quantize_multiplier(float(real))
    hidden_scale = float(F32(2.0**-15 / float(F32(hidden.scale[0])) * 2.0**-15))
    return Cells(
        gates=gates,
        cell_exponent=_exponent(c),
        hidden_factor=quantize_multiplier(hidden_scale),
        hidden_zero=zero if projection is None else -zero,
        projection=None if projection is None else _ints(projection),
        projection_bias=bias,
        projection_factor=factor,
        output_zero=affine(h).zero_point,
        cell_clip=_clip(a.cell_clip, _scale(c), 32767),
        projection_clip=_clip(a.proj_clip, _scale(y), 127),
    ), sequences


def lstm_constants(cells: Cells) -> npt.NDArray[np.int32]:
    """Factors and vectors as lstm_i8.comp reads them."""
    width = round_up(cells.cells, LANES)
    factors = [
        (
            *(w for f in (g.input_factor, g.recurrent_factor) for w in (f.value, f.shift)),
            *(w for f in (g.peephole_factor, g.norm_factor) for w in (f.value, f.shift)),
            *(g.variance_guard, 0, 0, 0),
        )
        for g in cells.gates
    ]
    vectors = [g.input_bias for g in cells.gates] + [g.recurrent_bias for g in cells.gates]
    if cells.has_peephole:
        none = np.zeros(0, np.int64)
        vectors += [none if g.peephole is None else g.peephole for g in cells.gates]
    norms = [g.norm for g in cells.gates if g.norm is not None]
    vectors += [coefficients for coefficients, _ in norms] + [biases for _, biases in norms]
    rows = np.zeros((len(vectors), width), np.int64)
    for i, vector in enumerate(vectors):
        rows[i, : len(vector)] = vector
    last = np.zeros(round_up(cells.outputs, LANES), np.int64)
    last[: cells.outputs] = cells.projection_bias
    whole = np.concatenate([np.array(factors, np.int64).reshape(-1), rows.reshape(-1), last])
    # Sums wrap as TFLite's do.
    words: npt.NDArray[np.int32] = (whole & 0xFFFFFFFF).astype(np.uint32).view(np.int32)
    return words


def _tables(cell_exponent: int) -> npt.NDArray[np.uint32]:
    values = np.arange(-(1 << 15), 1 << 15, dtype=np.int64)
    results = (
        fixed16.logistic(values, _GATE_BITS),
        fixed16.tanh(values, _GATE_BITS),
        fixed16.tanh(values, 15 + cell_exponent),
    )
    return np.concatenate([words_of(r) for r in results])


def _stacked(matrices: Sequence[Ints]) -> Ints:
    """Matrices of the gates above one another, each padded to whole groups."""
    rows = round_up(matrices[0].shape[0], LANES)
    stacked = np.zeros((len(matrices), rows, matrices[0].shape[1]), np.int64)
    stacked[:, : matrices[0].shape[0]] = matrices
    return stacked.reshape(len(matrices) * rows, 1, -1)


@register
class QuantizedLstm(Operator):
    """UNIDIRECTIONAL_SEQUENCE_LSTM, and LSTM as one step of it."""

    versions = {"UNIDIRECTIONAL_SEQUENCE_LSTM": 4, "LSTM": 4}
    kind = "quantized"
    dtypes = frozenset({DType.INT8, DType.INT16})
    notes = (
        "INT8 with INT16 cells and five intermediate tensors; constant weights; peephole, projection, "
        "layer norm, coupled gates; exact"
    )

    def check(self, node: Node, graph: Graph) -> str | None:
        return "its input is a constant" if graph.input(node, 0).is_const else None

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape]:
        cells, _ = read_cells(node, graph)
        return [(*graph.input(node, 0).shape[:-1], cells.outputs)]

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        cells, sequences = read_cells(node, ctx.graph)
        gates, count = len(cells.gates), sequences.count
        cell_groups = ceil_div(cells.cells, LANES)
        output_groups = ceil_div(cells.outputs, LANES)
        rows = sequences.steps * count
        sums = self._input_sums(node, ctx, cells, rows)
        recurrent = pack_dot4(_stacked([g.recurrent for g in cells.gates]))
        projection = ctx.unused()
        if cells.projection is not None:
            packed = pack_dot4(cells.projection[:, None, :])
            projection = ctx.constant(packed, "projection")
        states = States.kept(ctx, node.inputs[_OUTPUT_STATE], node.inputs[_CELL_STATE])
        scratch = count * (6 * cell_groups + output_groups) * LANES
        ctx.dispatch(
            node,
            "lstm_i8",
            [
                sums,
                ctx.constant(recurrent, "recurrent weights"),
                ctx.constant(lstm_constants(cells), "factors and biases"),
                projection,
                *states.buffers,
                ctx.temporary(scratch, "gates and cells"),
                ctx.buffer(node.outputs[0]),
                ctx.constant(_tables(cells.cell_exponent), "logistic and tanh"),
            ],
            groups=fold(count, ctx.limits),
            spec=(
                *(local_size(gates * cell_groups, ctx.device), 1, 1),
                gates,
                int(cells.has_peephole),
                int(cells.projection is not None),
                int(cells.has_layer_norm),
            ),
            push=(
                *(count, sequences.steps, cells.cells, cell_groups, output_groups),
                *sequences.strides,
                30 + cells.cell_exponent,
                *(cells.cell_clip, cells.projection_clip),
                *(cells.hidden_factor.value, int_word(cells.hidden_factor.shift)),
                int_word(cells.hidden_zero),
                *(cells.projection_factor.value, int_word(cells.projection_factor.shift)),
                int_word(cells.output_zero),
            ),
            flops=2 * rows * gates * cells.cells * cells.outputs,
        )

    def _input_sums(self, node: Node, ctx: LoweringContext, cells: Cells, rows: int) -> int:
        """Add the dispatch that multiplies all inputs with the weights of all gates."""
        source = ctx.graph.input(node, _INPUT)
        values = _stacked([g.inputs for g in cells.gates])
        outputs, _, inputs = values.shape
        sums = ctx.temporary(rows * outputs, "products of the inputs")
        buffers = (ctx.buffer(source.id), ctx.unused(), sums)
        if rows >= FEW_ROWS:
            lower_raw(ctx, node, rows_product(rows, inputs, outputs), buffers, values)
        else:
            lower_rows(ctx, node, "_raw", buffers, rows, values, spec=(0, 0, 0), push=(0,) * 6)
        return sums
