"""The kernel for int32 and int64 arithmetic, comparisons and logic, and what it can do.

Arithmetic shares its operators with float32: ops/elementwise.py routes by the type of the result.
"""

from __future__ import annotations

from tflite_vk.dtypes import DType
from tflite_vk.ir.graph import Node, Step, Tensor
from tflite_vk.layout import Storage
from tflite_vk.ops.broadcasting import broadcast_steps, broadcast_walk
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.division import division_words
from tflite_vk.shape import num_vectors

COMPARISONS = {
    "EQUAL": 0,
    "NOT_EQUAL": 1,
    "GREATER": 2,
    "GREATER_EQUAL": 3,
    "LESS": 4,
    "LESS_EQUAL": 5,
}
INTEGER_BINARY = {
    "ADD": 16,
    "SUB": 17,
    "MUL": 18,
    "DIV": 19,
    "MAXIMUM": 20,
    "MINIMUM": 21,
    "FLOOR_DIV": 22,
    "FLOOR_MOD": 23,
    "SQUARED_DIFFERENCE": 24,
    "POW": 27,
}
LONG_OPS = frozenset({"ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM", "FLOOR_MOD", "NEG"})
"""Arithmetic that int64 has too, which are all that TFLite's kernels have."""
NARROW_OPS = frozenset({"FLOOR_DIV", "FLOOR_MOD"})
"""Arithmetic on int8 and int16 that knows no scales."""
BITWISE = {
    "STABLEHLO_AND": 25,
    "BITWISE_XOR": 28,
    "RIGHT_SHIFT": 29,
    "STABLEHLO_SHIFT_LEFT": 30,
}
UNSIGNED_RIGHT_SHIFT = 31
LOGICAL_BINARY = {"LOGICAL_AND": 25, "LOGICAL_OR": 26}
INTEGER_UNARY = {"NEG": 32, "ABS": 33, "SIGN": 34, "RELU": 36, "RELU6": 37, "RELU_N1_TO_1": 38}
LOGICAL_NOT = 35

INTEGER_ACTIVATIONS = frozenset({"NONE", "RELU", "RELU6", "RELU_N1_TO_1"})
"""Fused activations that mean something for integers."""

_SHADERS: dict[Storage, str] = {
    "f32": "binary_integer_of_f32",
    "f16": "binary_integer_of_f16",
    "i32": "binary_integer",
    "u32": "binary_integer",
    "i64": "binary_integer_of_i64",
    "i16": "binary_integer_i16",
    "i8": "binary_integer_i8",
    "u8": "binary_integer_u8",
}


def lower_integer(ctx: LoweringContext, node: Node, code: int, operands: list[Tensor]) -> None:
    """Add the dispatch of one operator with one or two operands that broadcast to output 0."""
    output = ctx.graph.output(node)
    a, b = operands[0], operands[-1]
    steps = [broadcast_steps(t.shape, output.shape) for t in (a, b)]
    walk = broadcast_walk(output.shape, steps)
    vectors = num_vectors(output.shape)
    is_long = output.dtype is DType.INT64
    ctx.dispatch_flat(
        node,
        "binary_integer_i64" if is_long else _SHADERS[ctx.storage(a)],
        [ctx.buffer(a.id), ctx.buffer(b.id), ctx.buffer(output.id)],
        invocations=vectors,
        spec=(code,),
        push=(
            vectors,
            walk.groups_per_row,
            walk.num_dims,
            *walk.dims,
            *walk.strides[0],
            *walk.strides[1],
            walk.splat,
            *division_words((*walk.dims, walk.groups_per_row), 6),
        ),
        flops=output.num_elements,
    )


def lower_integer_chain(ctx: LoweringContext, node: Node) -> None:
    """ELEMENTWISE on integers: the one step that a fused activation makes."""
    (step,) = node.steps
    assert isinstance(step, Step)
    lower_integer(ctx, node, INTEGER_UNARY[step.op], [ctx.graph.input(node, 0)])
