"""Reductions of integers, against LiteRT bit for bit.

LiteRT 2.3.0's reference kernel of SUM writes -1 for int8 and int16 (its uint8 one is right), so those are
held against the same arithmetic in Python.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tests.support.case import Array, Case
from tests.support.quantized import per_tensor, quantized, quantized_input, whole_range
from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import ReducerAttributes
from tflite_vk.ops.quantization import multiply_by_quantized, quantize_multiplier
from tflite_vk.testing.model_writer import ModelWriter

INT8, UINT8, INT16 = DType.INT8, DType.UINT8, DType.INT16


@dataclass(frozen=True)
class Reduction:
    """Builds a model of one reduction."""

    op: str
    dtype: DType
    shape: tuple[int, ...]
    axes: tuple[int, ...]
    keep: bool
    rescales: bool

    @property
    def scales(self) -> tuple[tuple[float, int], tuple[float, int]]:
        count = np.prod([self.shape[a] for a in self.axes])
        y = 0.031 * (float(np.sqrt(count)) if self.op == "SUM" else 1.0)
        return (0.05, 100), ((y, 120) if self.rescales else (0.05, 100))

    def __call__(self, w: ModelWriter) -> None:
        axes = {a % len(self.shape) for a in self.axes}
        kept = [1 if i in axes else d for i, d in enumerate(self.shape)]
        if not self.keep:
            kept = [d for i, d in enumerate(self.shape) if i not in axes]
        x_scale, y_scale = self.scales
        x = quantized_input(w, self.shape, self.dtype, x_scale)
        out = quantized(tuple(kept), self.dtype, y_scale)
        axis = w.const(np.array(self.axes, np.int32))
        w.output(w.op(self.op, [x, axis], [out], ReducerAttributes(keep_dims=self.keep)))

    def inputs(self, rng: np.random.Generator) -> dict[int, Array]:
        return {0: whole_range(rng, self.shape, self.dtype)}

    def expected(self, x: Array) -> list[Array]:
        (sx, zx), (sy, zy) = (
            (q.scale[0], q.zero_point[0]) for q in (per_tensor(self.dtype, s) for s in self.scales)
        )
        sums = (x.astype(np.int64) - zx).sum(self.axes, keepdims=self.keep)
        factor = quantize_multiplier(sx / sy)
        scaled = np.vectorize(lambda v: multiply_by_quantized(int(v), factor))(sums) + zy
        info = np.iinfo(self.dtype.numpy)
        return [np.clip(scaled, info.min, info.max).astype(self.dtype.numpy)]


def _case(r: Reduction) -> Case:
    shape, axes = ("x".join(map(str, v)) for v in (r.shape, r.axes))
    name = f"quantized_{r.op}_{r.dtype.name}_{shape}_axes{axes}_keep{int(r.keep)}_{int(r.rescales)}"
    is_broken = r.op == "SUM" and r.dtype is not UINT8
    expected = r.expected if is_broken else None
    why = "LiteRT's reference kernel is wrong" if is_broken else ""
    return Case(name, r, inputs=r.inputs, expected=expected, exact=True, why=why)


CASES = [
    _case(Reduction(op, dtype, shape, axes, keep, rescales))
    for op in ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN")
    for dtype in (INT8, UINT8, INT16)
    for shape, axes, keep in (
        ((2, 7, 7, 13), (1, 2), True),
        ((3, 5, 6), (2,), False),
        ((3, 5, 6), (0, 1, 2), False),
        ((4, 37), (0,), False),
        ((1, 30, 30, 9), (1, 2), False),
        ((2, 3, 4, 5), (1, 3), True),
        ((3, 4), (-1,), False),
    )
    for rescales in (False, True)
    if not rescales or op in {"MEAN", "SUM"}
]
CASES += [
    Case(
        "F5_REDUCE_MAX_scales_differ",
        Reduction("REDUCE_MAX", INT8, (3, 5), (1,), False, True),
        declined="differ in scale",
    )
]
