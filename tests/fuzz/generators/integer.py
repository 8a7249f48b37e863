"""Whole numbers and truths: int32 and int64 arithmetic, comparisons, logic, casts, selection, ONE_HOT."""

from __future__ import annotations

import numpy as np

from tests.fuzz.builder import Builder, Value
from tests.fuzz.eager import RefusedError
from tests.fuzz.generators import generator
from tests.fuzz.generators.elementwise import partner, smaller
from tests.fuzz.generators.moving import ints
from tests.support.case import Array
from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import (
    ArgAttributes,
    BinaryAttributes,
    CastAttributes,
    GatherAttributes,
    OneHotAttributes,
    ReducerAttributes,
    ShapeAttributes,
)

_COMPARISONS = ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL")


def whole(g: Builder, ranks: range = range(5)) -> Value:
    """An int32 value: one that is there, a cast, or new."""
    found = g.pick(lambda v: v.array.dtype == np.int32 and v.rank in ranks)
    if found is not None and g.chance(0.7):
        return found
    if g.chance(0.5):
        x = g.exact_float(rank=ranks)
        a = CastAttributes(DType.FLOAT32, DType.INT32)
        return g.apply("CAST", [x], a, out=DType.INT32, jumps=True)
    return g.input(g.rng.integers(-20, 21, g.shape(g.choice(list(ranks)))).astype(np.int32))


def truth(g: Builder, ranks: range = range(5)) -> Value:
    """A bool value."""
    found = g.pick(lambda v: v.array.dtype == np.bool_ and v.rank in ranks)
    if found is not None and g.chance(0.7):
        return found
    return compare(g, g.exact_float(rank=ranks))


def compare(g: Builder, x: Value) -> Value:
    if x.is_float:
        y = partner(g, x, 4)
    else:
        y = g.const(g.rng.integers(-5, 6, smaller(g, x.shape)).astype(np.int32))
    if y.err or (x.shape != y.shape and max(x.rank, y.rank) > 4):
        raise RefusedError("a comparison of roundings")
    a, b = (x, y) if g.chance(0.5) else (y, x)
    return g.apply(g.choice(_COMPARISONS), [a, b], out=DType.BOOL, jumps=True)


@generator()
def comparison(g: Builder) -> None:
    compare(g, g.exact_float() if g.chance(0.7) else whole(g))


@generator()
def logic(g: Builder) -> None:
    x = truth(g)
    if g.chance(0.3):
        g.apply("LOGICAL_NOT", [x], out=DType.BOOL)
        return
    y = g.pick(lambda v: v.array.dtype == np.bool_ and v.shape == x.shape)
    if y is None or g.chance(0.3):
        y = g.const(g.rng.random(smaller(g, x.shape)) < 0.5)
    if x.shape != y.shape and max(x.rank, y.rank) > 4:
        raise RefusedError("the reference kernel broadcasts fewer dimensions")
    g.apply(g.choice(("LOGICAL_AND", "LOGICAL_OR")), [x, y], out=DType.BOOL)


@generator(2)
def int32_arithmetic(g: Builder) -> None:
    x = whole(g)
    if g.chance(0.2):
        g.apply(g.choice(("ABS", "NEG")), [x], out=DType.INT32)
        return
    y = g.pick(lambda v: v.array.dtype == np.int32 and v.shape == x.shape)
    if y is None or g.chance(0.5):
        y = g.const(g.rng.integers(-9, 10, smaller(g, x.shape)).astype(np.int32))
    a, b = (x, y) if g.chance(0.5) else (y, x)
    op = g.choice(("ADD", "SUB", "MUL", "MINIMUM", "MAXIMUM"))
    if max(a.rank, b.rank) > 4 and a.shape != b.shape:
        raise RefusedError("the reference kernel broadcasts fewer dimensions")
    attributes = BinaryAttributes() if op in ("ADD", "SUB", "MUL") else None
    made = g.apply(op, [a, b], attributes, out=DType.INT32)
    if np.abs(made.array.astype(np.int64)).max(initial=0) > 1_000_000:
        made.uses += 10  # large enough; rather not on with it


@generator()
def bits(g: Builder) -> None:
    x = whole(g)
    op = g.choice(("BITWISE_XOR", "RIGHT_SHIFT", "STABLEHLO_AND", "STABLEHLO_SHIFT_LEFT"))
    shape = x.shape if op.startswith("STABLEHLO") else smaller(g, x.shape)
    high = 5 if op == "STABLEHLO_SHIFT_LEFT" else 34
    y = g.const(np.asarray(g.rng.integers(0, high, shape), np.int32))
    made = g.apply(op, [x, y], out=DType.INT32)
    if np.abs(made.array.astype(np.int64)).max(initial=0) > 1_000_000:
        made.uses += 10


def long(g: Builder) -> Value:
    """An int64 value: one that is there, a cast, or new, with values beyond 32 bits."""
    found = g.pick(lambda v: v.array.dtype == np.int64)
    if found is not None and g.chance(0.6):
        return found
    if g.chance(0.5):
        a = CastAttributes(DType.INT32, DType.INT64)
        return g.apply("CAST", [whole(g)], a, out=DType.INT64)
    return g.input(_long_values(g, g.shape(g.integer(0, 4))))


def _long_values(g: Builder, shape: tuple[int, ...]) -> Array:
    high = g.rng.integers(-3, 4, shape) << int(g.choice((0, 31, 32, 40)))
    return np.asarray(high + g.rng.integers(-5, 6, shape), np.int64)


