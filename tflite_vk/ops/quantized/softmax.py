"""SOFTMAX of int8, uint8 and int16, LOG_SOFTMAX and L2_NORMALIZATION of int8 and uint8, in fixed point.

Source: Softmax and SoftmaxInt16 of tflite/kernels/internal/reference/softmax.h; SoftmaxPrepare of
tflite/kernels/activations.cc; PreprocessSoftmaxScaling and CalculateInputRadius of
tflite/kernels/internal/quantization_util.cc.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import SoftmaxAttributes
from tflite_vk.ir.graph import Graph, Node, Tensor
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.fixed_point import exp_of_negative
from tflite_vk.ops.launch import fold
from tflite_vk.ops.quantization import (
    EIGHT_BIT,
    INTEGERS,
    Multiplier,
    affine,
    check_affine,
    multiply_by_quantized,
    quantize_multiplier,
)
from tflite_vk.ops.quantized.tables16 import anchors, interpolate, multiply
from tflite_vk.ops.reduction import power_of_two
from tflite_vk.ops.registry import register
from tflite_vk.ops.softmax import Softmax
from tflite_vk.program import int_word
from tflite_vk.shape import LANES, ceil_div, inner, rows, vectors_per_row

INTEGER_BITS = 5
"""Of the differences that go into exp."""

_MOST_INT16 = 1 << 16
"""Exponentials that 32 bits hold the sum of."""

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


def exp_table_int16(beta: float, scale: float) -> npt.NDArray[np.int32]:
    """exp(-beta * scale * difference) in Q0.15 for each difference 0 to 65,535, two in a word.

    Behind them the anchors of 1 / (1 + x) for 0 <= x <= 1.
    """
    whole = np.float64(65535)
    exps = anchors(10.0 / whole, 32767, 2.0 / whole, math.exp)
    inverses = anchors(1.0 / whole, -32768, 2.0 / whole, lambda x: 1.0 / (1.0 + x))
    factor = quantize_multiplier(float(np.float32(scale) * np.float32(beta)) / (10.0 / 65535.0))
    differences = multiply(-np.arange(1 << 16, dtype=np.int64), factor)
    results = interpolate(np.clip(differences + 32767, -32768, 32767), exps)
    halves = results.astype(np.int16).view(np.int32)
    return np.concatenate([halves, inverses.astype(np.int32)])


def _check_types(x: Tensor, y: Tensor) -> str | None:
    if x.is_const:
        return "its input is a constant"
    if (reason := check_affine(x, "input") or check_affine(y, "output")) is not None:
        return reason
    if x.dtype is not y.dtype:
        return f"{x.dtype.name} to {y.dtype.name} (supported: the same type)"
    return None


@register
class QuantizedSoftmax(Softmax):
    """SOFTMAX."""

    versions = {"SOFTMAX": 3}
    kind = "quantized"
    dtypes = INTEGERS
    ends_in_epilogue = False
    notes = (
        "over the innermost dimension; int8 results have scale 1/256 and zero point -128, int16 ones "
        "1/32768 and 0; exact"
    )

    def check(self, node: Node, graph: Graph) -> str | None:
        a = node.attributes
        assert isinstance(a, SoftmaxAttributes)
        x, y = graph.input(node, 0), graph.output(node)
        if (reason := _check_types(x, y)) is not None:
            return reason
        q = affine(y)
        if y.dtype is DType.INT16:
            if affine(x).zero_point or q.zero_point or abs(q.scale * 32768 - 1) > 1e-3:
                return f"output has scale {q.scale} (supported for INT16: 1/32768, zero points 0)"
            if inner(x.shape) > _MOST_INT16:
                return f"rows of {inner(x.shape)} elements (supported for INT16: {_MOST_INT16})"
            return None
        is_standard = q.zero_point == -128 and abs(q.scale * 256 - 1) <= 1e-3
        if y.dtype is DType.INT8 and not is_standard:
            return f"output has scale {q.scale} and zero point {q.zero_point} (supported: 1/256 and -128)"
        if a.beta * affine(x).scale * (1 << (31 - INTEGER_BITS)) <= 1:
            return f"beta {a.beta} times scale {affine(x).scale} is too small"
        return None

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        a = node.attributes
        assert isinstance(a, SoftmaxAttributes)
        x = ctx.graph.input(node, 0)
        if x.dtype is DType.INT16:
            table = exp_table_int16(a.beta, affine(x).scale)
            _dispatch(ctx, node, "softmax_i16", _buffers(ctx, node, table), ())
            return
        table = exp_table(a.beta, affine(x).scale)
        _dispatch(ctx, node, "softmax_i8", _buffers(ctx, node, table), ())


@register
class QuantizedLogSoftmax(Softmax):
    """LOG_SOFTMAX.

    Source: LogSoftmax of tflite/kernels/internal/reference/integer_ops/log_softmax.h and of uint8 in
    reference/log_softmax.h; PreprocessLogSoftmaxScalingExp of internal/quantization_util.cc.
    """

    versions = {"LOG_SOFTMAX": 2}
    kind = "quantized"
    dtypes = EIGHT_BIT
    ends_in_epilogue = False
    notes = (
        "over the innermost dimension; results have scale 1/16 and the highest zero point; exact"
    )

    def check(self, node: Node, graph: Graph) -> str | None:
        x, y = graph.input(node, 0), graph.output(node)
        if (reason := _check_types(x, y)) is not None:
            return reason
        q = affine(y)
        if q.scale != 1 / 16 or q.zero_point != 127:
            return f"output has scale {q.scale} (supported: 1/16, and the highest zero point)"
        if affine(x).scale * (1 << (31 - INTEGER_BITS)) <= 1:
            return f"scale {affine(x).scale} is too small"
        return None

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        scale = affine(ctx.graph.input(node, 0)).scale
        factor, most = difference_scale(1.0, scale)
        back = quantize_multiplier((1 << (31 - factor.shift)) / factor.value)
        differences = [multiply_by_quantized(-d, factor) for d in range(256)]
        table = np.concatenate([exp_table(1.0, scale), np.array(differences, np.int32)])
        push = (int_word(-most - 1), back.value, int_word(back.shift))
        _dispatch(ctx, node, "log_softmax_i8", _buffers(ctx, node, table), push)


@register
class QuantizedL2Normalization(Softmax):
    """L2_NORMALIZATION.

    Source: L2Normalization of tflite/kernels/internal/reference/integer_ops/l2normalization.h and of
    uint8 in reference/l2normalization.h, which scales the input by 128 before it rounds.
    """

    versions = {"L2_NORMALIZATION": 2}
    kind = "quantized"
    dtypes = EIGHT_BIT
    ends_in_epilogue = False
    notes = (
        "over the innermost dimension; results have scale 1/128 and the middle zero point; exact"
    )

    def check(self, node: Node, graph: Graph) -> str | None:
        x, y = graph.input(node, 0), graph.output(node)
        if (reason := _check_types(x, y)) is not None:
            return reason
        q = affine(y)
        if q.scale != 1 / 128 or q.zero_point != 0:
            return f"output has scale {q.scale} (supported: 1/128, and the middle zero point)"
        return None

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        x, y = ctx.graph.input(node, 0), ctx.graph.output(node)
        q = affine(x)
        before = 7 if x.dtype is DType.UINT8 else 0
        push = (int_word(q.zero_point), before, 7 - before)
        _dispatch(ctx, node, "l2_normalization_i8", [ctx.buffer(x.id), ctx.buffer(y.id)], push)


def _dispatch(
    ctx: LoweringContext, node: Node, shader: str, buffers: list[int], push: tuple[int, ...]
) -> None:
    x, y = ctx.graph.input(node, 0), ctx.graph.output(node)
    num_rows, groups = rows(x.shape), vectors_per_row(x.shape)
    sharers = 1 if groups <= _GROUPS_ALONE else min(_LOCAL_SIZE, power_of_two(groups))
    local_y = max(1, min(_LOCAL_SIZE // sharers, num_rows))
    ctx.dispatch(
        node,
        shader,
        buffers,
        groups=fold(ceil_div(num_rows, local_y), ctx.limits),
        spec=(sharers, local_y, 1),
        push=(num_rows, groups, (inner(x.shape) - 1) % LANES + 1, affine(x).flip, *push),
        flops=8 * y.num_elements,
    )


def _buffers(ctx: LoweringContext, node: Node, table: npt.NDArray[np.int32]) -> list[int]:
    y = ctx.graph.output(node)
    constant = ctx.constant(table, f"{y.name}/exp")
    return [ctx.buffer(node.inputs[0]), constant, ctx.buffer(y.id)]
