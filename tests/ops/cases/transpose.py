"""TRANSPOSE."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from tests.ops.cases.reshape import label
from tests.support.case import Case
from tflite_vk.dtypes import DType
from tflite_vk.testing.model_writer import ModelWriter

Shape = tuple[int, ...]
Build = Callable[[ModelWriter], None]


def _transpose(source: Shape, *orders: Sequence[int], dtype: DType = DType.FLOAT32) -> Build:
    def build(w: ModelWriter) -> None:
        x, shape = w.input(source, dtype=dtype), source
        for order in orders:
            shape = tuple(shape[axis] for axis in order)
            x = w.op("TRANSPOSE", [x, w.const(np.array(order, np.int32))], [(shape, dtype)])
        w.output(x)

    return build


def _run_time_order(w: ModelWriter) -> None:
    x = w.input((2, 3))
    w.output(w.op("TRANSPOSE", [x, w.input((2,), dtype=DType.INT32)], [(3, 2)]))


def _no_permutation(w: ModelWriter) -> None:
    w.output(w.op("TRANSPOSE", [w.input((2, 3)), w.const([0, 0])], [(2, 2)]))


CASES = [
    Case(f"D12_TRANSPOSE_2x3x5x7_{label(order)}", _transpose((2, 3, 5, 7), order), exact=True)
    for order in itertools.permutations(range(4))
]
CASES += [
    Case(f"D12_TRANSPOSE_twice_{label(a)}_{label(b)}", _transpose((2, 3, 5, 7), a, b), exact=True)
    for a, b in (
        ((0, 3, 1, 2), (0, 2, 3, 1)),
        ((3, 0, 2, 1), (2, 1, 3, 0)),
        ((1, 0, 2, 3), (1, 0, 2, 3)),
    )
]
CASES += [
    Case(f"TRANSPOSE_{label(shape)}_{label(order)}", _transpose(shape, order), exact=True)
    for shape, order in (
        ((37,), (0,)),
        ((5, 7), (1, 0)),
        ((1, 7), (1, 0)),
        ((7, 1), (1, 0)),
        ((4, 8), (1, 0)),
        ((37, 113), (1, 0)),
        ((64, 129), (1, 0)),
        ((3, 5, 7), (2, 0, 1)),
        ((3, 5, 7), (-1, 0, -2)),
        ((1, 5, 7, 3), (1, 0, 2, 3)),
        ((1, 8, 12, 16), (0, 3, 1, 2)),
        ((1, 16, 4, 21), (0, 3, 2, 1)),
        ((2, 33, 35, 4), (0, 2, 1, 3)),
        ((2, 3, 4, 3, 5), (4, 2, 0, 1, 3)),
        ((2, 3, 4, 3, 5), (1, 0, 3, 2, 4)),
        ((2, 3, 2, 3, 2, 5), (5, 3, 1, 4, 2, 0)),
        ((2, 3, 2, 3, 2, 8), (4, 3, 2, 1, 0, 5)),
        ((2, 3, 2, 3, 2, 5), (0, 2, 1, 5, 4, 3)),
        ((0, 3), (1, 0)),
    )
]
CASES += [
    Case("TRANSPOSE_INT32", _transpose((3, 5, 7), (0, 2, 1), dtype=DType.INT32), exact=True),
    Case(
        "TRANSPOSE_BOOL",
        _transpose((3, 5, 7), (2, 1, 0), dtype=DType.BOOL),
        exact=True,
        expected=lambda x: [x.transpose(2, 1, 0)],
    ),
    Case("TRANSPOSE_run_time_order", _run_time_order, declined="depends on run-time values"),
    Case("TRANSPOSE_no_permutation", _no_permutation, declined="no permutation"),
]
