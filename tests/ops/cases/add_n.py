"""ADD_N: two inputs and many, constants in any place, one value twice."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.ops.cases.reshape import label
from tests.support.case import Case
from tflite_vk.dtypes import DType
from tflite_vk.testing.model_writer import ModelWriter

Shape = tuple[int, ...]
F32, I32 = DType.FLOAT32, DType.INT32


def _sum(
    shape: Shape, dtype: DType, count: int, constants: tuple[int, ...] = ()
) -> Callable[[ModelWriter], None]:
    def build(w: ModelWriter) -> None:
        rng = np.random.default_rng(1)
        inputs = [
            w.const(rng.integers(-9, 10, shape).astype(dtype.numpy))
            if i in constants
            else w.input(shape, dtype=dtype)
            for i in range(count)
        ]
        w.output(w.op("ADD_N", inputs, [(shape, dtype)]))

    return build


def _twice(w: ModelWriter) -> None:
    x, y = w.input((2, 5, 3)), w.input((2, 5, 3))
    w.output(w.op("ADD_N", [x, y, x, x], [(2, 5, 3)]))


def _between(w: ModelWriter) -> None:
    x, y, z = (w.input((3, 2, 7)) for _ in range(3))
    negated = w.op("NEG", [x], [(3, 2, 7)])
    total = w.op("ADD_N", [negated, y, z], [(3, 2, 7)])
    w.output(w.op("RELU", [total], [(3, 2, 7)]), negated)


def _unlike(w: ModelWriter) -> None:
    w.output(w.op("ADD_N", [w.input((3, 5)), w.input((1, 5))], [(3, 5)]))


def _one(w: ModelWriter) -> None:
    w.output(w.op("ADD_N", [w.input((3, 5))], [(3, 5)]))


CASES = [
    Case(f"ADD_N_{t.name}_{label(s)}_{n}", _sum(s, t, n), exact=t is I32)
    for t in (F32, I32)
    for s, n in (
        ((), 3), ((5,), 2), ((3, 37), 3), ((2, 3, 4), 4), ((2, 5, 7, 3), 5), ((1, 2, 3, 2, 5), 9),
        ((2, 1, 2, 3, 2, 5), 3), ((2, 0, 3), 3),
    )
]  # fmt: skip
CASES += [
    Case(f"ADD_N_{t.name}_constants_{'_'.join(map(str, c))}", _sum((3, 5), t, 4, c), exact=t is I32)
    for t in (F32, I32)
    for c in ((0,), (3,), (0, 1), (1, 2, 3))
]
CASES += [
    Case("ADD_N_twice", _twice),
    Case("ADD_N_between", _between),
    Case(
        "ADD_N_constants_only", _sum((3,), F32, 3, (0, 1, 2)), declined="all inputs are constants"
    ),
    Case("ADD_N_unlike", _unlike, declined="input 1 is [1, 5], input 0 [3, 5]"),
    Case("ADD_N_one", _one, declined="has 1 inputs (supported: 2 and more)"),
]
