"""Binary operators and comparisons of quantized tensors, with every broadcast.

Source: tflite/kernels/add.cc, sub.cc, mul.cc, maximum_minimum.cc, squared_difference.cc, comparisons.cc
and PreluPrepare of activations.cc, with the reference kernels they call. Where those compute a factor in
float32 before it becomes a double, so does this.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import ActivationAttributes, BinaryAttributes
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.layout import pack
from tflite_vk.ops.broadcasting import broadcast_steps, broadcast_walk
from tflite_vk.ops.comparison import Comparison
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.elementwise import Binary
from tflite_vk.ops.operator import NO_DIFFERENCES
from tflite_vk.ops.quantization import (
    EIGHT_BIT,
    Affine,
    Multiplier,
    activation_bounds,
    affine,
    check_activation,
    check_affine,
    is_power_of_two,
    quantize_multiplier,
    same_quantization,
)
from tflite_vk.ops.quantized.lookup import fused_table
from tflite_vk.ops.registry import register
from tflite_vk.program import int_word
from tflite_vk.shape import num_vectors

_CODES = {
    "ADD": 0,
    "SUB": 1,
    "MUL": 2,
    "MAXIMUM": 3,
    "MINIMUM": 4,
    "SQUARED_DIFFERENCE": 5,
    "PRELU": 6,
    "EQUAL": 7,
    "NOT_EQUAL": 8,
    "GREATER": 9,
    "GREATER_EQUAL": 10,
    "LESS": 11,
    "LESS_EQUAL": 12,
}
_ONE = Multiplier(0, 0)
_SAME = Multiplier(1 << 30, 1)
"""Keeps each int32 that has no more than 31 bits."""


@dataclass(frozen=True)
class Factors:
    """Fixed-point factors of a binary kernel.

    Attributes:
        left_shift: of both operands, before a and b.
        a, b: on the operands; a on PRELU's values >= 0.
        y: on the result; on PRELU's products.
    """

    left_shift: int = 0
    a: Multiplier = _ONE
    b: Multiplier = _ONE
    y: Multiplier = _ONE


def _sum_factors(a: Affine, b: Affine, y: Affine, left_shift: int) -> Factors:
    """Of ADD and SUB."""
    twice = 2.0 * max(a.scale, b.scale)
    return Factors(
        left_shift,
        quantize_multiplier(a.scale / twice),
        quantize_multiplier(b.scale / twice),
        quantize_multiplier(twice / ((1 << left_shift) * y.scale)),
    )


def _square_factors(a: Affine, b: Affine, y: Affine) -> Factors:
    twice = 2.0 * max(a.scale, b.scale)
    return Factors(
        7,
        quantize_multiplier(a.scale / twice),
        quantize_multiplier(b.scale / twice),
        quantize_multiplier(twice * twice / ((1 << 14) * y.scale)),
    )


def _product_factors(a: Affine, b: Affine, y: Affine) -> Factors:
    """Of MUL and PRELU."""
    one, two, three = (np.float32(q.scale) for q in (a, b, y))
    return Factors(
        a=quantize_multiplier(float(one / three)),
        y=quantize_multiplier(float(one * two / three)),
    )


def factors(node: Node, graph: Graph) -> Factors:
    """What a node's kernel multiplies by."""
    a, b = (affine(graph.input(node, i)) for i in range(2))
    if node.op in {"MAXIMUM", "MINIMUM"}:
        return Factors()
    made = graph.made(node)
    if made.dtype is DType.BOOL:
        if _compares_as_is(node, graph):
            return Factors(0, _SAME, _SAME)
        return Factors(8, quantize_multiplier(a.scale), quantize_multiplier(b.scale))
    y = affine(made)
    if node.op in {"ADD", "SUB"}:
        return _sum_factors(a, b, y, 15 if made.dtype is DType.INT16 else 20)
    if node.op == "SQUARED_DIFFERENCE":
        return _square_factors(a, b, y)
    return _product_factors(a, b, y)


