"""Bits of integers, BITCAST, and STABLEHLO operators under TFLite's names."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.ops.cases.int64 import wide
from tests.ops.cases.reshape import label
from tests.support.case import Array, Case
from tflite_vk.dtypes import DType
from tflite_vk.testing.model_writer import ModelWriter

Shape = tuple[int, ...]
Inputs = Callable[[np.random.Generator], dict[int, Array]]
F32, I32, I64, U32, BOOL = DType.FLOAT32, DType.INT32, DType.INT64, DType.UINT32, DType.BOOL
I8, U8, I16 = DType.INT8, DType.UINT8, DType.INT16


def _binary(
    op: str, a: Shape, b: Shape, dtype: DType, const: int | None = None
) -> Callable[[ModelWriter], None]:
    def build(w: ModelWriter) -> None:
        inputs = [
            w.const(np.arange(int(np.prod(s))).reshape(s).astype(dtype.numpy))
            if i == const
            else w.input(s, dtype=dtype)
            for i, s in enumerate((a, b))
        ]
        w.output(w.op(op, inputs, [(np.broadcast_shapes(a, b), dtype)]))

    return build


def _cast(shape: Shape, source: DType, target: DType) -> Callable[[ModelWriter], None]:
    def build(w: ModelWriter) -> None:
        w.output(w.op("BITCAST", [w.input(shape, dtype=source)], [(shape, target)]))

    return build


def _narrower(w: ModelWriter) -> None:
    w.output(w.op("BITCAST", [w.input((3, 5), dtype=I32)], [((3, 5, 4), DType.INT8)]))


def _sign_of_bits(w: ModelWriter) -> None:
    """Between other operators: the sign bit of a float taken off as an integer."""
    x = w.op("NEG", [w.input((3, 5))], [(3, 5)])
    bits = w.op("BITCAST", [x], [((3, 5), I32)])
    shifted = w.op("RIGHT_SHIFT", [bits, w.const(np.array(31, np.int32))], [((3, 5), I32)])
    back = w.op("BITCAST", [bits], [(3, 5)])
    w.output(shifted, w.op("ABS", [back], [(3, 5)]))


def _words(dtype: DType, *shapes: Shape, shift: bool = False) -> Inputs:
    """Any bits; a shift by less than nothing and by more than there is, too."""

    def inputs(rng: np.random.Generator) -> dict[int, Array]:
        found = {i: rng.integers(0, 1 << 32, s).astype(np.uint32).view(np.int32) if s else np.array(-5, np.int32)
                 for i, s in enumerate(shapes)}  # fmt: skip
        if shift:
            low = 0 if dtype in {U32, U8} else -3
            found[1] = np.asarray(rng.integers(low, 40, shapes[1]), np.int32)
        return {i: v.astype(dtype.numpy) for i, v in found.items()}

    return inputs


def _amounts(rng: np.random.Generator) -> dict[int, Array]:
    return {
        0: rng.integers(-(1 << 31), 1 << 31, (3, 37)).astype(np.int32),
        1: rng.integers(0, 32, (3, 37)).astype(np.int32),
    }


_PAIRS: tuple[tuple[Shape, Shape], ...] = (
    ((3, 37), (3, 37)),
    ((2, 1, 5), (3, 1)),
    ((), (2, 3)),
    ((1, 4, 5, 3), (3,)),
    ((2, 0, 3), (3,)),
)

CASES = [
    Case(
        f"{op}_{t.name}_{label(a)}_{label(b)}",
        _binary(op, a, b, t),
        exact=True,
        inputs=_words(t, a, b, shift=op == "RIGHT_SHIFT"),
    )
    for op in ("BITWISE_XOR", "RIGHT_SHIFT")
    for t in (I32, U32, I8, U8, I16)
    for a, b in _PAIRS
]
CASES += [
    Case(
        f"{op}_const_{i}",
        _binary(op, (3, 5), (5,) if i else (3, 5), I32, i),
        exact=True,
        inputs=_words(I32, *[(3, 5)]) if i else None,
    )
    for op in ("BITWISE_XOR", "RIGHT_SHIFT")
    for i in (0, 1)
]
CASES += [
    Case(f"STABLEHLO_AND_{t.name}", _binary("STABLEHLO_AND", (3, 37), (3, 37), t), exact=True,
         inputs=None if t is BOOL else _words(t, (3, 37), (3, 37)))
    for t in (I32, U32, BOOL)
]  # fmt: skip
CASES += [
    Case(
        "STABLEHLO_SHIFT_LEFT",
        _binary("STABLEHLO_SHIFT_LEFT", (3, 37), (3, 37), I32),
        exact=True,
        inputs=_amounts,
    ),
    Case("STABLEHLO_AND_INT8", _binary("STABLEHLO_AND", (3, 5), (3, 5), I8), declined="is INT8"),
    Case("BITWISE_XOR_INT64", _binary("BITWISE_XOR", (3, 5), (3, 5), I64), declined="is INT64"),
    Case("BITWISE_XOR_const_INT8", _binary("BITWISE_XOR", (3, 5), (5,), I8, 1), exact=True),
    Case(
        "STABLEHLO_AND_unlike",
        _binary("STABLEHLO_AND", (3, 5), (5,), I32),
        declined="don't fit together",
    ),
]
CASES += [
    Case(f"{op}_{t.name}_{label(s)}", _binary(op, s, s, t), exact=t is not F32,
         inputs=(lambda rng, s=s: {0: wide(rng, s), 1: np.flip(wide(rng, s))}) if t is I64 else None)
    for op in ("STABLEHLO_ADD", "STABLEHLO_MULTIPLY", "STABLEHLO_MAXIMUM", "STABLEHLO_MINIMUM")
    for t in (F32, I32, I64)
    for s in ((3, 37), (), (2, 1, 3, 1, 2, 5))
]  # fmt: skip
CASES += [
    Case("STABLEHLO_ADD_const", _binary("STABLEHLO_ADD", (3, 5), (3, 5), F32, 1)),
    Case("STABLEHLO_ADD_unlike", _binary("STABLEHLO_ADD", (3, 5), (5,), F32), declined="differ"),
]
CASES += [
    Case(f"BITCAST_{a.name}_{b.name}_{label(s)}", _cast(s, a, b), exact=True,
         inputs=lambda rng, s=s, a=a: {0: np.asarray(rng.integers(-64, 64, s) / 8, np.float32).view(a.numpy)})
    for a, b in ((I32, F32), (U32, I32), (I32, U32), (U32, F32))
    for s in ((3, 37), (2, 3, 5, 7), ())
]  # fmt: skip
CASES += [
    Case("BITCAST_FLOAT32_INT32", _cast((3, 37), F32, I32), exact=True, inputs=lambda rng: {
        0: (rng.integers(-64, 64, (3, 37)) / 8).astype(np.float32)}),
    Case("BITCAST_INT8_UINT8", _cast((3, 37), DType.INT8, DType.UINT8), exact=True),
    Case("BITCAST_signs", _sign_of_bits, exact=True),
    Case("BITCAST_wider", _cast((3, 5), F32, I64), declined="output 0 is INT64"),
    Case("BITCAST_narrower", _narrower, declined="from INT32 to INT8 (supported: of one width)"),
]  # fmt: skip
