"""BATCH_MATMUL: ranks, broadcast batches, both transpositions, constants on either side."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.support.case import Array, Case
from tflite_vk.ir.attributes import BatchMatMulAttributes, SoftmaxAttributes
from tflite_vk.testing.model_writer import ModelWriter

Shape = tuple[int, ...]


def _stored(shape: Shape, turned: bool) -> Shape:
    return (*shape[:-2], shape[-1], shape[-2]) if turned else shape


def _build(
    a: Shape, b: Shape, adj_x: bool = False, adj_y: bool = False, const: int | None = None
) -> Callable[[ModelWriter], None]:
    def build(w: ModelWriter) -> None:
        rng = np.random.default_rng(5)
        stored = (_stored(a, adj_x), _stored(b, adj_y))
        inputs = [
            w.const(rng.uniform(-1, 1, s).astype(np.float32)) if const == i else w.input(s)
            for i, s in enumerate(stored)
        ]
        out = (*np.broadcast_shapes(a[:-2], b[:-2]), a[-2], b[-1])
        w.output(
            w.op(
                "BATCH_MATMUL",
                inputs,
                [out],
                BatchMatMulAttributes(adj_x=adj_x, adj_y=adj_y),
                version=2,
            )
        )

    return build


def _product(adj_x: bool = False, adj_y: bool = False) -> Callable[[Array, Array], list[Array]]:
    def expected(a: Array, b: Array) -> list[Array]:
        left = a.swapaxes(-1, -2) if adj_x else a
        right = b.swapaxes(-1, -2) if adj_y else b
        return [(left.astype(np.float64) @ right.astype(np.float64)).astype(np.float32)]

    return expected


def _name(a: Shape, b: Shape, adj_x: bool, adj_y: bool) -> str:
    sides = ["x".join(map(str, s)) for s in (a, b)]
    return f"BATCH_MATMUL_{sides[0]}_{sides[1]}{'_adjx' if adj_x else ''}{'_adjy' if adj_y else ''}"


_SHAPES: tuple[tuple[Shape, Shape], ...] = (
    ((3, 5), (5, 7)),
    ((1, 1), (1, 1)),
    ((1, 113), (113, 1)),
    ((1, 4, 6, 8), (1, 4, 8, 5)),
    ((2, 3, 7, 5), (1, 3, 5, 9)),
    ((2, 1, 7, 5), (2, 3, 5, 9)),
    ((3, 37, 3), (3, 13)),
    ((4, 6), (2, 3, 6, 5)),
    ((1, 9, 16, 12), (5, 1, 12, 16)),
)


def _attention(w: ModelWriter, batch: Shape, s: int, d: int) -> None:
    """Scaled scores with a mask that broadcasts, softmax, and the values."""
    q, v = w.input((*batch, s, d)), w.input((*batch, s, d))
    k = w.input((*batch, d, s))
    scores = (*batch, s, s)
    y = w.op("BATCH_MATMUL", [q, k], [scores], BatchMatMulAttributes())
    y = w.op("MUL", [y, w.const(np.float32(0.577))], [scores])
    mask = w.op("ADD", [y, w.input((*(1 for _ in batch), s, s))], [scores])
    y = w.op("SOFTMAX", [mask], [scores], SoftmaxAttributes())
    w.output(mask, w.op("BATCH_MATMUL", [y, v], [(*batch, s, d)], BatchMatMulAttributes()))


def _residual(w: ModelWriter) -> None:
    a, b, c = w.input((2, 5, 6)), w.input((2, 6, 7)), w.input((2, 5, 7))
    y = w.op("BATCH_MATMUL", [a, b], [(2, 5, 7)], BatchMatMulAttributes())
    y = w.op("ADD", [y, w.const(np.linspace(-1, 1, 7).astype(np.float32))], [(2, 5, 7)])
    w.output(w.op("RELU", [w.op("ADD", [y, c], [(2, 5, 7)])], [(2, 5, 7)]))


CASES = [
    Case(_name(a, b, adj_x, adj_y), _build(a, b, adj_x, adj_y))
    for a, b in _SHAPES
    for adj_x in (False, True)
    for adj_y in (False, True)
]
CASES += [
    Case(f"{_name(a, b, adj_x, adj_y)}_const{const}", _build(a, b, adj_x, adj_y, const))
    for a, b in (((2, 5, 6), (2, 6, 7)), ((3, 4, 5), (5, 6)), ((4, 5), (3, 5, 2)))
    for adj_x, adj_y in ((False, False), (True, True))
    for const in (0, 1)
]
CASES += [
    Case(
        f"BATCH_MATMUL_rank6_{int(adj_x)}{int(adj_y)}",
        _build((2, 1, 3, 1, 5, 6), (1, 2, 3, 2, 6, 7), adj_x, adj_y),
        expected=_product(adj_x, adj_y),
        why="LiteRT's kernel takes rank 5 at most",
    )
    for adj_x in (False, True)
    for adj_y in (False, True)
]
CASES += [
    Case(
        f"E10_BATCH_MATMUL_K1024_{int(adj_x)}{int(adj_y)}",
        _build((2, 17, 1024), (2, 1024, 19), adj_x, adj_y),
        rtol=1e-5,
    )
    for adj_x in (False, True)
    for adj_y in (False, True)
]
CASES += [
    Case("A5_attention_8_heads", lambda w: _attention(w, (1, 8), 5, 3)),
    Case("G8_attention_rank3", lambda w: _attention(w, (4,), 7, 6)),
    Case("G8_BATCH_MATMUL_residual", _residual),
    Case("I3_BATCH_MATMUL_70000_batches", _build((70000, 2, 3), (70000, 3, 2))),
    Case("BATCH_MATMUL_64x96x80", _build((64, 96), (96, 80))),
    Case("BATCH_MATMUL_empty", _build((0, 3, 4), (4, 5))),
]
