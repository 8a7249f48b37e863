"""INT64 in reductions (and in the sums of an INT32 MEAN), CUMSUM, TOPK_V2 and SCATTER_ND: carries between the words, ties of one word, ends."""

from __future__ import annotations

import numpy as np

from tests.ops.cases.cumsum import _cumsum, _modes
from tests.ops.cases.int64 import HIGHEST, LOWEST, wide
from tests.ops.cases.reduce import _name, _reduce
from tests.ops.cases.scatter import _places, _scatter
from tests.ops.cases.top_k import _top
from tests.support.case import Array, Case
from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import CumsumAttributes

Shape = tuple[int, ...]
I32, I64 = DType.INT32, DType.INT64


def _few(rng: np.random.Generator) -> dict[int, Array]:
    """Ties, and values that differ in one word only."""
    values = [0, 1, -1, 1 << 32, -(1 << 32), (1 << 32) + 1, 1 << 31, -(1 << 31), LOWEST, HIGHEST]
    return {0: rng.choice(np.array(values, np.int64), (5, 113))}


def _ends(rng: np.random.Generator) -> dict[int, Array]:
    """Rows of nothing but the ends, which are where a search for the other end begins."""
    del rng
    return {0: np.array([[LOWEST] * 7, [HIGHEST] * 7, [LOWEST, HIGHEST] * 3 + [0]], np.int64)}


def _narrow_ends(rng: np.random.Generator) -> dict[int, Array]:
    """Sums beyond 32 bits; quotients that are cut off on either side of zero."""
    del rng
    low, high = -(1 << 31), (1 << 31) - 1
    return {0: np.array([[low] * 7, [high] * 7, [-3, 1, 0, 0, 0, 0, -6]], np.int32)}


def _whole(rng: np.random.Generator, shape: Shape) -> Array:
    return np.asarray(rng.integers(-(1 << 31), 1 << 31, shape), np.int32)


CASES = [
    Case(
        f"INT64_{_name(op, shape, axes, keep)}",
        _reduce(op, shape, axes, keep=keep, dtype=I64),
        inputs=lambda rng, shape=shape: {0: wide(rng, shape)},  # type: ignore[misc]
        exact=True,
    )
    for op in ("SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "MEAN")
    for shape, axes, keep in (
        ((7,), (0,), False),
        ((3, 37), (-1,), False),
        ((3, 37), (0,), True),
        ((2, 3, 5, 6), (1, 3), False),
        ((2, 3, 5, 6), (0, 2), True),
        ((5, 3), (0, 1), False),
        ((3, 4099), (1,), False),
        ((2, 0, 5), (1,), False),
    )
    if op != "MEAN" or 0 not in shape
]
CASES += [
    Case(f"INT64_{op}_ends", _reduce(op, (3, 7), (1,), dtype=I64), inputs=_ends, exact=True)
    for op in ("SUM", "REDUCE_MAX", "REDUCE_MIN", "MEAN")
]
CASES += [
    Case(
        f"INT32_{_name('MEAN', shape, axes, keep)}",
        _reduce("MEAN", shape, axes, keep=keep, dtype=I32),
        inputs=lambda rng, shape=shape: {0: _whole(rng, shape)},  # type: ignore[misc]
        exact=True,
    )
    for shape, axes, keep in (
        ((7,), (0,), False),
        ((3, 37), (-1,), False),
        ((3, 37), (0,), True),
        ((2, 3, 5, 6), (1, 2), True),
        ((2, 3, 5, 6), (1, 3), False),
        ((3, 4099), (1,), False),
        ((3, 5), (), False),
    )
]
CASES += [
    Case(
        "INT32_MEAN_ends", _reduce("MEAN", (3, 7), (1,), dtype=I32), inputs=_narrow_ends, exact=True
    ),
    Case(
        "INT32_MEAN_of_none", _reduce("MEAN", (2, 0, 5), (1,), dtype=I32), declined="of no integers"
    ),
]
CASES += [
    Case(
        f"CUMSUM_INT64_axis{axis}{mode}",
        _cumsum((3, 5, 6), axis, a, I64),
        inputs=lambda rng: {0: wide(rng, (3, 5, 6))},
        exact=True,
    )
    for axis in (-1, -2)
    for mode, a in _modes()
]
CASES += [
    Case(
        f"CUMSUM_INT64_long_{'reverse' if a.reverse else 'row'}",
        _cumsum((2, 1001), 1, a, I64),
        inputs=lambda rng: {0: wide(rng, (2, 1001))},
        exact=True,
    )
    for a in (CumsumAttributes(), CumsumAttributes(exclusive=True, reverse=True))
]
CASES += [
    Case(
        f"TOPK_V2_INT64_{'x'.join(map(str, shape))}_k{k}",
        _top(shape, k, I64),
        inputs=lambda rng, shape=shape: {0: rng.permuted(wide(rng, shape))},  # type: ignore[misc]
        exact=True,
    )
    for shape, k in (((1,), 1), ((3, 37), 6), ((2, 3, 5), 5))
]
CASES += [
    Case("TOPK_V2_INT64_ties", _top((5, 113), 40, I64), inputs=_few, exact=True),
    Case("TOPK_V2_INT64_k0", _top((3, 5), 0, I64), exact=True),
]
CASES += [
    Case(
        f"SCATTER_ND_INT64_{'x'.join(map(str, indices))}",
        _scatter(indices, shape, I64),
        inputs=lambda rng, indices=indices, shape=shape: {  # type: ignore[misc]
            **_places(indices, shape)(rng),
            1: wide(rng, (*indices[:-1], *shape[indices[-1] :])),
        },
        exact=True,
    )
    for indices, shape in (((9, 2), (3, 5)), ((4, 1), (5, 7)), ((2, 3, 2), (3, 4, 6)))
]
