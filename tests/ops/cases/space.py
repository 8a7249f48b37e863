"""SPACE_TO_DEPTH, DEPTH_TO_SPACE, SPACE_TO_BATCH_ND, BATCH_TO_SPACE_ND."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tests.ops.cases.reshape import label
from tests.support.case import Case
from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import BlockSizeAttributes, Conv2DAttributes
from tflite_vk.testing.model_writer import ModelWriter

Shape = tuple[int, ...]
Pairs = Sequence[tuple[int, int]]
Build = Callable[[ModelWriter], None]

F32, I32 = DType.FLOAT32, DType.INT32


def _depth(op: str, shape: Shape, block: int, dtype: DType = F32) -> Build:
    n, h, w, c = shape
    b = block
    result = (
        (n, h // b, w // b, c * b * b)
        if op == "SPACE_TO_DEPTH"
        else (n, h * b, w * b, c // (b * b))
    )

    def build(m: ModelWriter) -> None:
        x = m.input(shape, dtype=dtype)
        m.output(m.op(op, [x], [(result, dtype)], BlockSizeAttributes(block)))

    return build


def _batched(shape: Shape, block: Sequence[int], pads: Pairs) -> Shape:
    spatial = [(n + sum(p)) // b for n, b, p in zip(shape[1:-1], block, pads, strict=True)]
    return (shape[0] * int(np.prod(block)), *spatial, shape[-1])


def _spaced(shape: Shape, block: Sequence[int], crops: Pairs) -> Shape:
    spatial = [n * b - sum(p) for n, b, p in zip(shape[1:-1], block, crops, strict=True)]
    return (shape[0] // int(np.prod(block)), *spatial, shape[-1])


def _batch(op: str, shape: Shape, block: Sequence[int], edges: Pairs, dtype: DType = F32) -> Build:
    make = _batched if op == "SPACE_TO_BATCH_ND" else _spaced

    def build(w: ModelWriter) -> None:
        inputs = [
            w.input(shape, dtype=dtype),
            w.const(np.array(block, np.int32)),
            w.const(np.array(edges, np.int32)),
        ]
        w.output(w.op(op, inputs, [(make(shape, block, edges), dtype)]))

    return build


def _dilated(rate: int) -> Build:
    """A dilated convolution as the converter writes it, on a size that the rate doesn't divide."""

    def build(w: ModelWriter) -> None:
        size, channels = 13, 3
        total = size + 2 * rate
        pads = ((rate, rate + -total % rate),) * 2
        block = w.const(np.array((rate, rate), np.int32))
        kernel = np.random.default_rng(2).uniform(-1, 1, (5, 3, 3, channels)).astype(np.float32)
        x = w.input((1, size, size, channels))
        small = _batched((1, size, size, channels), (rate, rate), pads)
        batched = w.op("SPACE_TO_BATCH_ND", [x, block, w.const(np.array(pads, np.int32))], [small])
        inner = (small[0], small[1] - 2, small[2] - 2, 5)
        y = w.op(
            "CONV_2D",
            [batched, w.const(kernel), w.const(np.zeros(5))],
            [inner],
            Conv2DAttributes(padding="VALID"),
        )
        crops = ((0, -total % rate),) * 2
        result = _spaced(inner, (rate, rate), crops)
        w.output(
            w.op("BATCH_TO_SPACE_ND", [y, block, w.const(np.array(crops, np.int32))], [result])
        )

    return build


CASES = [
    Case(f"{op}_{label(shape)}_by_{block}", _depth(op, shape, block), exact=True)
    for op, shape, block in (
        ("SPACE_TO_DEPTH", (1, 4, 6, 3), 2),
        ("SPACE_TO_DEPTH", (2, 4, 6, 1), 2),
        ("SPACE_TO_DEPTH", (2, 4, 6, 8), 2),
        ("SPACE_TO_DEPTH", (1, 9, 6, 5), 3),
        ("SPACE_TO_DEPTH", (1, 5, 7, 3), 1),
        ("DEPTH_TO_SPACE", (1, 3, 5, 12), 2),
        ("DEPTH_TO_SPACE", (2, 3, 5, 4), 2),
        ("DEPTH_TO_SPACE", (2, 3, 5, 32), 2),
        ("DEPTH_TO_SPACE", (1, 3, 2, 45), 3),
        ("DEPTH_TO_SPACE", (1, 5, 7, 3), 1),
    )
]
CASES += [
    Case("SPACE_TO_DEPTH_INT32", _depth("SPACE_TO_DEPTH", (1, 4, 6, 3), 2, I32), exact=True),
    Case("DEPTH_TO_SPACE_INT32", _depth("DEPTH_TO_SPACE", (1, 4, 6, 12), 2, I32), exact=True),
    Case(
        "SPACE_TO_DEPTH_misfit",
        _depth("SPACE_TO_DEPTH", (1, 5, 6, 3), 2),
        declined="no multiples of block size 2",
    ),
]
CASES += [
    Case(
        f"{op}_{label(shape)}_by_{label(block)}_{label(sum(edges, ()))}",
        _batch(op, shape, block, edges),
        exact=True,
    )
    for op, shape, block, edges in (
        ("SPACE_TO_BATCH_ND", (1, 4, 6, 3), (2, 2), ((0, 0), (0, 0))),
        ("SPACE_TO_BATCH_ND", (2, 5, 7, 5), (2, 3), ((1, 0), (0, 2))),
        ("SPACE_TO_BATCH_ND", (2, 5, 7, 8), (4, 1), ((1, 2), (3, 2))),
        ("SPACE_TO_BATCH_ND", (3, 10, 5), (5,), ((2, 3),)),
        ("BATCH_TO_SPACE_ND", (4, 2, 3, 3), (2, 2), ((0, 0), (0, 0))),
        ("BATCH_TO_SPACE_ND", (12, 3, 3, 5), (2, 3), ((1, 0), (0, 2))),
        ("BATCH_TO_SPACE_ND", (8, 3, 5, 8), (4, 1), ((1, 2), (1, 2))),
        ("BATCH_TO_SPACE_ND", (15, 3, 5), (5,), ((2, 3),)),
    )
]
CASES += [
    Case("SPACE_TO_BATCH_ND_INT32", _batch("SPACE_TO_BATCH_ND", (1, 4, 6, 3), (2, 2), ((0, 0), (1, 1)), I32), exact=True),
    Case("SPACE_TO_BATCH_ND_misfit", _batch("SPACE_TO_BATCH_ND", (1, 5, 6, 3), (2, 2), ((0, 0), (0, 0))), declined="no multiples of the block"),
    Case("C14_SPACE_TO_BATCH_ND_dilation_2", _dilated(2)),
    Case("C14_SPACE_TO_BATCH_ND_dilation_4", _dilated(4)),
]  # fmt: skip
