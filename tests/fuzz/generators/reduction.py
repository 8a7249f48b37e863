"""Reductions, softmax and its kin, cumulative sums, positions of the largest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tests.fuzz.builder import ROUNDING, TRANSCENDENTAL, Builder, Value, grain
from tests.fuzz.eager import RefusedError
from tests.fuzz.generators import generator
from tests.fuzz.generators.elementwise import fits_mantissa
from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import (
    ArgAttributes,
    BinaryAttributes,
    CumsumAttributes,
    LocalResponseNormAttributes,
    ReducerAttributes,
    SoftmaxAttributes,
)

_ONE = np.ones(1, np.float32)


def axes_of(g: Builder, rank: int) -> list[int]:
    """Some axes, in any order, some of them negative."""
    count = g.integer(1, rank)
    axes = g.rng.permutation(rank)[:count]
    return [int(a) - (rank if g.chance(0.3) else 0) for a in axes]


def reduce(g: Builder, op: str, x: Value, axes: Sequence[int], *, keep_dims: bool) -> Value:
    terms = int(np.prod([x.shape[a] for a in axes]))
    eps, scale = 0.0, 0.0
    if op in ("SUM", "MEAN"):
        scale = float(np.abs(x.array).sum()) / max(1, x.array.size) * terms
        scale = scale / max(1, terms) if op == "MEAN" else scale
        is_exact = op == "SUM" and x.err == 0 and fits_mantissa(x.array, _ONE, max(1, terms))
        eps = 0.0 if is_exact else 2 * ROUNDING
    elif op == "REDUCE_PROD":
        eps = ROUNDING * max(1, terms)
    axis = np.array(axes, np.int32)
    attributes = ReducerAttributes(keep_dims=keep_dims)
    return g.apply(op, [x, axis], attributes, eps=eps, scale=scale)


@generator(3)
def reduce_any(g: Builder) -> None:
    x = g.float(rank=(1, 2, 3, 4, 5), accept=lambda v: v.array.size > 0)
    axes = axes_of(g, x.rank)
    op = g.choice(("SUM", "SUM", "MEAN", "MEAN", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"))
    if op == "REDUCE_PROD" and int(np.prod([x.shape[a] for a in axes])) > 12:
        op = "MEAN"
    reduce(g, op, x, axes, keep_dims=g.chance(0.5))


@generator(2)
def softmax(g: Builder) -> None:
    x = g.float(rank=(1, 2, 3, 4), accept=lambda v: v.scale < 30 and v.array.size > 0)
    if g.chance(0.25):
        g.apply("LOG_SOFTMAX", [x], eps=TRANSCENDENTAL, scale=x.scale)
    else:
        beta = g.choice((1.0, 1.0, 0.5, 2.0))
        g.apply("SOFTMAX", [x], SoftmaxAttributes(beta=beta), eps=TRANSCENDENTAL)


@generator()
def l2_normalization(g: Builder) -> None:
    x = g.float(rank=(2, 3, 4), accept=lambda v: v.array.size > 0)
    norms = np.sqrt(np.square(x.array.astype(np.float64)).sum(-1))
    if norms.min() < 0.1:
        raise RefusedError("a row of zeros")
    g.apply("L2_NORMALIZATION", [x], BinaryAttributes(), eps=ROUNDING)


@generator(0.5)
def local_response_normalization(g: Builder) -> None:
    x = g.float(rank=4, accept=lambda v: v.scale < 20)
    # All channels in reach: of a smaller window the reference kernel leaves out the last one.
    a = LocalResponseNormAttributes(
        radius=x.shape[3] + g.integer(0, 2),
        bias=1.0,
        alpha=g.choice((0.1, 1.0)),
        beta=g.choice((0.5, 0.75)),
    )
    g.apply("LOCAL_RESPONSE_NORMALIZATION", [x], a, eps=TRANSCENDENTAL)


@generator()
def cumsum(g: Builder) -> None:
    x = g.float(rank=(1, 2, 3, 4, 5), accept=lambda v: v.array.size > 0)
    axis = g.integer(-x.rank, x.rank - 1)
    length = x.shape[axis]
    a = CumsumAttributes(exclusive=g.chance(0.5), reverse=g.chance(0.5))
    is_exact = x.err == 0 and fits_mantissa(x.array, _ONE, length)
    eps = 0.0 if is_exact else ROUNDING
    g.apply("CUMSUM", [x, np.array(axis, np.int32)], a, eps=eps, scale=x.scale * length)


@generator()
def arg_max_min(g: Builder) -> None:
    x = g.exact_float(rank=(1, 2, 3, 4))
    if not x.array.size:
        raise RefusedError("of nothing")
    axis = np.array(g.integer(-x.rank, x.rank - 1), np.int32)
    op = g.choice(("ARG_MAX", "ARG_MIN"))
    g.apply(op, [x, axis], ArgAttributes(DType.INT32), out=DType.INT32, jumps=True)


@generator(0.5)
def topk(g: Builder) -> None:
    x = g.exact_float(rank=(1, 2, 3))
    if not x.array.size or grain(x.array) is None:
        raise RefusedError("of nothing")
    k = np.array(g.integer(1, x.shape[-1]), np.int32)
    g.apply_multi("TOPK_V2", [x, k], outs=[DType.FLOAT32, DType.INT32], jumps=True)
