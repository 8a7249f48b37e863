"""Reductions over every set of axes, at sizes that are no multiple of anything."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from tests.support.case import Array, Case
from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import ReducerAttributes
from tflite_vk.testing.model_writer import ModelWriter

_FLOAT_OPS = ("MEAN", "SUM", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN")


def _result(shape: tuple[int, ...], axes: tuple[int, ...], keep: bool) -> tuple[int, ...]:
    reduced = {a % len(shape) for a in axes} if shape else set()
    if keep:
        return tuple(1 if i in reduced else d for i, d in enumerate(shape))
    return tuple(d for i, d in enumerate(shape) if i not in reduced)


def _reduce(
    op: str,
    shape: tuple[int, ...],
    axes: tuple[int, ...],
    *,
    keep: bool = False,
    dtype: DType = DType.FLOAT32,
    runtime_axes: bool = False,
) -> Callable[[ModelWriter], None]:
    def build(w: ModelWriter) -> None:
        x = w.input(shape, dtype=dtype)
        axis = (
            w.input((len(axes),), dtype=DType.INT32)
            if runtime_axes
            else w.const(np.array(axes, np.int32))
        )
        result = _result(shape, axes, keep)
        w.output(w.op(op, [x, axis], [(result, dtype)], ReducerAttributes(keep_dims=keep)))

    return build


def _name(op: str, shape: tuple[int, ...], axes: tuple[int, ...], keep: bool) -> str:
    dims = "x".join(map(str, shape)) or "scalar"
    return f"{op}_{dims}_axes{'_'.join(map(str, axes)) or 'none'}{'_keep' if keep else ''}"


def _case(
    op: str,
    shape: tuple[int, ...],
    axes: tuple[int, ...],
    keep: bool = False,
    name: str = "",
    **values: object,
) -> Case:
    return Case(name or _name(op, shape, axes, keep), _reduce(op, shape, axes, keep=keep), **values)  # type: ignore[arg-type]


def _all_axes(rank: int) -> list[tuple[int, ...]]:
    return [c for n in range(1, rank + 1) for c in itertools.combinations(range(rank), n)]


def _nan(rng: np.random.Generator) -> dict[int, Array]:
    x = rng.uniform(-2, 2, (2, 3, 5)).astype(np.float32)
    x[0, 1, 2] = np.nan
    x[1] = -np.inf
    x[0, 2, 4] = np.inf
    return {0: x}


def _layer_norm(w: ModelWriter, shape: tuple[int, ...]) -> None:
    """MEAN, SQUARED_DIFFERENCE, MEAN, ADD 1e-5, RSQRT, MUL: C = 1 in the middle."""
    x = w.input(shape)
    one = (*shape[:-1], 1)
    axis = w.const(np.array([-1], np.int32))
    keep = ReducerAttributes(keep_dims=True)
    mean = w.op("MEAN", [x, axis], [one], keep)
    centred = w.op("SUB", [x, mean], [shape])
    variance = w.op("MEAN", [w.op("SQUARE", [centred], [shape]), axis], [one], keep)
    safe = w.op("ADD", [variance, w.const(np.float32(1e-5))], [one])
    w.output(w.op("MUL", [centred, w.op("RSQRT", [safe], [one])], [shape]))


CASES = [_case("SUM", (2, 3, 5, 7), axes, keep) for axes in _all_axes(4) for keep in (False, True)]
CASES += [_case("REDUCE_MAX", (3, 37, 5), axes) for axes in _all_axes(3)]
CASES += [
    _case("REDUCE_MIN", (3, 1, 4, 2, 3, 5), axes, keep=i % 2 == 0)
    for i, axes in enumerate(_all_axes(6))
    if i % 3 == 0
]
CASES += [
    _case(op, shape, axes, keep)
    for op in _FLOAT_OPS
    for shape, axes, keep in (
        ((1, 7, 7, 113), (1, 2), True),
        ((2, 5, 113), (-1,), False),
        ((113,), (0,), False),
        ((4, 3, 1), (2,), False),
        ((4, 3, 1), (0, 1), False),
        ((2, 3, 2, 3, 2, 3), (0, 2, 4), False),
        ((2, 3, 2, 3, 2, 3), (1, 3, 5), False),
        ((2, 3, 2, 3, 2, 3), (-1, -3, -5), True),
    )
]
CASES += [
    _case("SUM", (2, 3, 5), (1, -2, 1), name="SUM_repeated_axes"),
    _case("MEAN", (2, 3, 5), (), name="MEAN_empty_axes"),
    _case("SUM", (), (), name="SUM_scalar"),
    _case("SUM", (0, 3), (0,), name="SUM_empty_input"),
    _case("REDUCE_MAX", (3, 0), (1,), name="REDUCE_MAX_empty_input"),
    _case("SUM", (3, 0), (0,), name="SUM_empty_output"),
    _case("MEAN", (1, 16, 16), (1, 2), name="D1_MEAN_rank3_axes_1_2"),
    _case("MEAN", (1, 16, 16), (-1, -2), True, name="D1_MEAN_rank3_negative_keep"),
    _case("MEAN", (16, 6), (0,), name="D1_MEAN_rank2"),
    _case("MEAN", (1, 6, 6, 5), (1, 3), name="D3_MEAN_axes_1_3"),
    _case("MEAN", (1, 6, 6, 5), (3,), name="D3_MEAN_axis_3"),
    _case("SUM", (1, 6, 6, 5), (3,), name="D3_SUM_channels"),
    Case("A10_MEAN_keep_dims_rsqrt_mul", lambda w: _layer_norm(w, (1, 7, 37)), rtol=1e-4),
    Case("E3_layer_norm_large", lambda w: _layer_norm(w, (2, 3, 113)), low=-900.0, high=900.0),
    _case("REDUCE_MAX", (2, 3, 5), (2,), name="REDUCE_MAX_nan_inf", inputs=_nan),
    _case("REDUCE_MIN", (2, 3, 5), (1,), name="REDUCE_MIN_nan_inf", inputs=_nan),
    _case("SUM", (1, 3, 5), (0, 1), name="SUM_batch_and_rows"),
]
CASES += [
    Case(
        f"E1_{op}_112x112_of_ten",
        _reduce(op, (1, 112, 112, 8), (1, 2)),
        inputs=lambda rng: {0: np.full((1, 112, 112, 8), 10, np.float32)},
    )
    for op in ("SUM", "MEAN")
]
CASES += [
    Case(
        f"E9_SUM_{size}",
        _reduce("SUM", (size,), (0,)),
        expected=lambda x: [np.float32(x.astype(np.float64).sum())],
        low=0.0,
        rtol=2e-6,
        why="the reference adds in a row in float32; the exact sum is what a user wants",
    )
    for size in (10_000, 1_000_003)
]
CASES += [
    Case(
        "SUM_split_in_slices_keep_inner",
        _reduce("SUM", (600, 401, 6), (0, 1), keep=True),
        expected=lambda x: [x.astype(np.float64).sum((0, 1), keepdims=True).astype(np.float32)],
        low=0.0,
        rtol=2e-6,
        why="as E9",
    ),
    _case("REDUCE_MAX", (3, 70, 1201), (1, 2), name="REDUCE_MAX_split_in_slices"),
    _case("MEAN", (70000, 8), (1,), name="I2_MEAN_70000_rows"),
    _case("REDUCE_MAX", (2, 70000, 5), (0,), name="I3_REDUCE_MAX_70000_rows"),
    _case("SUM", (9_000_000,), (), name="I2_SUM_no_axes_9M"),
]
CASES += [
    Case(
        f"INT32_{_name(op, shape, axes, False)}",
        _reduce(op, shape, axes, dtype=DType.INT32),
        exact=True,
    )
    for op in ("SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD")
    for shape, axes in (((3, 5, 7), (1,)), ((3, 5, 7), (2,)), ((3, 5, 7), (0, 2)))
]
CASES += [
    Case(
        _name(op, shape, axes, keep),
        _reduce(op, shape, axes, keep=keep, dtype=DType.BOOL),
        exact=True,
    )
    for op in ("REDUCE_ANY", "REDUCE_ALL")
    for shape, axes, keep in (
        ((3, 5, 2), (2,), False),
        ((3, 5, 2), (0,), True),
        ((3, 5, 2), (0, 1, 2), False),
        ((7, 3), (1,), True),
    )
]
CASES += [
    Case(
        "SUM_axes_at_run_time",
        _reduce("SUM", (2, 3), (1,), runtime_axes=True),
        declined="depends on run-time values",
    )
]
