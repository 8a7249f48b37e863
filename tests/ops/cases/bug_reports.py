"""Operator graphs out of bug reports of peers' users that no other case table holds.

Names begin with the id that tests/bug_reports/index.py explains.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tests.support.case import Array, Case
from tflite_vk.ir.attributes import (
    BinaryAttributes,
    Conv2DAttributes,
    FullyConnectedAttributes,
    Pool2DAttributes,
    ReducerAttributes,
    ReshapeAttributes,
)
from tflite_vk.testing.model_writer import ModelWriter

Shape = tuple[int, ...]
Build = Callable[[ModelWriter], object]

_ATTRIBUTES = {"ADD": BinaryAttributes(), "SUB": BinaryAttributes()}
_ATTRIBUTES |= {"MUL": BinaryAttributes(), "DIV": BinaryAttributes()}


def _values(shape: Shape, low: float = 0.5, high: float = 2.0) -> Array:
    return np.asarray(np.random.default_rng(4).uniform(low, high, shape), np.float32)


def _binary(op: str, a: Shape, b: Shape, const: int | None = None) -> Build:
    """An operator of two run-time values, or of one and a constant at position `const`."""

    def build(w: ModelWriter) -> None:
        operands = [w.const(_values(s)) if const == i else w.input(s) for i, s in enumerate((a, b))]
        out = np.broadcast_shapes(a, b)
        w.output(w.op(op, operands, [out], _ATTRIBUTES.get(op)))

    return build


def _conv(w: ModelWriter, x: int, shape: Shape, channels: int, *, exact: bool = False) -> int:
    """CONV_2D 3x3 SAME with a bias."""
    rng = np.random.default_rng(channels)
    size = (channels, 3, 3, shape[3])
    kernel = rng.integers(-2, 3, size) * 0.25 if exact else rng.uniform(-0.3, 0.3, size)
    bias = rng.integers(-2, 3, channels) * 0.25
    inputs = [x, w.const(kernel.astype(np.float32)), w.const(bias.astype(np.float32))]
    return w.op("CONV_2D", inputs, [(*shape[:3], channels)], Conv2DAttributes())


def _unary(w: ModelWriter, op: str, x: int, shape: Shape) -> int:
    return w.op(op, [x], [shape])


CASES = [
    # MUL of a smaller left operand; neither is bigger.
    Case(f"A1_{op}_{name}", _binary(op, a, b), low=0.5)
    for op in ("ADD", "SUB", "MUL", "DIV", "MINIMUM", "MAXIMUM", "SQUARED_DIFFERENCE")
    for name, a, b in (
        ("left_smaller", (1, 10, 1), (1, 10, 3)),
        ("left_smaller_rank_1", (3,), (1, 10, 1)),
        ("two_way", (1, 1, 6, 5), (1, 7, 1, 5)),
    )
]
CASES += [
    Case("A6_ADD_const_of_rank_3", _binary("ADD", (1, 4, 6, 7), (4, 6, 7), const=1)),
    Case("A7_MUL_run_time_1x1x1x1", _binary("MUL", (1, 5, 7, 3), (1, 1, 1, 1))),
    Case("A7_MUL_const_scalar", _binary("MUL", (1, 5, 7, 3), (), const=1)),
    Case("A7_MUL_const_1", _binary("MUL", (1, 5, 7, 3), (1,), const=1)),
    Case("A8_MUL_const_1x3x400x2", _binary("MUL", (1, 3, 400, 2), (1, 3, 400, 2), const=1)),
    Case("A8_MUL_const_1x1x37x5", _binary("MUL", (1, 1, 37, 5), (1, 1, 37, 5), const=1)),
    Case("A13_MUL_outer_product", _binary("MUL", (1, 1, 1, 6), (1, 5, 3, 1))),
]
CASES += [
    Case(f"A12_{op}_const{const}", _binary(op, *pair, const=const), low=0.5)
    for op in ("SUB", "DIV")
    for const, pair in ((0, ((3,), (1, 4, 4, 3))), (1, ((1, 4, 4, 3), (3,))))
]


def _rank_2_constant(w: ModelWriter) -> None:
    y = w.op(
        "RESHAPE",
        [w.input((1, 98, 1, 8)), w.const(np.array([98, 8], np.int32))],
        [(98, 8)],
        ReshapeAttributes((98, 8)),
    )
    y = w.op("MUL", [y, w.const(_values((98, 8)))], [(98, 8)], BinaryAttributes())
    w.output(w.op("SUM", [y, w.const(np.array([0], np.int32))], [(8,)], ReducerAttributes()))


def _chain(*, backwards: bool) -> Build:
    def build(w: ModelWriter) -> None:
        shape = (1, 5, 7, 3)
        a = _unary(w, "ABS", w.input(shape), shape)
        b = _unary(w, "TANH", a, shape)
        c = _unary(w, "EXP", b, shape)
        w.output(*((c, b) if backwards else (b, c)))

    return build


def _heat_map(w: ModelWriter) -> None:
    y = _conv(w, w.input((1, 8, 9, 3)), (1, 8, 9, 3), 5)
    w.output(y, _pool(w, y, (1, 8, 9, 5), 2))


def _pool(w: ModelWriter, x: int, shape: Shape, stride: int) -> int:
    n, h, width, c = shape
    out = (n, -(-h // stride), -(-width // stride), c)
    a = Pool2DAttributes(stride_w=stride, stride_h=stride, filter_width=3, filter_height=3)
    return w.op("MAX_POOL_2D", [x], [out], a)


def _source_of_a_pool(w: ModelWriter) -> None:
    y = _unary(w, "RELU", w.input((1, 6, 5, 4)), (1, 6, 5, 4))
    w.output(y, _pool(w, y, (1, 6, 5, 4), 1))


def _twice(op: str) -> Build:
    def build(w: ModelWriter) -> None:
        x = w.input((1, 4, 4, 3))
        w.output(w.op(op, [x, x], [(1, 4, 4, 3)], _ATTRIBUTES[op]))

    return build


def _constant_first_and_out(w: ModelWriter) -> None:
    k = w.const(_values((1, 4, 4, 3)))
    x = w.input((1, 4, 4, 3))
    y = w.op("SUB", [k, x], [(1, 4, 4, 3)], BinaryAttributes())
    w.output(w.op("MUL", [y, k], [(1, 4, 4, 3)], BinaryAttributes()), k)


CASES += [
    Case("A9_MUL_const_of_rank_2_then_SUM", _rank_2_constant),
    Case("B3_last_two_of_three", _chain(backwards=False)),
    Case("B3_outputs_in_reverse", _chain(backwards=True)),
    Case("B4_output_that_is_pooled", _heat_map),
    Case("B5_pool_leaves_its_source", _source_of_a_pool),
    Case("B9_ADD_of_itself", _twice("ADD")),
    Case("B9_MUL_of_itself", _twice("MUL")),
    Case("B11_constant_first_and_as_output", _constant_first_and_out),
]


def _one(op: str, shape: Shape) -> Build:
    return lambda w: w.output(_unary(w, op, w.input(shape), shape))


def _prelu(x: Shape, alpha: Shape) -> Build:
    def build(w: ModelWriter) -> None:
        w.output(w.op("PRELU", [w.input(x), w.const(_values(alpha, -1, 1))], [x]))

    return build


CASES += [Case(f"D25_{op}", _one(op, (1, 5, 7, 3))) for op in ("RELU_0_TO_1", "RELU_N1_TO_1")]
CASES += [
    Case(f"D26_PRELU_alpha_{'x'.join(map(str, alpha)) or 'scalar'}", _prelu((1, 4, 6, 5), alpha))
    for alpha in ((1, 1, 5), (4, 6, 5), (4, 1, 5), (1, 6, 1), (5,), ())
]
CASES += [Case("D27_PRELU_rank_2", _prelu((1, 10), (10,)))]


def _rms_norm(w: ModelWriter) -> None:
    shape, one = (2, 5, 37), (2, 5, 1)
    x = w.input(shape)
    y = _unary(w, "SQUARE", x, shape)
    y = w.op("MEAN", [y, w.const(np.array([2], np.int32))], [one], ReducerAttributes(True))
    y = w.op("ADD", [y, w.const(np.float32(1e-6))], [one], BinaryAttributes())
    y = _unary(w, "RSQRT", y, one)
    y = w.op("MUL", [x, y], [shape], BinaryAttributes())
    w.output(w.op("MUL", [y, w.const(_values((37,)))], [shape], BinaryAttributes()))


def _there_and_back(w: ModelWriter) -> None:
    shape = (3, 37)
    y = w.input(shape)
    for factor in (1000.0, 0.001):
        y = w.op("MUL", [y, w.const(np.float32(factor))], [shape], BinaryAttributes())
    w.output(y)


def _four_heads(w: ModelWriter) -> None:
    shape = (1, 6, 5, 7)
    trunk = _conv(w, w.input((1, 6, 5, 3)), (1, 6, 5, 3), 7)
    for i in range(4):
        y = _unary(w, "LOGISTIC", trunk, shape)
        w.output(w.op("MUL", [y, w.const(np.float32(i + 1))], [shape], BinaryAttributes()))


def _half_weights(w: ModelWriter) -> None:
    """One DEQUANTIZE feeds two convolutions and an ADD, another one a bias."""
    rng = np.random.default_rng(8)
    shape = (1, 6, 5, 4)
    kernel = w.half_const(rng.uniform(-0.5, 0.5, (4, 3, 3, 4)))
    bias = w.half_const(rng.uniform(-0.5, 0.5, 4))
    y = w.input(shape)
    for _ in range(2):
        y = w.op("CONV_2D", [y, kernel, bias], [shape], Conv2DAttributes("RELU"))
    w.output(w.op("ADD", [y, bias], [shape], BinaryAttributes()))


def _batch(w: ModelWriter, batch: int) -> None:
    y = _conv(w, w.input((batch, 8, 8, 3)), (batch, 8, 8, 3), 5)
    y = _pool(w, y, (batch, 8, 8, 5), 2)
    k = w.const(_values((7, 80), -0.5, 0.5))
    y = w.op("RESHAPE", [y, w.const(np.array([batch, 80], np.int32))], [(batch, 80)])
    w.output(w.op("FULLY_CONNECTED", [y, k, None], [(batch, 7)], FullyConnectedAttributes()))


def _row_by_row(x: Array) -> list[Array]:
    """A batch is what its rows are one by one."""
    from tests.support.oracle import reference

    w = ModelWriter()
    _batch(w, 1)
    return [np.concatenate([reference(w.build(), [row[None]])[0] for row in x])]


def _rank_7(w: ModelWriter) -> None:
    x = w.input((1, 2, 1, 1, 2, 1, 4))
    a = FullyConnectedAttributes(keep_num_dims=True)
    k = w.const(_values((3, 4)))
    w.output(w.op("FULLY_CONNECTED", [x, k, None], [(1, 2, 1, 1, 2, 1, 3)], a, version=5))


def _between_convolutions(*ops: str) -> Build:
    """FLOOR and FLOOR_DIV of quarters, so that no rounding puts a value on the other side."""

    def build(w: ModelWriter) -> None:
        shape = (1, 6, 5, 4)
        y = _conv(w, w.input((1, 6, 5, 3)), (1, 6, 5, 3), 4, exact=True)
        for op in ops:
            given = [y] if op == "FLOOR" else [y, w.const(np.full(shape, 2, np.float32))]
            y = w.op(op, given, [shape])
        w.output(_conv(w, y, shape, 3))

    return build


def _halves(shape: Shape) -> Callable[[np.random.Generator], dict[int, Array]]:
    return lambda rng: {0: (rng.integers(-6, 7, shape) * 0.5).astype(np.float32)}


def _no_bias(op: str, x: Shape, kernel: Shape, out: Shape, inputs: Sequence[int | None]) -> Build:
    """An optional input absent at the end of the list, or marked -1."""

    def build(w: ModelWriter) -> None:
        from tflite_vk.ir.attributes import DepthwiseConv2DAttributes

        a = (
            Conv2DAttributes()
            if op == "CONV_2D"
            else DepthwiseConv2DAttributes(depth_multiplier=kernel[3] // x[3])
        )
        given = [w.input(x), w.const(_values(kernel, -0.5, 0.5)), *inputs]
        w.output(w.op(op, given, [out], a))

    return build


CASES += [
    Case("E5_rms_norm_of_large_values", _rms_norm, low=-600, high=600),
    Case("E7_MUL_by_1000_and_back", _there_and_back, low=-100, high=100),
    Case("E8_four_heads_of_one_trunk", _four_heads),
    Case("F6_float16_weights_of_two_operators", _half_weights),
    Case("G1_batch_4_row_by_row", lambda w: _batch(w, 4), expected=_row_by_row),
    Case("G7_FULLY_CONNECTED_of_rank_7", _rank_7, declined="rank 7"),
    Case("G9_input_4x10", _binary("MUL", (4, 10), (10,), const=1)),
    Case(
        "H2_FLOOR_between_convolutions",
        _between_convolutions("FLOOR"),
        inputs=_halves((1, 6, 5, 3)),
    ),
    Case(
        "H2_FLOOR_DIV_between_convolutions",
        _between_convolutions("FLOOR_DIV", "FLOOR"),
        inputs=_halves((1, 6, 5, 3)),
    ),
    Case(
        "H8_DEPTHWISE_CONV_2D_bias_left_out",
        _no_bias("DEPTHWISE_CONV_2D", (1, 6, 5, 3), (1, 3, 3, 6), (1, 6, 5, 6), []),
    ),
    Case("I8_ADD_of_rank_6", _binary("ADD", (2, 1, 3, 1, 5, 3), (1, 4, 3, 2, 1, 3))),
]
