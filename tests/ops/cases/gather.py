"""GATHER, EMBEDDING_LOOKUP, GATHER_ND, ONE_HOT."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tests.ops.cases.reshape import label
from tests.support.case import Array, Case
from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import GatherAttributes, OneHotAttributes
from tflite_vk.testing.model_writer import ModelWriter

Shape = tuple[int, ...]
Build = Callable[[ModelWriter], None]
Inputs = Callable[[np.random.Generator], Mapping[int, Array]]

F32, I32, BOOL = DType.FLOAT32, DType.INT32, DType.BOOL


def _below(position: int, shape: Shape, *limits: int) -> Inputs:
    """Random indices, each below its column's limit, for one input."""
    return lambda rng: {position: rng.integers(0, limits, shape).astype(np.int32)}


def _gather(
    values: Shape,
    indices: Shape,
    axis: int,
    batch_dims: int = 0,
    dtype: DType = F32,
    const: type | None = None,
) -> Build:
    positive = axis % len(values)
    result = (*values[:positive], *indices[batch_dims:], *values[positive + 1 :])

    def build(w: ModelWriter) -> None:
        rng = np.random.default_rng(4)
        x = w.input(values, dtype=dtype)
        if const is None:
            chosen = w.input(indices, dtype=I32)
        else:
            chosen = w.const(rng.integers(0, values[axis], indices).astype(const))
        w.output(w.op("GATHER", [x, chosen], [(result, dtype)], GatherAttributes(axis, batch_dims)))

    return build


def _const_indices(op: str, *indices: Sequence[int] | int) -> Build:
    def build(w: ModelWriter) -> None:
        x = w.input((3, 5))
        chosen = w.const(np.array(indices, np.int32))
        shape = (len(indices), 5) if op == "GATHER" else (len(indices),)
        w.output(w.op(op, [x, chosen], [shape], GatherAttributes() if op == "GATHER" else None))

    return build


def _scalar_outside(w: ModelWriter) -> None:
    index = w.const(np.array(7, np.int32))
    w.output(w.op("GATHER", [w.input((3, 5)), index], [(3,)], GatherAttributes(axis=1)))


def _lookup(values: Shape, count: int, const_values: bool) -> Build:
    def build(w: ModelWriter) -> None:
        indices = w.input((count,), dtype=I32)
        rng = np.random.default_rng(4)
        x = (
            w.const(rng.uniform(-1, 1, values).astype(np.float32))
            if const_values
            else w.input(values)
        )
        w.output(w.op("EMBEDDING_LOOKUP", [indices, x], [(count, *values[1:])]))

    return build


def _large_table(op: str) -> Build:
    def build(w: ModelWriter) -> None:
        table = w.const(np.arange(30522 * 8).reshape(30522, 8).astype(np.float32))
        indices = w.input((5,), dtype=I32)
        inputs = [table, indices] if op == "GATHER" else [indices, table]
        w.output(w.op(op, inputs, [(5, 8)], GatherAttributes() if op == "GATHER" else None))

    return build


def _table_ids(rng: np.random.Generator) -> Mapping[int, Array]:
    return {0: np.array([0, 16383, 16384, 16385, 30521], np.int32)}


def _gather_nd(
    values: Shape, indices: Shape, dtype: DType = F32, const: type | None = None
) -> Build:
    depth = indices[-1]

    def build(w: ModelWriter) -> None:
        x = w.input(values, dtype=dtype)
        if const is None:
            chosen = w.input(indices, dtype=I32)
        else:
            chosen = w.const(
                np.random.default_rng(4).integers(0, values[:depth], indices).astype(const)
            )
        w.output(w.op("GATHER_ND", [x, chosen], [((*indices[:-1], *values[depth:]), dtype)]))

    return build


def _one_hot(
    indices: Shape, depth: int, axis: int, dtype: DType = F32, on: float = 2, off: float = -1
) -> Build:
    positive = len(indices) if axis == -1 else axis

    def build(w: ModelWriter) -> None:
        result = (*indices[:positive], depth, *indices[positive:])
        inputs = [
            w.input(indices, dtype=I32),
            w.const(depth),
            *(w.const(np.array(v, dtype.numpy)) for v in (on, off)),
        ]
        w.output(w.op("ONE_HOT", inputs, [(result, dtype)], OneHotAttributes(axis)))

    return build


def _take(values: Array, indices: Array) -> list[Array]:
    """GATHER on axis 0 with zeros where an index lies outside."""
    inside = (indices >= 0) & (indices < len(values))
    return [np.where(inside[:, None], values[np.clip(indices, 0, len(values) - 1)], 0)]


def _outside(rng: np.random.Generator) -> Mapping[int, Array]:
    return {1: np.array([-1, 0, 2, 3, 1 << 30, -(1 << 31)], np.int32)}


