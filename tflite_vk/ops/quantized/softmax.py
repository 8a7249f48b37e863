"""SOFTMAX of int8 and uint8 in fixed point.

Source: Softmax of tflite/kernels/internal/reference/softmax.h; SoftmaxPrepare of
tflite/kernels/activations.cc; PreprocessSoftmaxScaling and CalculateInputRadius of
tflite/kernels/internal/quantization_util.cc.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import SoftmaxAttributes
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.fixed_point import exp_of_negative
from tflite_vk.ops.launch import fold
from tflite_vk.ops.quantization import (
    EIGHT_BIT,
    Multiplier,
    affine,
    check_affine,
    multiply_by_quantized,
    quantize_multiplier,
)
from tflite_vk.ops.reduction import power_of_two
from tflite_vk.ops.registry import register
from tflite_vk.ops.softmax import Softmax
from tflite_vk.shape import LANES, ceil_div, inner, rows, vectors_per_row

INTEGER_BITS = 5
"""Of the differences that go into exp."""

_LOCAL_SIZE = 64
_GROUPS_ALONE = 8
"""A row of so few groups is left to one invocation."""


def difference_scale(beta: float, scale: float) -> tuple[Multiplier, int]:
    """Factor from differences of inputs to Q5.26, and the largest difference that counts."""
    real = min(beta * scale * (1 << (31 - INTEGER_BITS)), (1 << 31) - 1.0)
    factor = quantize_multiplier(real)
    radius = ((1 << INTEGER_BITS) - 1) * (1 << (31 - INTEGER_BITS)) / (1 << factor.shift)
    return factor, math.floor(radius)


def exp_table(beta: float, scale: float) -> npt.NDArray[np.int32]:
    """exp(-beta * scale * difference) in Q0.31 for each difference 0 to 255."""
    factor, most = difference_scale(beta, scale)
    table = [
        exp_of_negative(multiply_by_quantized(-difference, factor), INTEGER_BITS)
        if difference <= most
        else 0
        for difference in range(256)
    ]
    return np.array(table, np.int32)


@register
class QuantizedSoftmax(Softmax):
    """SOFTMAX."""

    versions = {"SOFTMAX": 3}
    kind = "quantized"
    dtypes = EIGHT_BIT
    ends_in_epilogue = False
    notes = "over the innermost dimension; int8 results have scale 1/256 and zero point -128; exact"

    def check(self, node: Node, graph: Graph) -> str | None:
        a = node.attributes
        assert isinstance(a, SoftmaxAttributes)
        x, y = graph.input(node, 0), graph.output(node)
        if x.is_const:
            return "its input is a constant"
        if (reason := check_affine(x, "input") or check_affine(y, "output")) is not None:
            return reason
        if x.dtype is not y.dtype:
            return f"{x.dtype.name} to {y.dtype.name} (supported: the same type)"
        q = affine(y)
        is_standard = q.zero_point == -128 and abs(q.scale * 256 - 1) <= 1e-3
        if y.dtype is DType.INT8 and not is_standard:
            return f"output has scale {q.scale} and zero point {q.zero_point} (supported: 1/256 and -128)"
        if a.beta * affine(x).scale * (1 << (31 - INTEGER_BITS)) <= 1:
            return f"beta {a.beta} times scale {affine(x).scale} is too small"
        return None

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        a = node.attributes
        assert isinstance(a, SoftmaxAttributes)
        x, y = ctx.graph.input(node, 0), ctx.graph.output(node)
        q = affine(x)
        num_rows, groups = rows(x.shape), vectors_per_row(x.shape)
        sharers = 1 if groups <= _GROUPS_ALONE else min(_LOCAL_SIZE, power_of_two(groups))
        local_y = max(1, min(_LOCAL_SIZE // sharers, num_rows))
        ctx.dispatch(
            node,
            "softmax_i8",
            [
                ctx.buffer(x.id),
                ctx.constant(exp_table(a.beta, q.scale), f"{y.name}/exp"),
                ctx.buffer(y.id),
            ],
            groups=fold(ceil_div(num_rows, local_y), ctx.limits),
            spec=(sharers, local_y, 1),
            push=(num_rows, groups, (inner(x.shape) - 1) % LANES + 1, q.flip),
            flops=8 * y.num_elements,
        )
