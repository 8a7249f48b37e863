"""FULLY_CONNECTED: rows few and many, implicit flattening, keep_num_dims, filters of both kinds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.support.case import Case
from tflite_vk.ir.attributes import FullyConnectedAttributes
from tflite_vk.testing.model_writer import ModelWriter


def _dense(
    x: tuple[int, ...],
    weights: tuple[int, int],
    *,
    keep: bool = False,
    has_bias: bool = True,
    run_time_filter: bool = False,
    act: str = "NONE",
) -> Callable[[ModelWriter], None]:
    def build(w: ModelWriter) -> None:
        rng = np.random.default_rng(2)
        outputs, inputs = weights
        source = w.input(x)
        matrix = (
            w.input(weights)
            if run_time_filter
            else w.const(rng.uniform(-1, 1, weights).astype(np.float32))
        )
        bias = w.const(rng.uniform(-1, 1, outputs).astype(np.float32)) if has_bias else None
        shape = (*x[:-1], outputs) if keep else (int(np.prod(x)) // inputs, outputs)
        attributes = FullyConnectedAttributes(
            fused_activation_function=act,  # type: ignore[arg-type]
            keep_num_dims=keep,
        )
        w.output(w.op("FULLY_CONNECTED", [source, matrix, bias], [shape], attributes))

    return build


CASES = [
    Case(f"FULLY_CONNECTED_{m}x{k}x{n}", _dense((m, k), (n, k)))
    for m in (1, 2, 5, 37)
    for k, n in ((7, 3), (64, 10), (1024, 113), (130, 5))
]
CASES += [
    Case("C16_implicit_flatten", _dense((1, 4, 4, 3), (5, 48))),
    Case("C16_keep_num_dims", _dense((2, 3, 48), (5, 48), keep=True)),
    Case("C15_wide_512", _dense((1, 512), (512, 512))),
    Case("C15_wide_4096", _dense((1, 4096), (37, 4096))),
    Case("FULLY_CONNECTED_no_bias", _dense((3, 10), (4, 10), has_bias=False)),
    Case("FULLY_CONNECTED_relu", _dense((1, 10), (4, 10), act="RELU")),
    Case("FULLY_CONNECTED_run_time_filter", _dense((2, 10), (6, 10), run_time_filter=True)),
    Case("FULLY_CONNECTED_rank1", _dense((10,), (4, 10))),
    Case("FULLY_CONNECTED_rank6", _dense((1, 2, 1, 3, 2, 10), (4, 10), keep=True)),
]
