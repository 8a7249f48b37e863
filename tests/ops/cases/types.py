"""Operators that move values, with every type that LiteRT's own kernels move; functions with few types."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.ops.cases.int64 import moves
from tests.ops.cases.reshape import label
from tests.support.case import Array, Case
from tflite_vk.dtypes import DType
from tflite_vk.ir import attributes as ir
from tflite_vk.testing.model_writer import ModelWriter

Shape = tuple[int, ...]
Build = Callable[[ModelWriter], None]

_TYPES = (
    DType.FLOAT32,
    DType.INT32,
    DType.UINT32,
    DType.INT16,
    DType.INT8,
    DType.UINT8,
    DType.BOOL,
)
_REFUSED = {
    DType.BOOL: {"PACK", "SPLIT", "SPLIT_V", "SPACE_TO_DEPTH", "ZEROS_LIKE"},
    DType.INT8: {"ZEROS_LIKE"},
    DType.UINT8: {"ZEROS_LIKE"},
    DType.INT16: {"SPACE_TO_DEPTH", "ZEROS_LIKE"},
    DType.UINT32: {
        "PAD",
        "PADV2",
        "REVERSE_V2",
        "SPACE_TO_DEPTH",
        "SPLIT",
        "SPLIT_V",
        "ZEROS_LIKE",
    },
}
"""What LiteRT has no kernel for; ours move these too."""


def _op(
    op: str,
    inputs: list[tuple[Shape, DType]],
    shape: Shape,
    out: DType,
    a: ir.Attributes | None = None,
) -> Build:
    def build(w: ModelWriter) -> None:
        w.output(w.op(op, [w.input(s, dtype=t) for s, t in inputs], [(shape, out)], a))

    return build


def _one_hot(t: DType) -> Build:
    def build(w: ModelWriter) -> None:
        indices = w.input((3, 5), dtype=DType.INT32)
        given = [w.const(np.array(4, np.int32)), *(w.const(np.array(v, t.numpy)) for v in (7, 1))]
        w.output(w.op("ONE_HOT", [indices, *given], [((3, 5, 4), t)], ir.OneHotAttributes()))

    return build


def _indices(
    position: int, shape: Shape, size: int
) -> Callable[[np.random.Generator], dict[int, Array]]:
    return lambda rng: {position: rng.integers(0, size, shape).astype(np.int32)}


CASES = [
    Case(f"{t.name}_{name}", build, exact=True)
    for t in _TYPES
    for name, build in moves(t, 1)
    if name.removesuffix("_large") not in _REFUSED.get(t, ())
]
CASES += [
    Case(
        f"{op}_float_{label(a)}_{label(b)}",
        _op(op, [(a, DType.FLOAT32), (b, DType.FLOAT32)], np.broadcast_shapes(a, b), DType.FLOAT32),
        inputs=lambda rng, a=a, b=b: {
            0: rng.uniform(-9, 9, a).astype(np.float32),
            1: (rng.uniform(0.5, 4, b) * rng.choice([-1, 1], b)).astype(np.float32),
        },
        expected=None if op == "FLOOR_MOD" or a == b else lambda x, y: [np.arctan2(x, y)],
        why="" if op == "FLOOR_MOD" or a == b else "TFLite's ATAN2 broadcasts nothing",
    )
    for op in ("ATAN2", "FLOOR_MOD")
    for a, b in (((3, 37), (3, 37)), ((2, 1, 5), (3, 1)), ((), (2, 3)), ((1, 4, 5, 3), (3,)))
]
_I32, _B = DType.INT32, DType.BOOL
for _t in (DType.UINT8, DType.INT8, DType.UINT32):
    CASES += [
        Case(f"SELECT_V2_{_t.name}", _op("SELECT_V2", [((3, 1), _B), ((3, 5), _t), ((5,), _t)], (3, 5), _t), exact=True),
        Case(f"GATHER_{_t.name}", _op("GATHER", [((7, 5), _t), ((3,), _I32)], (3, 5), _t, ir.GatherAttributes(0)),
             exact=True, inputs=_indices(1, (3,), 7)),
        Case(f"REVERSE_SEQUENCE_{_t.name}", _op("REVERSE_SEQUENCE", [((3, 7, 5), _t), ((3,), _I32)], (3, 7, 5), _t,
             ir.ReverseSequenceAttributes(1, 0)), exact=True, inputs=_indices(1, (3,), 8)),
        Case(f"DYNAMIC_UPDATE_SLICE_{_t.name}", _op("DYNAMIC_UPDATE_SLICE", [((3, 7), _t), ((2, 3), _t), ((2,), _I32)], (3, 7), _t),
             exact=True, inputs=_indices(2, (2,), 2)),
        Case(f"GATHER_ND_{_t.name}", _op("GATHER_ND", [((3, 4, 5), _t), ((3, 2), _I32)], (3, 5), _t), exact=True,
             inputs=_indices(1, (3, 2), 3)),
    ]  # fmt: skip
_NO_KERNEL = {
    f"{op}_{t}"
    for op, t in (
        ("REVERSE_SEQUENCE", "INT8"),
        ("REVERSE_SEQUENCE", "UINT32"),
        ("GATHER", "UINT32"),
        ("GATHER_ND", "UINT32"),
    )
}
CASES = [case for case in CASES if case.name not in _NO_KERNEL]
CASES += [
    Case(f"ONE_HOT_{t.name}_values", _one_hot(t), exact=True, inputs=_indices(0, (3, 5), 4))
    for t in (DType.UINT8, DType.INT8)
]