def _compares_as_is(node: Node, graph: Graph) -> bool:
    """True for the comparisons that TFLite makes without a look at the scales."""
    is_int16 = graph.input(node, 0).dtype is DType.INT16
    return is_int16 and node.op not in {"EQUAL", "NOT_EQUAL"}


def _has_narrow_alpha(node: Node, graph: Graph) -> bool:
    """True for PRELU of int16 with a constant int8 alpha, the only one that TFLite's kernel reads."""
    x, alpha = graph.input(node, 0), graph.input(node, 1)
    is_narrow = alpha.is_const and alpha.dtype is DType.INT8
    return node.op == "PRELU" and x.dtype is DType.INT16 and is_narrow


def _check_operands(node: Node, graph: Graph) -> str | None:
    for i in range(2):
        if (reason := check_affine(graph.input(node, i), f"input {i}")) is not None:
            return reason
    if graph.input(node, 0).dtype is not graph.input(node, 1).dtype and not _has_narrow_alpha(
        node, graph
    ):
        names = " and ".join(graph.input(node, i).dtype.name for i in range(2))
        return f"its inputs are {names} (must be equal)"
    if all(graph.input(node, i).is_const for i in range(2)):
        return "both inputs are constants"
    return None


def lower_binary(ctx: LoweringContext, node: Node, shader: str) -> None:
    """Add the dispatch of a binary kernel."""
    a, b, output = ctx.graph.input(node, 0), ctx.graph.input(node, 1), ctx.graph.output(node)
    steps = [broadcast_steps(t.shape, output.shape) for t in (a, b)]
    walk = broadcast_walk(output.shape, steps)
    vectors = num_vectors(output.shape)
    qa, qb = affine(a), affine(b)
    f = factors(node, ctx.graph)
    made = ctx.graph.made(node)
    zero = lowest = highest = 0
    zeros = (qa.zero_point, qb.zero_point)
    if made.dtype is not DType.BOOL:
        attributes = node.attributes
        activation = (
            attributes.fused_activation_function
            if isinstance(attributes, ActivationAttributes)
            else "NONE"
        )
        zero = affine(made).zero_point
        lowest, highest = activation_bounds(activation, made)
    if node.op in {"MAXIMUM", "MINIMUM"}:
        zeros = (0, 0)
    second = ctx.buffer(b.id)
    if _has_narrow_alpha(node, ctx.graph):
        assert b.data is not None
        second = ctx.constant(pack(b.data.astype(np.int16), "i16"), b.name)
    buffers, spec = [ctx.buffer(a.id), second, ctx.buffer(output.id)], [_CODES[node.op]]
    if shader == "binary_i8":
        table, has_table = fused_table(ctx, node)
        buffers.append(table)
        spec.append(has_table)
    ctx.dispatch_flat(
        node,
        shader,
        buffers,
        invocations=vectors,
        spec=spec,
        push=(
            *(vectors, walk.groups_per_row, walk.num_dims),
            *(*walk.dims, *walk.strides[0], *walk.strides[1], walk.splat),
            qa.flip,
            *(int_word(z) for z in (*zeros, zero)),
            f.left_shift,
            *(int_word(w) for m in (f.a, f.b, f.y) for w in (m.value, m.shift)),
            *(int_word(lowest), int_word(highest)),
        ),
        flops=output.num_elements,
    )