@generator(2)
def int64_arithmetic(g: Builder) -> None:
    x = long(g)
    if g.chance(0.2):
        g.apply("NEG", [x], out=DType.INT64)
        return
    y = g.pick(lambda v: v.array.dtype == np.int64 and v.shape == x.shape)
    if y is None or g.chance(0.5):
        y = g.const(_long_values(g, smaller(g, x.shape)))
    a, b = (x, y) if g.chance(0.5) else (y, x)
    op = g.choice(("ADD", "SUB", "MUL", "MINIMUM", "MAXIMUM", *_COMPARISONS))
    attributes = BinaryAttributes() if op in ("ADD", "SUB", "MUL") else None
    out = DType.BOOL if op in _COMPARISONS else DType.INT64
    g.apply(op, [a, b], attributes, out=out)


@generator()
def int64_moves(g: Builder) -> None:
    x = long(g)
    if g.chance(0.3):
        g.reshape(x, g.factor(x.array.size, g.integer(1, 4)))
    elif g.chance(0.5):
        target = g.choice((DType.INT32, DType.BOOL, DType.FLOAT32))
        if target is DType.FLOAT32 and np.abs(x.array).max(initial=0) > 1000:
            raise RefusedError("large whole numbers")
        g.apply("CAST", [x], CastAttributes(DType.INT64, target), out=target)
    elif x.rank:
        rows = g.rng.integers(0, x.shape[0], (g.integer(1, 3),))
        chosen = g.input(rows) if g.chance(0.5) else rows
        g.apply("GATHER", [x, chosen], GatherAttributes(0), out=DType.INT64)


@generator(0.5)
def int64_position(g: Builder) -> None:
    x = g.exact_float(rank=range(1, 5))
    if not x.array.size:
        raise RefusedError("an empty search")
    axis = np.array(g.integer(0, x.rank - 1), np.int32)
    a = ArgAttributes(DType.INT64)
    g.apply(g.choice(("ARG_MAX", "ARG_MIN")), [x, axis], a, out=DType.INT64, jumps=True)


@generator(2)
def cast(g: Builder) -> None:
    x = g.pick(lambda v: v.array.dtype in (np.int32, np.bool_))
    if x is None or g.chance(0.3):
        x = truth(g) if g.chance(0.5) else whole(g)
    source = x.result.dtype
    target = g.choice([t for t in (DType.FLOAT32, DType.INT32, DType.BOOL) if t is not source])
    if np.abs(x.array.astype(np.float64)).max(initial=0) > 1000 and target is DType.FLOAT32:
        raise RefusedError("large whole numbers")
    g.apply("CAST", [x], CastAttributes(source, target), out=target)


@generator(2)
def select(g: Builder) -> None:
    x = g.float(rank=range(5))
    condition = g.pick(lambda v: v.array.dtype == np.bool_ and v.shape == x.shape)
    if condition is None:
        shape = smaller(g, x.shape)
        flags = g.rng.random(shape) < 0.5
        condition = g.pick(lambda v: v.array.dtype == np.bool_ and _broadcasts(v, x)) or g.input(
            flags
        )
    y = partner(g, x, 4)
    try:
        shape = np.broadcast_shapes(x.shape, y.shape, condition.shape)
    except ValueError:
        raise RefusedError("dimensions of 1 in x became different ones") from None
    if int(np.prod(shape)) > 6000 or len(shape) > 4:
        raise RefusedError("too much")
    a, b = (x, y) if g.chance(0.5) else (y, x)
    g.apply("SELECT_V2", [condition, a, b])


@generator(0.7)
def select_of_one_shape(g: Builder) -> None:
    """SELECT, which broadcasts nothing but a condition of one dimension or none."""
    x = g.float(rank=range(1, 5), accept=lambda v: v.err == 0)
    condition = compare(g, x)
    if condition.shape != x.shape:
        raise RefusedError("the comparison broadcasts")
    y = g.pick(lambda v: v.is_float and v.shape == x.shape) or g.like(x, x.shape)
    g.apply("SELECT", [condition, x, y])


def _broadcasts(v: Value, x: Value) -> bool:
    try:
        return len(np.broadcast_shapes(v.shape, x.shape)) <= 4
    except ValueError:
        return False


@generator()
def one_hot(g: Builder) -> None:
    depth = g.integer(1, 9)
    indices = g.pick(
        lambda v: v.array.dtype == np.int32 and v.rank <= 3 and 0 < v.array.size * depth < 4000
    )
    if indices is None:
        indices = g.input(
            g.rng.integers(-1, depth + 1, g.shape(g.integer(0, 3), 300)).astype(np.int32)
        )
    on, off = (np.array(v, np.float32) for v in (g.choice((1.0, 2.5)), g.choice((0.0, -1.0))))
    axis = g.integer(-1, indices.rank)
    given = [indices, np.array(depth, np.int32), on, off]
    g.apply("ONE_HOT", given, OneHotAttributes(axis))


@generator(0.7)
def any_all(g: Builder) -> None:
    x = truth(g, range(1, 5))
    axis = ints(*g.rng.permutation(x.rank)[: g.integer(1, x.rank)])
    op = g.choice(("REDUCE_ANY", "REDUCE_ALL"))
    g.apply(op, [x, axis], ReducerAttributes(g.chance(0.5)), out=DType.BOOL)


@generator(0.4)
def shape_of(g: Builder) -> None:
    x = g.float()
    if g.chance(0.5):
        g.apply("SHAPE", [x], ShapeAttributes(DType.INT32), out=DType.INT32)
    else:
        g.apply("RANK", [x], out=DType.INT32)
