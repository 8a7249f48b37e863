"""BATCH_MATMUL of int8, against LiteRT bit for bit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tests.support.case import Array, Case
from tests.support.quantized import per_tensor, quantized, quantized_input, whole_range
from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import BatchMatMulAttributes
from tflite_vk.testing.model_writer import ModelWriter

Shape = tuple[int, ...]


def _stored(shape: Shape, turned: bool) -> Shape:
    return (*shape[:-2], shape[-1], shape[-2]) if turned else shape


@dataclass(frozen=True)
class Product:
    """A model of one BATCH_MATMUL."""

    a: Shape
    b: Shape
    adj_x: bool = False
    adj_y: bool = False
    const: int | None = None
    dtype: DType = DType.INT8
    right: DType | None = None

    @property
    def shapes(self) -> tuple[Shape, Shape]:
        """Of the inputs as they are stored."""
        return _stored(self.a, self.adj_x), _stored(self.b, self.adj_y)

    def whole_range(self, rng: np.random.Generator) -> dict[int, Array]:
        """Values of any size for the inputs that aren't constant."""
        free = [(s, self.type_of(i)) for i, s in enumerate(self.shapes) if i != self.const]
        return {i: whole_range(rng, s, dtype) for i, (s, dtype) in enumerate(free)}

    def type_of(self, side: int) -> DType:
        """Element type of a side."""
        return self.right if side == 1 and self.right is not None else self.dtype

    def __call__(self, w: ModelWriter) -> None:
        rng = np.random.default_rng(3)
        # Beside int16 the zero point is 0, which counts from the lowest value here.
        scales = ((0.031, 100), (0.047, 140 if self.right is None else 128))
        inputs = [
            w.const(
                whole_range(rng, s, self.type_of(i)), quantization=per_tensor(self.type_of(i), q)
            )
            if self.const == i
            else quantized_input(w, s, self.type_of(i), q)
            for i, (s, q) in enumerate(zip(self.shapes, scales, strict=True))
        ]
        batches = np.broadcast_shapes(self.a[:-2], self.b[:-2])
        size = 0.031 * 0.047 * 74 * float(np.sqrt(self.a[-1]))
        if self.dtype is DType.INT16:
            size *= 256 if self.right is None else 1
        out = quantized((*batches, self.a[-2], self.b[-1]), self.dtype, (size, 110))
        attributes = BatchMatMulAttributes(adj_x=self.adj_x, adj_y=self.adj_y)
        w.output(
            w.op(
                "BATCH_MATMUL",
                inputs,
                [out],
                attributes,
                version=4 if self.dtype is DType.INT16 else 2,
            )
        )


_SHAPES: tuple[tuple[Shape, Shape], ...] = (
    ((3, 5), (5, 7)),
    ((1, 1), (1, 1)),
    ((1, 113), (113, 1)),
    ((1, 4, 6, 8), (1, 4, 8, 5)),
    ((2, 1, 7, 5), (2, 3, 5, 9)),
    ((3, 37, 3), (3, 13)),
    ((1, 9, 16, 12), (5, 1, 12, 16)),
    ((1, 3, 4608), (1, 4608, 5)),
)


def _name(product: Product) -> str:
    sides = ["x".join(map(str, s)) for s in (product.a, product.b)]
    turned = f"{'_adjx' if product.adj_x else ''}{'_adjy' if product.adj_y else ''}"
    return f"BATCH_MATMUL_INT8_{sides[0]}_{sides[1]}{turned}"


CASES = [
    *(
        Case(_name(product), product, exact=True)
        for a, b in _SHAPES
        for x in (False, True)
        for y in (False, True)
        for product in [Product(a, b, x, y)]
    ),
    *(
        Case(f"{_name(product)}_const_{side}", product, exact=True)
        for side in (0, 1)
        for product in [Product((2, 7, 5), (2, 5, 9), const=side)]
    ),
]