CASES = [
    Case(
        f"GATHER_{label(v)}_{label(i)}_axis_{axis}_batch_{batch}",
        _gather(v, i, axis, batch),
        inputs=_below(1, i, v[axis]) if i else lambda rng: {1: np.array(2, np.int32)},
        exact=True,
    )
    for v, i, axis, batch in (
        ((7, 5), (3,), 0, 0),
        ((7, 8), (3, 2), 0, 0),
        ((3, 7), (5,), 1, 0),
        ((3, 7), (5,), -1, 0),
        ((3, 7, 5), (4,), 1, 0),
        ((3, 7, 5), (2, 3), -2, 0),
        ((3, 5, 7), (2, 3), 2, 0),
        ((3, 7, 5), (3, 4), 1, 1),
        ((3, 5, 7), (3, 4), 2, 1),
        ((2, 3, 7, 5), (2, 3, 4), 2, 2),
        ((2, 3, 7, 5), (2, 4), 2, 1),
        ((2, 3, 5, 7), (2, 3, 4), 3, 2),
        ((2, 3, 5, 7), (2, 4), -1, 1),
        ((37,), (5,), 0, 0),
        ((37,), (), 0, 0),
        ((7, 5), (), 0, 0),
        ((3, 7), (), 1, 0),
        ((3, 5, 7), (), 2, 0),
        ((2, 3, 7), (2, 3), 2, 2),
        ((7, 5), (0,), 0, 0),
        ((2, 2, 3, 2, 5), (3,), 2, 0),
    )
]
CASES += [
    Case("GATHER_const_scalar_outside", _scalar_outside, declined="index 7 lies outside a dimension of 5"),
    Case("GATHER_const", _gather((3, 7, 5), (2, 3), 1, const=np.int32), exact=True),
    Case("GATHER_const_INT64", _gather((3, 7), (5,), 1, const=np.int64), exact=True),
    Case("GATHER_INT32", _gather((7, 5), (3,), 0, dtype=I32), inputs=_below(1, (3,), 7), exact=True),
    Case("GATHER_BOOL", _gather((7, 5), (3,), 0, dtype=BOOL), inputs=_below(1, (3,), 7), exact=True),
    Case("D22_GATHER_const_outside", _const_indices("GATHER", 1, 3), declined="index 3 lies outside a dimension of 3"),
    Case("D22_GATHER_run_time_outside", _gather((3, 5), (6,), 0), inputs=_outside, exact=True,
         expected=_take, why="TFLite stops with an error; here such a row is zero"),
    Case("D22_GATHER_large_table", _large_table("GATHER"), inputs=_table_ids, exact=True),
    Case("D22_EMBEDDING_LOOKUP_large_table", _large_table("EMBEDDING_LOOKUP"), inputs=_table_ids, exact=True),
    Case("EMBEDDING_LOOKUP", _lookup((7, 5), 4, False), inputs=_below(0, (4,), 7), exact=True),
    Case("EMBEDDING_LOOKUP_rank_3", _lookup((7, 3, 5), 4, True), inputs=_below(0, (4,), 7), exact=True),
]  # fmt: skip
CASES += [
    Case(
        f"GATHER_ND_{label(v)}_{label(i)}",
        _gather_nd(v, i),
        inputs=_below(1, i, *v[: i[-1]]),
        exact=True,
    )
    for v, i in (
        ((3, 5), (4, 2)),
        ((3, 5), (4, 1)),
        ((3, 5), (1,)),
        ((3, 5), (2,)),
        ((3, 4, 5), (2, 3, 2)),
        ((3, 4, 5), (2, 3, 3)),
        ((3, 4, 8), (2, 3, 1)),
        ((2, 3, 4, 5), (7, 3)),
        ((2, 3, 2, 3, 5), (3, 5)),
        ((37,), (5, 1)),
    )
]
CASES += [
    Case("GATHER_ND_INT32", _gather_nd((3, 4, 5), (3, 2), I32), inputs=_below(1, (3, 2), 3, 4), exact=True),
    Case("GATHER_ND_const_INT64", _gather_nd((3, 4, 5), (3, 2), const=np.int64), exact=True),
    Case("GATHER_ND_const_outside", _const_indices("GATHER_ND", (1, 2), (2, 5)), declined="index 5 lies outside a dimension of 5"),
    Case("GATHER_ND_run_time_outside", _gather_nd((3, 5), (6, 1)), exact=True,
         inputs=lambda rng: {1: _outside(rng)[1].reshape(6, 1)},
         expected=lambda v, i: _take(v, i[:, 0]), why="TFLite stops with an error; here such a row is zero"),
]  # fmt: skip
CASES += [
    Case(
        f"ONE_HOT_{label(i)}_depth_{depth}_axis_{axis}",
        _one_hot(i, depth, axis),
        inputs=lambda rng, i=i, depth=depth: {0: rng.integers(-1, depth + 1, i).astype(np.int32)},
        exact=True,
    )
    for i, depth, axis in (
        ((5,), 7, -1),
        ((5,), 7, 0),
        ((3, 5), 4, -1),
        ((3, 5), 3, 1),
        ((3, 5), 3, 0),
        ((2, 3, 5), 37, 3),
        ((), 5, -1),
        ((3,), 1, 1),
    )
]
CASES += [
    Case(f"ONE_HOT_{t.name}", _one_hot((3, 5), 4, 1, t, 1, 0), exact=True,
         inputs=lambda rng: {0: rng.integers(0, 4, (3, 5)).astype(np.int32)})
    for t in (I32, BOOL)
]  # fmt: skip