@register
class QuantizedBinary(Binary):
    """Operators on two broadcast values."""

    differs = NO_DIFFERENCES
    versions = {
        "ADD": 5,
        "MAXIMUM": 4,
        "MINIMUM": 4,
        "MUL": 7,
        "PRELU": 1,
        "SQUARED_DIFFERENCE": 2,
        "SUB": 5,
    }
    kind = "quantized"
    dtypes = frozenset({DType.INT8, DType.UINT8, DType.INT16})
    ends_in_epilogue = False
    notes = "exact; SQUARED_DIFFERENCE of INT8 only; alpha of INT16 in PRELU is a constant INT8"

    def check(self, node: Node, graph: Graph) -> str | None:
        output = graph.output(node)
        reason = _check_operands(node, graph) or check_affine(output, "output")
        if reason is not None:
            return reason
        dtype = output.dtype
        if graph.input(node, 0).dtype is not dtype:
            return f"{graph.input(node, 0).dtype.name} to {dtype.name} (supported: the same type)"
        attributes = node.attributes
        if isinstance(attributes, ActivationAttributes):
            reason = check_activation(attributes.fused_activation_function)
            if reason is not None:
                return reason
        return _check_type(node, graph) or _check_factors(node, graph)

    def takes_table(self, node: Node, graph: Graph) -> bool:
        return graph.made(node).dtype in EIGHT_BIT

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        is_wide = ctx.graph.made(node).dtype is DType.INT16
        lower_binary(ctx, node, "binary_i16" if is_wide else "binary_i8")


def _check_type(node: Node, graph: Graph) -> str | None:
    tensors = [graph.input(node, 0), graph.input(node, 1), graph.output(node)]
    dtype = tensors[2].dtype
    if node.op in {"MAXIMUM", "MINIMUM"}:
        if not all(same_quantization(t, tensors[2]) for t in tensors):
            return "inputs and output differ in scale or zero point (supported: equal ones)"
        return None
    if dtype is DType.UINT8 and node.op == "SQUARED_DIFFERENCE":
        return "SQUARED_DIFFERENCE of UINT8 has no kernel in TFLite (supported: INT8)"
    if dtype is DType.INT16:
        if node.op == "SQUARED_DIFFERENCE":
            return f"{node.op} of INT16 has no kernel (supported: INT8)"
        if node.op == "PRELU" and not _has_narrow_alpha(node, graph):
            return f"alpha of INT16 is {tensors[1].dtype.name} (supported: a constant INT8)"
        if any(affine(t).zero_point for t in tensors if t.dtype is DType.INT16):
            return "INT16 with a zero point (supported: 0)"
        is_older = isinstance(node.attributes, BinaryAttributes) and node.attributes.pot_scale_int16
        if is_older and all(is_power_of_two(affine(t).scale) for t in tensors):
            return "INT16 with power-of-two scales by TFLite's older arithmetic"
    return None


def _check_factors(node: Node, graph: Graph) -> str | None:
    f = factors(node, graph)
    if node.op in {"ADD", "SUB", "SQUARED_DIFFERENCE"} and f.y.shift > 0:
        return "its output scale is too small for TFLite's own arithmetic"
    if f.a.shift > 30 or f.y.shift > 30:
        return "its output scale is too small for 32-bit arithmetic"
    return None


@register
class QuantizedComparison(Comparison):
    """Which elements are equal, less or greater."""

    kind = "quantized"
    dtypes = frozenset({DType.INT8, DType.UINT8, DType.INT16, DType.BOOL})
    notes = (
        "scales may differ, those of INT16 only in EQUAL and NOT_EQUAL; exact, which includes TFLite's "
        "rounding of small scales"
    )

    def check(self, node: Node, graph: Graph) -> str | None:
        if (reason := _check_operands(node, graph)) is not None:
            return reason
        if graph.output(node).dtype is not DType.BOOL:
            return f"output 0 is {graph.output(node).dtype.name} (supported: BOOL)"
        a, b = (graph.input(node, i) for i in range(2))
        if a.dtype is DType.INT16 and (affine(a).zero_point or affine(b).zero_point):
            return "INT16 with a zero point (supported: 0)"
        if _compares_as_is(node, graph):
            if same_quantization(a, b):
                return None
            return (
                "inputs of INT16 differ in scale, which TFLite doesn't heed (supported: equal ones)"
            )
        if any(affine(t).scale >= 1.0 for t in (a, b)):
            return "a scale of 1 or more lies outside TFLite's own arithmetic"
        return None

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        is_wide = ctx.graph.input(node, 0).dtype is DType.INT16
        lower_binary(ctx, node, "compare_i16" if is_wide else "compare_i8")
