"""Functions of one value, and of two that broadcast."""

from __future__ import annotations

import numpy as np

from tests.fuzz.builder import ROUNDING, TRANSCENDENTAL, Builder, Value, grain
from tests.fuzz.eager import RefusedError
from tests.fuzz.generators import generator
from tests.support.case import Array
from tflite_vk.ir.attributes import (
    Activation,
    BinaryAttributes,
    GeluAttributes,
    LeakyReluAttributes,
)

ACTIVATIONS: tuple[Activation, ...] = ("NONE", "NONE", "RELU", "RELU6", "RELU_N1_TO_1")

_EXACT = ("ABS", "NEG", "RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1")
_SMOOTH = ("SIN", "COS", "TANH", "LOGISTIC", "HARD_SWISH", "ELU", "EXP")
_POSITIVE = ("SQRT", "RSQRT", "LOG")
_JUMPS = ("FLOOR", "CEIL", "ROUND", "SIGN")


@generator(3)
def exact_unary(g: Builder) -> None:
    g.apply(g.choice(_EXACT), [g.float()])


@generator(3)
def smooth_unary(g: Builder) -> None:
    op = g.choice(_SMOOTH)
    limit = 4.0 if op == "EXP" else 30.0
    g.apply(op, [g.float(accept=lambda v: v.scale < limit)], eps=TRANSCENDENTAL)


@generator(2)
def positive_unary(g: Builder) -> None:
    """Of values away from 0, where these functions are steep."""
    g.apply(g.choice(_POSITIVE), [positive(g)], eps=TRANSCENDENTAL)


def positive(g: Builder) -> Value:
    """A float value well above 0, as LayerNorm makes one: x * x + 0.1 or |x| + 1."""
    found = g.pick(lambda v: v.is_float and v.array.size > 0 and float(v.array.min()) > 0.05)
    if found is not None and g.chance(0.5):
        return found
    x = g.float(accept=lambda v: v.scale < 30)
    x = g.apply("ABS", [x]) if g.chance(0.5) else square(g, x)
    return g.apply(
        "ADD",
        [x, np.array(g.choice((0.125, 1.0)), np.float32)],
        BinaryAttributes(),
        eps=0.0 if x.err == 0 and grain(x.array) is not None else ROUNDING,
    )


def square(g: Builder, x: Value) -> Value:
    return g.apply("SQUARE", [x], eps=0.0 if is_exact_product(x, x) else ROUNDING)


@generator()
def square_any(g: Builder) -> None:
    square(g, g.float(accept=lambda v: v.scale < 40))


@generator()
def jumping_unary(g: Builder) -> None:
    g.apply(g.choice(_JUMPS), [g.exact_float()], jumps=True)


@generator()
def leaky_relu(g: Builder) -> None:
    alpha = g.choice((0.25, 0.5, 0.1, -0.3, 1.5))
    x = g.float()
    is_exact = x.err == 0 and alpha in (0.25, 0.5, 1.5) and grain(x.array) is not None
    eps = 0.0 if is_exact else ROUNDING
    g.apply("LEAKY_RELU", [x], LeakyReluAttributes(alpha=alpha), eps=eps)


@generator()
def gelu(g: Builder) -> None:
    # From -3 down LiteRT's results are differences of nearly equal numbers: it adds 1 to tanh or erf.
    x = g.float(accept=lambda v: v.scale < 3)
    a = GeluAttributes(approximate=g.chance(0.5))
    g.apply("GELU", [x], a, eps=TRANSCENDENTAL)


@generator()
def prelu(g: Builder) -> None:
    x = g.float(rank=(1, 2, 3, 4))
    alpha = g.floats(smaller(g, x.shape), exact=x.err == 0, scale=1)
    y = Value(-1, alpha)
    eps = 0.0 if x.err == 0 and is_exact_product(x, y) else ROUNDING
    g.apply("PRELU", [x, alpha], eps=eps)


@generator()
def add_n(g: Builder) -> None:
    x = g.float()
    terms = [x]
    for _ in range(g.integer(1, 5)):
        other = g.pick(lambda v: v.is_float and v.shape == x.shape)
        terms.append(other if other is not None and g.chance(0.6) else g.like(x, x.shape))
    is_exact = all(v.err == 0 and grain(v.array) is not None for v in terms)
    g.apply(
        "ADD_N",
        [terms[i] for i in g.rng.permutation(len(terms))],
        eps=0.0 if is_exact else ROUNDING,
        scale=sum(v.scale for v in terms),
    )


def is_exact_product(a: Value, b: Value, terms: int = 1) -> bool:
    """True where products of the two, and sums of so many, are whole numbers of few bits."""
    if a.err or b.err:
        return False
    return fits_mantissa(a.array, b.array, terms)


def fits_mantissa(a: Array, b: Array, terms: int = 1) -> bool:
    """True where sums of products need no more than float32's mantissa."""
    ga, gb = grain(a), grain(b)
    if ga is None or gb is None:
        return False
    most = float(np.max(np.abs(a), initial=0)) * float(np.max(np.abs(b), initial=0)) * terms
    return most * 2.0 ** (ga + gb) < 2**23


