"""Binary operators and comparisons of integers in every broadcast, against LiteRT bit for bit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tests.support.case import Array, Case
from tests.support.quantized import Scale, per_tensor, quantized, quantized_input, whole_range
from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import Activation, BinaryAttributes
from tflite_vk.testing.model_writer import ModelWriter, TensorSpec

INT8, UINT8, INT16 = DType.INT8, DType.UINT8, DType.INT16

_BROADCASTS: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((1, 4, 5, 3), (1, 4, 5, 3)),
    ((1, 10, 1), (1, 10, 3)),
    ((3,), (1, 10, 3)),
    ((1, 7, 1, 5), (1, 1, 6, 5)),
    ((2, 3, 4, 5), (2, 1, 4, 5)),
    ((), (2, 3)),
    ((2, 1, 3, 1, 5), (4, 1, 2, 1)),
    ((1, 16, 9, 8), (1, 16, 9, 8)),
)
_COMPARISONS = ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")
_OUTPUT_SCALES = {"MUL": 0.2, "SQUARED_DIFFERENCE": 0.5, "PRELU": 0.1}


@dataclass(frozen=True)
class Two:
    """Builds a model of one operator on two tensors.

    Attributes:
        op: its name.
        a, b: shapes.
        dtype: of both.
        const: position of a constant operand.
        scale_a, scale_b, scale_y: scales and zero points, for 8 bits; int16 takes 1/256 of a scale.
        dtype_b: of a constant, where it is another.
    """

    op: str
    a: tuple[int, ...]
    b: tuple[int, ...]
    dtype: DType = INT8
    const: int | None = None
    activation: Activation = "NONE"
    scale_a: Scale = (0.05, 100)
    scale_b: Scale = (0.031, 140)
    scale_y: Scale | None = None
    dtype_b: DType | None = None

    def _scale(self, scale: Scale) -> Scale:
        return (scale[0] / 256, 0) if self.dtype is INT16 else scale

    def __call__(self, w: ModelWriter) -> None:
        rng = np.random.default_rng(13)
        same = self.op in {"MAXIMUM", "MINIMUM"}
        scale_a = self._scale(self.scale_a)
        scale_b = scale_a if same else self._scale(self.scale_b)
        operands = []
        for i, (shape, scale) in enumerate(((self.a, scale_a), (self.b, scale_b))):
            if i == self.const:
                dtype = self.dtype_b or self.dtype
                values = whole_range(rng, shape, dtype)
                operands.append(w.const(values, quantization=per_tensor(dtype, scale)))
            else:
                operands.append(quantized_input(w, shape, self.dtype, scale))
        shape = tuple(np.broadcast_shapes(self.a, self.b))
        scale_y = self._scale(self.scale_y or (_OUTPUT_SCALES.get(self.op, 0.09), 90))
        out = quantized(shape, self.dtype, scale_a if same else scale_y)
        if self.op in _COMPARISONS:
            out = TensorSpec(shape, DType.BOOL)
        attributes = None
        if self.op in {"ADD", "SUB", "MUL"}:
            attributes = BinaryAttributes(self.activation, pot_scale_int16=False)
        w.output(w.op(self.op, operands, [out], attributes))

    def inputs(self, rng: np.random.Generator) -> dict[int, Array]:
        shapes = [s for i, s in enumerate((self.a, self.b)) if i != self.const]
        return {i: whole_range(rng, shape, self.dtype) for i, shape in enumerate(shapes)}


def _case(name: str, two: Two) -> Case:
    label = "_".join("x".join(map(str, s)) or "scalar" for s in (two.a, two.b))
    return Case(f"{name}_{two.op}_{two.dtype.name}_{label}", two, inputs=two.inputs, exact=True)


_OPS = {
    INT8: ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE"),
    UINT8: ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM"),
    INT16: ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM"),
}
CASES = [
    _case("quantized", Two(op, a, b, dtype))
    for dtype, ops in _OPS.items()
    for op in ops
    for a, b in (_BROADCASTS if dtype is INT8 else _BROADCASTS[3:5])
    if max(len(a), len(b)) < 5 or op in {"ADD", "SUB", "MUL"}
]
CASES += [
    _case(f"quantized_{activation}", Two(op, (2, 7, 5), (2, 7, 5), dtype, activation=activation))
    for op in ("ADD", "SUB", "MUL")
    for dtype in (INT8, UINT8, INT16)
    for activation in ("RELU", "RELU6", "RELU_N1_TO_1")
]
CASES += [
    _case(f"quantized_const{const}", Two("SUB", (3,), (1, 4, 4, 3), const=const))
    for const in (0, 1)
]
CASES += [
    _case("quantized", Two("PRELU", (1, 6, 5, 7), alpha, dtype))
    for alpha in ((1, 6, 5, 7), (7,), (1, 1, 1))
    for dtype in (INT8, UINT8)
]
CASES += [
    _case("F5_scales_far_apart", Two(op, (9, 37), (9, 37), dtype, scale_b=(4.7, 3)))
    for op in ("ADD", "SUB")
    for dtype in (INT8, UINT8, INT16)
]
# Powers of two make ties in every rounding.
CASES += [
    _case(
        "F4_ties",
        Two(
            op,
            (31, 33),
            (31, 33),
            dtype,
            scale_a=(0.5, 128),
            scale_b=(0.25, 128),
            scale_y=(2.0, 128),
        ),
    )
    for op in ("ADD", "SUB", "MUL", "SQUARED_DIFFERENCE")
    for dtype in (INT8, UINT8, INT16)
    if op != "SQUARED_DIFFERENCE" or dtype is INT8
]
CASES += [
    _case("quantized", Two(op, a, b, dtype, scale_a=(0.5, 128), scale_b=(0.25, 128)))
    for op in _COMPARISONS
    for dtype in (INT8, UINT8)
    for a, b in (((47, 39), (47, 39)), ((2, 1, 5), (3, 1)))
]
CASES += [
    _case("quantized_same_scales", Two(op, (40, 41), (40, 41), scale_b=(0.05, 100)))
    for op in ("EQUAL", "LESS")
]
CASES += [
    _case("quantized_same_scales", Two(op, a, b, INT16, scale_b=(0.05, 100)))
    for op in _COMPARISONS
    for a, b in (((47, 39), (47, 39)), ((2, 1, 5), (3, 1)))
]
CASES += [_case("quantized", Two(op, (40, 41), (40, 41), INT16)) for op in ("EQUAL", "NOT_EQUAL")]
CASES += [
    Case("quantized_LESS_INT16_declined", Two("LESS", (3, 4), (3, 4), INT16), declined="scale"),
    Case("quantized_PRELU_INT16_declined", Two("PRELU", (1, 3, 4), (4,), INT16), declined="alpha"),
]
CASES += [
    _case(
        f"quantized_{scale}",
        Two(
            "PRELU",
            (1, 6, 5, 7),
            alpha,
            INT16,
            const=1,
            scale_b=(scale, 131),
            scale_y=(0.1, 0),
            dtype_b=INT8,
        ),
    )
    for alpha in ((1, 6, 5, 7), (7,), (1, 1, 1))
    for scale in (0.7, 5.0)
]
CASES += [
    Case(
        "quantized_ADD_same_tensor_twice",
        lambda w: w.output(
            w.op(
                "ADD",
                [quantized_input(w, (5, 7), INT8, (0.1, 100))] * 2,
                [quantized((5, 7), INT8, (0.2, 90))],
                BinaryAttributes(),
            )
        ),
        exact=True,
    ),
]
