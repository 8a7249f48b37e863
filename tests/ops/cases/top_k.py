"""TOPK_V2: k from one to all, ties, infinities."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.support.case import Array, Case
from tflite_vk.dtypes import DType
from tflite_vk.testing.model_writer import ModelWriter


def _top(
    shape: tuple[int, ...], k: int, dtype: DType = DType.FLOAT32, *, runtime: bool = False
) -> Callable[[ModelWriter], None]:
    def build(w: ModelWriter) -> None:
        count = w.input((), dtype=DType.INT32) if runtime else w.const(np.array(k, np.int32))
        result = (*shape[:-1], k)
        outs = [(result, dtype), (result, DType.INT32)]
        w.output(*w.multi_op("TOPK_V2", [w.input(shape, dtype=dtype), count], outs))

    return build


def _few(shape: tuple[int, ...]) -> Callable[[np.random.Generator], dict[int, Array]]:
    return lambda rng: {0: rng.integers(-2, 3, shape).astype(np.float32) * np.float32(0.5)}


def _special(rng: np.random.Generator) -> dict[int, Array]:
    inf = np.inf
    return {
        0: np.array(
            [[0.0, -0.0, 1, -inf, inf, inf, -1], [-0.0, 0.0, -0.0, 0.0, 0, 0, 0]], np.float32
        )
    }


CASES = [
    Case(f"TOPK_V2_{'x'.join(map(str, shape))}_k{k}", _top(shape, k), exact=True)
    for shape, k in (
        ((1,), 1),
        ((7,), 3),
        ((3, 5), 5),
        ((2, 3, 37), 4),
        ((2, 2, 2, 113), 113),
        ((5, 1001), 5),
        ((1, 8400), 300),
    )
]
CASES += [
    Case("TOPK_V2_ties", _top((5, 113), 40), inputs=_few((5, 113)), exact=True),
    Case("TOPK_V2_special", _top((2, 7), 7), inputs=_special, exact=True),
    Case("TOPK_V2_k0", _top((3, 5), 0), exact=True),
    Case("TOPK_V2_INT32", _top((3, 37), 6, DType.INT32), exact=True),
    *(
        Case(f"TOPK_V2_{t.name}", _top((3, 37), 6, t), exact=True)
        for t in (DType.INT8, DType.UINT8, DType.INT16)
    ),
    *(
        Case(f"TOPK_V2_{t.name}_all", _top((2, 3, 7), 7, t), exact=True)
        for t in (DType.INT8, DType.UINT8, DType.INT16)
    ),
    Case("I2_TOPK_V2_70000_rows", _top((70000, 6), 2), exact=True),
    Case(
        "TOPK_V2_k_at_run_time",
        _top((3, 5), 2, runtime=True),
        declined="depends on run-time values",
    ),
    Case("TOPK_V2_long_row", _top((1, 200_000), 2), declined="200000 elements"),
]
