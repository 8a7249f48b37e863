"""QUANTIZE and DEQUANTIZE: between reals and integers, and between integers of two scales.

Source: AffineQuantize of tflite/kernels/internal/reference/quantize.h, requantize.h, dequantize.h.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tflite_vk.dtypes import DType
from tflite_vk.ir.graph import Graph, Node, Tensor
from tflite_vk.layout import Storage
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.quantization import (
    BOUNDS,
    EIGHT_BIT,
    Multiplier,
    affine,
    check_affine,
    quantize_multiplier,
)
from tflite_vk.ops.quantized.lookup import lower_lookup, whole_table
from tflite_vk.ops.registry import register
from tflite_vk.program import float_word, int_word
from tflite_vk.shape import Shape, num_vectors, vectors_per_row

_INTEGERS = frozenset({DType.INT8, DType.UINT8, DType.INT16})

_RESULTS = {
    DType.FLOAT32: _INTEGERS,
    DType.INT8: _INTEGERS,
    DType.UINT8: _INTEGERS,
    DType.INT16: frozenset({DType.INT8, DType.INT16, DType.INT32}),
    DType.INT32: frozenset({DType.INT8, DType.INT16}),
}
"""What TFLite's QUANTIZE makes of each type."""


def least_floats(tensor: Tensor) -> npt.NDArray[np.float32]:
    """The smallest float32 that QUANTIZE maps to each value of a tensor's type or above.

    QUANTIZE divides by the scale in float32 and rounds to nearest, ties away from zero.
    """
    lowest, highest = BOUNDS[tensor.dtype]
    q = tensor.quantization
    assert q is not None
    scale, zero = np.float32(q.scale[0]), q.zero_point[0]
    whole = np.arange(lowest + 1 - zero, highest + 1 - zero)
    edge = (whole - 0.5).astype(np.float32)
    # From so far below, the least float whose quotient reaches the edge, or passes it where below 0.
    guess = (edge.astype(np.float64) * np.float64(scale)).astype(np.float32)
    low = np.float32(-np.inf)
    for _ in range(4):
        guess = np.nextafter(guess, low)
    least = np.full(guess.shape, np.inf, np.float32)
    for _ in range(9):
        with np.errstate(over="ignore"):
            quotient = guess / scale
        reaches = np.where(whole > 0, quotient >= edge, quotient > edge)
        least = np.where(reaches & np.isinf(least), guess, least)
        guess = np.nextafter(guess, np.float32(np.inf))
    return np.concatenate([[low], least]).astype(np.float32)


def lower_requantize(
    ctx: LoweringContext,
    node: Node,
    source: int,
    kept_as: Storage,
    result: Tensor,
    zero: int,
    factor: Multiplier,
) -> None:
    """Add the dispatch that makes (value - zero) * factor of each integer, in the result's scale.

    Args:
        ctx: the program being made.
        node: the node.
        source: buffer in the result's shape.
        kept_as: its storage.
        result: what is written.
        zero: what a value of real 0 is in the source.
        factor: result steps per source step.
    """
    groups = num_vectors(result.shape)
    lowest, highest = BOUNDS[result.dtype]
    assert result.quantization is not None
    # Clamped to its type, uint8 is int8 with the same bits.
    target: Storage = "i8" if result.dtype is DType.UINT8 else ctx.storage(result)
    ctx.dispatch_flat(
        node,
        f"requantize_{kept_as}_{target}",
        [source, ctx.buffer(result.id)],
        invocations=groups,
        push=(
            groups,
            int_word(zero),
            factor.value,
            int_word(factor.shift),
            int_word(result.quantization.zero_point[0]),
            int_word(lowest),
            int_word(highest),
        ),
    )


@register
class Quantize(Operator):
    """Integers of a scale from reals, or from integers of another scale."""

    versions = {"QUANTIZE": 3}
    kind = "quantized"
    dtypes = _INTEGERS | {DType.FLOAT32, DType.INT32}
    notes = "one scale; exact on any device"

    def check(self, node: Node, graph: Graph) -> str | None:
        x, y = graph.input(node, 0), graph.output(node)
        if x.is_const:
            return "its input is a constant"
        if y.dtype not in _RESULTS[x.dtype]:
            return f"{x.dtype.name} to {y.dtype.name} has no kernel in TFLite"
        if (reason := check_affine(y, "output")) is not None:
            return reason
        if affine(y).scale < np.finfo(np.float32).tiny:
            return f"output has scale {affine(y).scale} (supported: normal float32 values)"
        return None if x.dtype is DType.FLOAT32 else check_affine(x, "input")

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape]:
        return [graph.input(node, 0).shape]

    def is_table(self, node: Node, graph: Graph) -> bool:
        return graph.input(node, 0).dtype in EIGHT_BIT and graph.made(node).dtype in EIGHT_BIT

    def takes_table(self, node: Node, graph: Graph) -> bool:
        return self.is_table(node, graph)

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        x, y = ctx.graph.input(node, 0), ctx.graph.output(node)
        if x.dtype is DType.FLOAT32:
            self._of_reals(node, ctx)
        elif x.dtype in EIGHT_BIT and y.dtype in EIGHT_BIT:
            table = whole_table(node, ctx.graph)
            lower_lookup(ctx, node, ctx.buffer(x.id), ctx.buffer(y.id), y.shape, table)
        else:
            assert x.quantization is not None
            assert y.quantization is not None
            factor = quantize_multiplier(x.quantization.scale[0] / y.quantization.scale[0])
            zero = x.quantization.zero_point[0]
            lower_requantize(ctx, node, ctx.buffer(x.id), ctx.storage(x), y, zero, factor)

    def _of_reals(self, node: Node, ctx: LoweringContext) -> None:
        x, y = ctx.graph.input(node, 0), ctx.graph.output(node)
        lowest, groups = BOUNDS[y.dtype][0], num_vectors(y.shape)
        assert y.quantization is not None
        scale, zero = y.quantization.scale[0], y.quantization.zero_point[0]
        least = least_floats(y)
        ctx.dispatch_flat(
            node,
            ctx.variant("quantize_i16" if y.dtype is DType.INT16 else "quantize_i8"),
            [ctx.buffer(x.id), ctx.constant(least, f"{y.name}/least"), ctx.buffer(y.id)],
            invocations=groups,
            push=(
                groups,
                int_word(lowest),
                len(least) - 1,
                float_word(1.0 / scale),
                float_word(zero - lowest + 0.5),
            ),
        )


@register
class Dequantize(Operator):
    """Reals from integers of a scale."""

    versions = {"DEQUANTIZE": 6}
    kind = "quantized"
    dtypes = _INTEGERS | {DType.FLOAT32}
    ends_in_epilogue = True
    notes = "one scale; exact"

    def check(self, node: Node, graph: Graph) -> str | None:
        x, y = graph.input(node, 0), graph.output(node)
        if y.dtype is not DType.FLOAT32:
            return f"output is {y.dtype.name} (supported: FLOAT32)"
        return check_affine(x, "input")

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape]:
        return [graph.input(node, 0).shape]

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        x, y = ctx.graph.input(node, 0), ctx.graph.output(node)
        q, groups = affine(x), num_vectors(y.shape)
        ctx.compute_flat(
            node,
            "dequantize_i16" if x.dtype is DType.INT16 else "dequantize_i8",
            [ctx.buffer(x.id)],
            ctx.buffer(y.id),
            invocations=groups,
            push=(
                groups,
                vectors_per_row(y.shape),
                q.flip,
                int_word(q.zero_point),
                float_word(q.scale),
            ),
            flops=y.num_elements,
        )