def smaller(g: Builder, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts to another: scalar, channel, row, suffix, or with ones anywhere."""
    kind = g.integer(0, 6)
    if kind == 0 or not shape:
        return ()
    if kind == 1:
        return shape[-1:]
    if kind == 2:
        return (*shape[:-1], 1)
    if kind == 3:
        return shape[g.integer(0, len(shape)) :]
    if kind == 4:
        return shape
    ones = tuple(1 if g.chance(0.5) else d for d in shape)
    return ones[g.integer(0, len(shape) - 1) :] if g.chance(0.2) else ones


def partner(g: Builder, x: Value, max_rank: int) -> Value:
    """A second operand that broadcasts with x: a value of the graph, x itself, or a constant."""
    if g.chance(0.12):
        return x
    limit = 6000

    def fits(v: Value) -> bool:
        if not v.is_float or v is x or v.rank > max_rank:
            return False
        try:
            shape = np.broadcast_shapes(v.shape, x.shape)
        except ValueError:
            return False
        is_plain = v.shape == x.shape
        return is_plain or (len(shape) <= max_rank and int(np.prod(shape)) <= limit)

    found = g.pick(fits)
    if found is not None and g.chance(0.6):
        return found
    array = g.floats(smaller(g, x.shape), exact=x.err == 0)
    if g.chance(0.15):
        try:
            return g.input(array)
        except RefusedError:
            pass
    return g.const(array)


def binary(g: Builder, op: str, max_rank: int, x: Value | None = None) -> Value:
    """One of the operators with two operands, either first."""
    a = g.float() if x is None else x
    b = partner(g, a, max_rank)
    if a.shape != b.shape and max(a.rank, b.rank) > max_rank:
        raise RefusedError("the reference kernel broadcasts fewer dimensions")
    if g.chance(0.5):
        a, b = b, a
    attributes = None
    if op in ("ADD", "SUB", "MUL", "DIV"):
        attributes = BinaryAttributes(g.choice(ACTIVATIONS))
    eps = ROUNDING
    scale = 0.0
    if op in ("MINIMUM", "MAXIMUM"):
        eps = 0.0
    elif op in ("ADD", "SUB"):
        both = np.concatenate([a.array.reshape(-1), b.array.reshape(-1)])
        eps = 0.0 if not (a.err or b.err) and grain(both) is not None else ROUNDING
        scale = a.scale + b.scale
    elif op == "MUL":
        eps = 0.0 if is_exact_product(a, b) else ROUNDING
    elif op == "SQUARED_DIFFERENCE":
        scale = (a.scale + b.scale) ** 2
        both = np.concatenate([a.array.reshape(-1), b.array.reshape(-1)])
        wide = np.array([a.scale + b.scale], np.float32)
        if not (a.err or b.err) and (d := grain(both)) is not None:
            eps = 0.0 if float(wide[0]) ** 2 * 4.0**d < 2**23 else ROUNDING
    version = 3 if op in ("SUB",) and max(a.rank, b.rank) > 4 else 1
    return g.apply(op, [a, b], attributes, version=version, eps=eps, scale=scale)


@generator(6)
def binary_any(g: Builder) -> None:
    op, rank = g.choice(
        (
            ("ADD", 6),
            ("ADD", 6),
            ("MUL", 6),
            ("MUL", 6),
            ("SUB", 5),
            ("SUB", 5),
            ("MINIMUM", 5),
            ("MAXIMUM", 5),
            ("SQUARED_DIFFERENCE", 4),
        )
    )
    binary(g, op, rank)


@generator()
def div(g: Builder) -> None:
    b = positive(g)
    a = partner(g, b, 5)
    if a.shape != b.shape and max(a.rank, b.rank) > 5:
        raise RefusedError("the reference kernel broadcasts fewer dimensions")
    g.apply("DIV", [a, b], BinaryAttributes(g.choice(ACTIVATIONS)), eps=ROUNDING)


@generator(0.5)
def power(g: Builder) -> None:
    base = positive(g)
    if base.rank > 4 or base.scale > 30:
        raise RefusedError("too much of a power")
    exponent = g.floats(smaller(g, base.shape), exact=g.chance(0.5), scale=1.5)
    g.apply("POW", [base, np.clip(exponent, -2, 2)], eps=2 * TRANSCENDENTAL)


@generator(0.5)
def atan2(g: Builder) -> None:
    x = positive(g)
    y = g.float(accept=lambda v: v.shape == x.shape)
    if y.shape != x.shape:
        raise RefusedError("LiteRT takes any shapes of one size")
    g.apply("ATAN2", [y, x], eps=TRANSCENDENTAL)


@generator(0.5)
def floor_div_mod(g: Builder) -> None:
    x = g.exact_float(rank=(1, 2, 3, 4))
    divisor = g.choice((0.5, 1.0, 2.0, -2.0, 4.0, -0.5))
    shape = smaller(g, x.shape)
    sign = g.rng.choice([-1.0, 1.0], shape)
    y = (divisor * sign).astype(np.float32)
    if grain(x.array) is None:
        raise RefusedError("a quotient next to a whole number may fall on either side")
    g.apply(g.choice(("FLOOR_DIV", "FLOOR_MOD")), [x, y], jumps=True)


@generator()
def layer_norm(g: Builder) -> None:
    """The chain converters make of it: what a peer got wrong in bug report A10."""
    from tests.fuzz.generators.reduction import reduce

    x = g.float(rank=(2, 3, 4), accept=lambda v: v.array.size > 0 and v.scale < 20)
    mean = reduce(g, "MEAN", x, [x.rank - 1], keep_dims=True)
    d = g.apply("SQUARED_DIFFERENCE", [x, mean], eps=ROUNDING, scale=x.scale**2)
    v = reduce(g, "MEAN", d, [x.rank - 1], keep_dims=True)
    v = g.apply("ADD", [v, np.array(0.125, np.float32)], BinaryAttributes(), eps=ROUNDING)
    r = g.apply("RSQRT", [v], eps=TRANSCENDENTAL)
    c = g.apply("SUB", [x, mean], BinaryAttributes(), eps=ROUNDING, scale=x.scale)
    g.apply("MUL", [c, r], BinaryAttributes(), eps=ROUNDING)
