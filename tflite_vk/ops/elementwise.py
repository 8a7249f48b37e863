"""Elementwise operators: one value in, or two that broadcast as NumPy broadcasts.

Most reach lowering as ELEMENTWISE, the chain that the passes make of them; a binary operator
whose operands broadcast in the middle keeps its name and runs `binary_broadcast`. Integers
go to a kernel of their own (ops/integer.py) and are never fused.
"""

from __future__ import annotations

from collections.abc import Sequence

from tflite_vk.dtypes import DType
from tflite_vk.epilogue import BINARY_CODES, LIGHT_OPS
from tflite_vk.ir.attributes import ActivationAttributes
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.integer import (
    INTEGER_ACTIVATIONS,
    INTEGER_BINARY,
    INTEGER_UNARY,
    LONG_OPS,
    NARROW_OPS,
    lower_integer,
    lower_integer_chain,
)
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.registry import MAX_RANK, register
from tflite_vk.shape import (
    Shape,
    broadcast,
    inner,
    num_vectors,
    pad_rank,
    vectors_per_row,
)

_INFINITIES = (
    "float infinities stay what they are, so that an overflow is seen: TFLite's reference kernels clamp them to"
    " the largest float"
)
_INTEGERS = frozenset({DType.INT32, DType.INT64})
_NARROW = frozenset({DType.INT8, DType.INT16})
FLOAT_OR_INT = _INTEGERS | {DType.FLOAT32}
_DIVISIONS = frozenset({"DIV", "FLOOR_DIV", "FLOOR_MOD"})
_TAKES_ZERO = frozenset({("DIV", DType.FLOAT32), ("FLOOR_MOD", DType.FLOAT32)})


@register
class Unary(Operator):
    """Functions of one value."""

    versions = {
        "ABS": 5,
        "CEIL": 1,
        "COS": 1,
        "ELU": 1,
        "EXP": 2,
        "FLOOR": 1,
        "GELU": 3,
        "HARD_SWISH": 1,
        "LEAKY_RELU": 2,
        "LOG": 2,
        "LOGISTIC": 3,
        "NEG": 2,
        "RELU": 3,
        "RELU6": 3,
        "RELU_0_TO_1": 1,
        "RELU_N1_TO_1": 1,
        "ROUND": 1,
        "RSQRT": 3,
        "SIGN": 2,
        "SIN": 1,
        "SQRT": 2,
        "SQUARE": 1,
        "TANH": 3,
        "ELEMENTWISE": 1,
    }
    dtypes = FLOAT_OR_INT
    ends_in_epilogue = True
    notes = "INT32 in ABS, NEG and SIGN, INT64 in NEG"
    differs = {
        **dict.fromkeys(
            ("ELU", "EXP", "LOGISTIC", "TANH"),
            "within 1e-5 of the result: Vulkan promises no more of exponentials",
        ),
        "GELU": "within 3e-7 of the input: TFLite too adds 1 to a function near -1, in float32",
    }

    def check(self, node: Node, graph: Graph) -> str | None:
        if node.op == "ELEMENTWISE":
            return None
        source, dtype = graph.input(node, 0), graph.output(node).dtype
        if source.is_const:
            return "its input is a constant"
        if source.dtype is not dtype:
            return f"input 0 is {source.dtype.name}, the output {dtype.name} (must be equal)"
        if dtype is DType.INT64 and node.op not in LONG_OPS:
            return "output 0 is INT64 (supported: FLOAT32, INT32)"
        if dtype in _INTEGERS and node.op not in {"ABS", "NEG", "SIGN"}:
            return f"output 0 is {dtype.name} (supported: FLOAT32)"
        return None

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape]:
        return [graph.input(node, 0).shape]

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        output = ctx.graph.output(node)
        if output.dtype in _INTEGERS:
            if node.op == "ELEMENTWISE":
                lower_integer_chain(ctx, node)
            else:
                lower_integer(ctx, node, INTEGER_UNARY[node.op], [ctx.graph.input(node, 0)])
            return
        vectors = num_vectors(output.shape)
        is_widening = not ctx.half and _reads_half(node, ctx)
        target = ctx.buffer(output.id)
        with ctx.precision(half=ctx.half or is_widening):
            ctx.compute_flat(
                node,
                "elementwise_wide" if is_widening else "elementwise",
                [ctx.buffer(node.inputs[0])],
                target,
                invocations=vectors,
                push=(vectors, vectors_per_row(output.shape)),
                flops=output.num_elements * len(node.steps),
            )


def _reads_half(node: Node, ctx: LoweringContext) -> bool:
    """True where all that a node reads lies there as float16 only."""
    tensors = [ctx.graph.tensors[t] for t in node.reads]
    return all(
        ctx.stored_as(t.id) == "f16" if t.data is None else t.num_elements == 1 for t in tensors
    )


