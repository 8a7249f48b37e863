"""SVDF of int8 with an int16 memory.

Source: EvalIntegerSVDF of tflite/kernels/internal/reference/svdf.h, and Prepare of tflite/kernels/svdf.cc,
which computes its factors in float32. The fused RELU that TFLite asks for does nothing there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import SvdfAttributes
from tflite_vk.ir.graph import Graph, Node, Tensor
from tflite_vk.layout import pack, words_for
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.fully_connected import FEW_ROWS
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.quantization import Multiplier, affine, check_affine, quantize_multiplier
from tflite_vk.ops.quantized.fully_connected import lower_rows, rows_product
from tflite_vk.ops.quantized.product import lower_raw
from tflite_vk.ops.quantized.weights import Ints
from tflite_vk.ops.registry import register
from tflite_vk.ops.repack import repack_into
from tflite_vk.ops.sequences import check_states
from tflite_vk.program import int_word
from tflite_vk.shape import LANES, Shape, num_vectors, round_up, vectors_per_row

_FEATURES, _TIMES, _BIAS, _STATE = 1, 2, 3, 4


class _Parts(NamedTuple):
    """Constants of a node: [filters, inputs], [filters, memory], [units]; factors of both products."""

    features: Ints
    times: Ints
    bias: Ints
    rank: int
    newest: Multiplier
    outputs: Multiplier


def _constant(node: Node, graph: Graph, position: int, dtype: DType) -> Tensor:
    """A constant input.

    Raises:
        ValueError: it is something else.
    """
    tensor = graph.input(node, position)
    if tensor.data is None or tensor.dtype is not dtype:
        kind = "run-time" if tensor.data is None else "constant"
        raise ValueError(
            f"input {position} is a {kind} {tensor.dtype.name} (supported: constant {dtype.name})"
        )
    return tensor


def _factor(a: Tensor, b: Tensor, result: Tensor) -> Multiplier:
    scales = [np.float32(affine(t).scale) for t in (a, b, result)]
    return quantize_multiplier(float(scales[0] * scales[1] / scales[2]))


@register
class QuantizedSvdf(Operator):
    """SVDF."""

    versions = {"SVDF": 4}
    kind = "quantized"
    dtypes = frozenset({DType.INT8, DType.INT16})
    notes = "INT8 with an INT16 memory; constant weights; fused RELU, which does nothing, as in TFLite; exact"

    def check(self, node: Node, graph: Graph) -> str | None:
        return "its input is a constant" if graph.input(node, 0).is_const else None

    def _read(self, node: Node, graph: Graph) -> _Parts:
        """Everything about a node.

        Raises:
            ValueError: a part that is missing, of another type, or doesn't fit.
        """
        a = node.attributes
        assert isinstance(a, SvdfAttributes)
        if a.fused_activation_function != "RELU":
            raise ValueError(f"activation {a.fused_activation_function} (TFLite takes RELU only)")
        x, state, y = graph.input(node, 0), graph.input(node, _STATE), graph.output(node)
        if len(x.shape) != 2:
            raise ValueError(f"input has shape {list(x.shape)} (supported: rank 2)")
        types = (x.dtype, state.dtype, y.dtype)
        if types != (DType.INT8, DType.INT16, DType.INT8):
            names = ", ".join(t.name for t in types)
            raise ValueError(f"input, state and output are {names} (supported: INT8, INT16, INT8)")
        features = _constant(node, graph, _FEATURES, DType.INT8)
        times = _constant(node, graph, _TIMES, DType.INT16)
        filters = features.shape[0]
        if features.shape != (filters, x.shape[1]) or times.shape[:1] != (filters,):
            raise ValueError(f"weights {list(features.shape)} and {list(times.shape)} don't fit")
        if len(times.shape) != 2 or a.rank < 1 or filters % a.rank:
            raise ValueError(f"rank {a.rank} doesn't divide {filters} filters")
        named = ((x, "input"), (features, "weights"), (times, "time weights"), (state, "state"))
        for tensor, role in (*named, (y, "output")):
            if (reason := check_affine(tensor, role)) is not None:
                raise ValueError(reason)
        units = filters // a.rank
        bias = np.zeros(units, np.int64)
        if node.has_input(_BIAS):
            bias = np.asarray(_constant(node, graph, _BIAS, DType.INT32).data).astype(np.int64)
        if bias.shape != (units,):
            raise ValueError(f"bias has shape {list(bias.shape)} for {units} units")
        check_states(node, graph, {_STATE: (x.shape[0], filters * times.shape[1])})
        return _Parts(
            np.asarray(features.data).astype(np.int64),
            np.asarray(times.data).astype(np.int64),
            bias,
            a.rank,
            _factor(x, features, state),
            _factor(state, times, y),
        )

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape]:
        parts = self._read(node, graph)
        return [(graph.input(node, 0).shape[0], parts.features.shape[0] // parts.rank)]

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        parts = self._read(node, ctx.graph)
        x, state, y = (*(ctx.graph.input(node, i) for i in (0, _STATE)), ctx.graph.output(node))
        filters, memory = parts.times.shape
        rows, groups = x.shape[0], num_vectors(state.shape)
        added = np.zeros(round_up(filters, LANES), np.int32)
        added[:filters] = -affine(x).zero_point * parts.features.sum(axis=1)
        before, after = ctx.kept(state.id)
        moved = after
        if before == after:  # values move past each other: not in place
            moved = ctx.temporary(words_for(state.shape, "i16"), "moved state")
        ctx.dispatch_flat(
            node,
            "svdf_state_i16",
            [before, self._sums(node, ctx, parts, rows), ctx.constant(added, "zero point"), moved],
            invocations=groups,
            push=(
                *(groups, vectors_per_row(state.shape), memory, filters),
                *(vectors_per_row((filters,)), parts.newest.value, int_word(parts.newest.shift)),
            ),
        )
        if moved != after:
            repack_into(ctx, node, moved, state.shape, after, state.shape, "i16")
        ctx.dispatch_flat(
            node,
            "svdf_i8",
            [
                moved,
                ctx.constant(pack(parts.times.astype(np.int16), "i16"), "time weights"),
                ctx.constant(pack(parts.bias.astype(np.int32), "i32"), "bias"),
                ctx.buffer(y.id),
            ],
            invocations=num_vectors(y.shape),
            push=(
                *(num_vectors(y.shape), vectors_per_row(y.shape), y.shape[1]),
                *(vectors_per_row(state.shape), memory, vectors_per_row(parts.times.shape)),
                *(parts.rank, parts.outputs.value, int_word(parts.outputs.shift)),
                int_word(affine(y).zero_point),
            ),
            flops=2 * y.shape[0] * filters * memory,
        )

    def _sums(self, node: Node, ctx: LoweringContext, parts: _Parts, rows: int) -> int:
        """Add the dispatch of the inputs' products; the buffer of their sums, int32."""
        filters, inputs = parts.features.shape
        values = parts.features.reshape(filters, 1, inputs)
        sums = ctx.temporary(rows * round_up(filters, LANES), "products of the inputs")
        buffers = (ctx.buffer(node.inputs[0]), ctx.unused(), sums)
        if rows >= FEW_ROWS:
            lower_raw(ctx, node, rows_product(rows, inputs, filters), buffers, values)
        else:
            lower_rows(ctx, node, "_raw", buffers, rows, values, spec=(0, 0, 0), push=(0,) * 6)
        return sums
