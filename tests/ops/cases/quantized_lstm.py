"""LSTM of int8 with int16 cells, against LiteRT bit for bit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tests.support.case import Array, Case
from tests.support.quantized import whole_range
from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import LstmAttributes
from tflite_vk.ir.graph import Quantization
from tflite_vk.testing.model_writer import ModelWriter, TensorSpec

INT8, INT16, INT32 = DType.INT8, DType.INT16, DType.INT32


def _q(scale: float, zero: int = 0) -> Quantization:
    return Quantization((float(np.float32(scale)),), (zero,))


@dataclass(frozen=True)
class Lstm:
    """Builds a model of one LSTM.

    Attributes:
        batch, steps, inputs, cells: sizes.
        outputs: of a projection; 0 for none.
        coupled, peephole, projection_bias, norm: optional parts.
        time_major: steps before sequences.
        exponent: a cell's scale is 2 to it.
        cell_clip, proj_clip: 0 for none.
        single: LSTM, one step.
        hidden_zero: zero point of the outputs before a projection.
        norm_scale: of layer norm coefficients.
    """

    batch: int = 2
    steps: int = 4
    inputs: int = 3
    cells: int = 6
    outputs: int = 0
    coupled: bool = False
    peephole: bool = False
    projection_bias: bool = False
    norm: bool = False
    time_major: bool = False
    exponent: int = -11
    cell_clip: float = 0.0
    proj_clip: float = 0.0
    single: bool = False
    hidden_zero: int = 9
    norm_scale: float = 4e-5

    @property
    def x(self) -> tuple[int, ...]:
        """Shape of the input."""
        if self.single:
            return (self.batch, self.inputs)
        first = (self.steps, self.batch) if self.time_major else (self.batch, self.steps)
        return (*first, self.inputs)

    def __call__(self, w: ModelWriter) -> None:
        rng = np.random.default_rng(8)
        outputs = self.outputs or self.cells
        q_x, q_h = _q(0.02, 11), _q(0.008, -7 if self.outputs else self.hidden_zero)
        q_c, q_hidden = _q(2.0**self.exponent), _q(0.008, self.hidden_zero)

        def matrix(rows: int, columns: int) -> int:
            values = rng.integers(-127, 128, (rows, columns)).astype(np.int8)
            scale = rng.uniform(0.5, 1.5) / (127 * np.sqrt(columns))
            return w.const(values, quantization=_q(4 * scale))

        def vector(dtype: DType, most: int, scale: float, size: int) -> int:
            values = rng.integers(-most, most + 1, size).astype(dtype.numpy)
            return w.const(values, quantization=_q(scale))

        def gates(*ids: int) -> list[int | None]:
            return [None if self.coupled and i == 0 else t for i, t in enumerate(ids)]

        inputs: list[int | None] = [
            w.input(self.x, dtype=INT8, quantization=q_x),
            *gates(*(matrix(self.cells, self.inputs) for _ in range(4))),
            *gates(*(matrix(self.cells, outputs) for _ in range(4))),
        ]
        peepholes = [vector(INT16, 32767, 1e-4, self.cells) for _ in range(3)]
        inputs += gates(*peepholes) if self.peephole else [None] * 3
        inputs += gates(*(vector(INT32, 3000, 1e-4, self.cells) for _ in range(4)))
        inputs.append(matrix(outputs, self.cells) if self.outputs else None)
        inputs.append(vector(INT32, 3000, 1e-4, outputs) if self.projection_bias else None)
        inputs.append(w.variable((self.batch, outputs), dtype=INT8, quantization=q_h))
        inputs.append(w.variable((self.batch, self.cells), dtype=INT16, quantization=q_c))
        norms = [vector(INT16, 32767, self.norm_scale, self.cells) for _ in range(4)]
        inputs += gates(*norms) if self.norm else [None] * 4
        steps = (1e-4, 3e-4, 2e-4, 5e-4) if self.norm else (2.0**-12,) * 4
        between = [w.tensor(TensorSpec((1,), INT16, _q(s))) for s in steps]
        between.append(w.tensor(TensorSpec((1,), INT8, q_hidden)))
        attributes = LstmAttributes(
            fused_activation_function="TANH",
            cell_clip=self.cell_clip,
            proj_clip=self.proj_clip,
            time_major=self.time_major and not self.single,
        )
        op = "LSTM" if self.single else "UNIDIRECTIONAL_SEQUENCE_LSTM"
        out = TensorSpec((*self.x[:-1], outputs), INT8, q_h)
        w.output(w.op(op, inputs, [out], attributes, version=4, intermediates=between))

    def values(self, rng: np.random.Generator) -> dict[int, Array]:
        """Inputs of the whole range."""
        return {0: whole_range(rng, self.x, INT8)}


_MODELS = {
    "plain": Lstm(),
    "one_step": Lstm(batch=1, steps=1),
    "long": Lstm(batch=3, steps=23, inputs=5, cells=8),
    "wide": Lstm(batch=1, steps=5, inputs=37, cells=113),
    "time_major": Lstm(batch=3, steps=5, time_major=True),
    "coupled": Lstm(coupled=True, steps=6),
    "peephole": Lstm(peephole=True, steps=6),
    "coupled_peephole": Lstm(coupled=True, peephole=True),
    "projection": Lstm(outputs=5, steps=5),
    "projection_bias": Lstm(cells=5, outputs=9, projection_bias=True),
    "fine_cells": Lstm(exponent=-15, steps=9),
    "coarse_cells": Lstm(exponent=-9, steps=9),
    "cell_clip": Lstm(cell_clip=0.3, steps=7),
    "proj_clip": Lstm(outputs=5, proj_clip=0.4),
    "all": Lstm(
        batch=3,
        steps=7,
        inputs=13,
        cells=11,
        outputs=11,
        coupled=True,
        peephole=True,
        projection_bias=True,
        cell_clip=2.5,
        proj_clip=0.8,
        time_major=True,
        exponent=-12,
    ),
    "norm": Lstm(norm=True, steps=6),
    "norm_wide": Lstm(norm=True, batch=1, steps=5, inputs=20, cells=67),
    "norm_one_cell": Lstm(norm=True, cells=1, steps=5),
    "norm_coarse": Lstm(norm=True, steps=6, cells=16, norm_scale=1e-3),
    "norm_all": Lstm(
        batch=3,
        steps=7,
        inputs=13,
        cells=11,
        outputs=11,
        norm=True,
        coupled=True,
        peephole=True,
        projection_bias=True,
        cell_clip=2.5,
    ),
    "norm_projection": Lstm(norm=True, cells=9, outputs=4, steps=6),
    "single": Lstm(single=True, batch=3, cells=7),
    "single_projection": Lstm(single=True, batch=5, outputs=3),
}

CASES = [
    Case(f"quantized_LSTM_{name}", model, inputs=model.values, exact=True)
    for name, model in _MODELS.items()
]
CASES += [
    Case(
        "quantized_LSTM_peephole_projection_declined",
        Lstm(peephole=True, outputs=5),
        declined="peepholes with a projection",
    ),
]