def broadcast_strides(operand: Shape, result: Shape) -> tuple[int, ...]:
    """Groups of four lanes to step in an operand, per outer dimension of the result.

    Both shapes have rank MAX_RANK; a dimension that broadcasts steps by zero.
    """
    strides = []
    step = vectors_per_row(operand)
    for dim in reversed(operand[:-1]):
        strides.append(0 if dim == 1 else step)
        step *= dim
    assert len(operand) == len(result) == MAX_RANK
    return tuple(reversed(strides))


@register
class Binary(Operator):
    """Operators on two broadcast values."""

    versions = {
        "ADD": 5,
        "ATAN2": 1,
        "DIV": 2,
        "FLOOR_DIV": 3,
        "FLOOR_MOD": 2,
        "MAXIMUM": 4,
        "MINIMUM": 4,
        "MUL": 7,
        "POW": 1,
        "PRELU": 1,
        "SQUARED_DIFFERENCE": 2,
        "SUB": 5,
    }
    dtypes = FLOAT_OR_INT | _NARROW
    ends_in_epilogue = True
    notes = (
        "either operand may be a constant; PRELU's alpha may be any tensor that broadcasts to the"
        " input; INT32 except in ATAN2 and PRELU, with a fused RELU, RELU6 or RELU_N1_TO_1; INT64 in ADD,"
        " SUB, MUL, MAXIMUM, MINIMUM and FLOOR_MOD; INT8 and INT16 without scales in FLOOR_DIV and FLOOR_MOD;"
        " no constant divisor with a zero at which TFLite stops"
    )
    differs = {
        **dict.fromkeys(
            ("ADD", "SUB", "MUL"),
            _INFINITIES,
        ),
        "DIV": f"{_INFINITIES}; an INT32 divisor of zero while running gives 0: TFLite stops with an error, which a device can't",
        **dict.fromkeys(
            ("FLOOR_DIV", "FLOOR_MOD"),
            "a divisor of zero while running gives any integer, in FLOOR_DIV of floats an infinity or NaN:"
            " TFLite stops with an error, which a device can't",
        ),
        "POW": "within 1e-5 of the result: Vulkan promises no more of exponentials",
    }

    def check(self, node: Node, graph: Graph) -> str | None:
        if all(graph.input(node, i).is_const for i in range(2)):
            return "both inputs are constants"
        dtype = graph.output(node).dtype
        for i in range(2):
            tensor = graph.input(node, i)
            if tensor.dtype not in self.dtypes or tensor.dtype is not dtype:
                return f"input {i} is {tensor.dtype.name}, the output {dtype.name} (must be equal)"
        divisor = graph.input(node, 1).data if node.op in _DIVISIONS else None
        if divisor is not None and (node.op, dtype) not in _TAKES_ZERO and not divisor.all():
            return "its constant divisor has a zero, at which TFLite stops with an error"
        return None if dtype is DType.FLOAT32 else self._integer_reason(node, dtype)

    def _integer_reason(self, node: Node, dtype: DType) -> str | None:
        if node.op not in INTEGER_BINARY:
            return f"output 0 is {dtype.name} (supported: FLOAT32)"
        if (dtype is DType.INT64 and node.op not in LONG_OPS) or (
            dtype in _NARROW and node.op not in NARROW_OPS
        ):
            return f"output 0 is {dtype.name} (supported: FLOAT32, INT32)"
        attributes = node.attributes
        if (
            isinstance(attributes, ActivationAttributes)
            and attributes.fused_activation_function not in INTEGER_ACTIVATIONS
        ):
            return f"fused activation {attributes.fused_activation_function} of {dtype.name}"
        return None

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape]:
        a, b = (graph.input(node, i).shape for i in range(2))
        shape = broadcast([a, b])
        if shape is None:
            raise ValueError(f"shapes {list(a)} and {list(b)} don't broadcast")
        if node.op == "PRELU" and shape != a:
            raise ValueError(f"alpha of shape {list(b)} doesn't broadcast to the input {list(a)}")
        return [shape]

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        output = ctx.graph.output(node)
        if output.dtype is not DType.FLOAT32:
            inputs = [ctx.graph.input(node, i) for i in range(2)]
            lower_integer(ctx, node, INTEGER_BINARY[node.op], inputs)
            return
        result = pad_rank(output.shape, MAX_RANK)
        operands = [pad_rank(ctx.graph.input(node, i).shape, MAX_RANK) for i in range(2)]
        splat = sum(1 << i for i, shape in enumerate(operands) if inner(shape) == 1)
        vectors = num_vectors(output.shape)
        ctx.compute_flat(
            node,
            "binary_broadcast",
            [ctx.buffer(node.inputs[0]), ctx.buffer(node.inputs[1])],
            ctx.buffer(output.id),
            invocations=vectors,
            spec=(BINARY_CODES[node.op],),
            push=(
                vectors,
                vectors_per_row(output.shape),
                *result[:-1],
                *(s for shape in operands for s in broadcast_strides(shape, result)),
                splat,
            ),
            flops=output.num_elements,
            needs_full=node.op not in LIGHT_OPS,
        )
