"""PAD, PADV2, MIRROR_PAD, TILE, BROADCAST_TO."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tests.ops.cases.reshape import label
from tests.support.case import Case
from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import BinaryAttributes, MirrorPadAttributes
from tflite_vk.testing.model_writer import ModelWriter

Shape = tuple[int, ...]
Pairs = tuple[tuple[int, int], ...]
Build = Callable[[ModelWriter], None]

F32, I32, BOOL = DType.FLOAT32, DType.INT32, DType.BOOL


def _padded(shape: Shape, pads: Pairs) -> Shape:
    return tuple(d + a + b for d, (a, b) in zip(shape, pads, strict=True))


def _pad(shape: Shape, pads: Pairs, dtype: DType = F32, index_type: type = np.int32) -> Build:
    def build(w: ModelWriter) -> None:
        inputs = [w.input(shape, dtype=dtype), w.const(np.array(pads, index_type))]
        w.output(w.op("PAD", inputs, [(_padded(shape, pads), dtype)]))

    return build


def _pad_v2(shape: Shape, pads: Pairs, value: float | None, dtype: DType = F32) -> Build:
    def build(w: ModelWriter) -> None:
        x = w.input(shape, dtype=dtype)
        fill = w.input((), dtype=dtype) if value is None else w.const(np.array(value, dtype.numpy))
        inputs = [x, w.const(np.array(pads, np.int32)), fill]
        w.output(w.op("PADV2", inputs, [(_padded(shape, pads), dtype)]))

    return build


def _mirror(shape: Shape, pads: Pairs, mode: str, dtype: DType = F32) -> Build:
    def build(w: ModelWriter) -> None:
        inputs = [w.input(shape, dtype=dtype), w.const(np.array(pads, np.int32))]
        attributes = MirrorPadAttributes(mode)  # type: ignore[arg-type]
        w.output(w.op("MIRROR_PAD", inputs, [(_padded(shape, pads), dtype)], attributes))

    return build


def _tile(
    shape: Shape, multiples: Sequence[int], dtype: DType = F32, index_type: type = np.int32
) -> Build:
    result = tuple(d * n for d, n in zip(shape, multiples, strict=True))

    def build(w: ModelWriter) -> None:
        inputs = [w.input(shape, dtype=dtype), w.const(np.array(multiples, index_type))]
        w.output(w.op("TILE", inputs, [(result, dtype)]))

    return build


def _broadcast(
    shape: Shape, result: Shape, dtype: DType = F32, index_type: type = np.int32
) -> Build:
    def build(w: ModelWriter) -> None:
        inputs = [w.input(shape, dtype=dtype), w.const(np.array(result, index_type))]
        w.output(w.op("BROADCAST_TO", inputs, [(result, dtype)], version=2))

    return build


def _broadcast_and_add(w: ModelWriter) -> None:
    shape = w.const(np.array((1, 4, 8, 64), np.int32))
    y = w.op("BROADCAST_TO", [w.input((1, 4, 1, 64)), shape], [(1, 4, 8, 64)], version=2)
    w.output(
        w.op("ADD", [y, w.const(np.array(0, np.float32))], [(1, 4, 8, 64)], BinaryAttributes())
    )


def _pad_then_add(w: ModelWriter) -> None:
    # A residual that gains channels, as in BlazeFace.
    x, z = w.input((1, 5, 5, 6)), w.input((1, 5, 5, 9))
    pads = w.const(np.array(((0, 0), (0, 0), (0, 0), (0, 3)), np.int32))
    y = w.op("PAD", [x, pads], [(1, 5, 5, 9)])
    w.output(
        w.op("ADD", [y, z], [(1, 5, 5, 9)], BinaryAttributes(fused_activation_function="RELU"))
    )


_PADS: tuple[tuple[Shape, Pairs], ...] = (
    ((1, 5, 7, 8), ((0, 0), (1, 1), (1, 1), (0, 0))),
    ((1, 5, 7, 3), ((0, 0), (0, 1), (0, 1), (0, 0))),
    ((2, 5, 7, 3), ((0, 0), (2, 1), (0, 3), (0, 0))),
    ((1, 5, 7, 6), ((0, 0), (0, 0), (0, 0), (0, 3))),
    ((1, 5, 7, 6), ((0, 0), (0, 0), (0, 0), (3, 2))),
    ((1, 5, 7, 6), ((0, 0), (1, 0), (0, 1), (4, 5))),
    ((2, 3, 4, 5), ((1, 2), (3, 1), (1, 0), (1, 1))),
    ((37,), ((3, 4),)),
    ((3, 5), ((1, 0), (0, 0))),
    ((3, 5), ((0, 0), (8, 0))),
    ((2, 3, 4), ((0, 2), (0, 0), (1, 1))),
    ((2, 2, 3, 2, 5), ((0, 1), (1, 0), (0, 0), (2, 2), (1, 0))),
    ((1, 1, 1, 1), ((0, 0), (2, 2), (2, 2), (2, 2))),
    ((3, 5), ((0, 0), (0, 0))),
)
CASES = [Case(f"PAD_{label(s)}_{label(sum(p, ()))}", _pad(s, p), exact=True) for s, p in _PADS]
CASES += [
    Case(f"D19_PADV2_{value}_{label(s)}_{label(sum(p, ()))}", _pad_v2(s, p, value), exact=True)
    for value in (3.0, -np.inf)
    for s, p in (*_PADS[1:7], ((1, 3, 3, 5), ((0, 0), (1, 1), (1, 1), (2, 1))))
]
CASES += [
    Case("PAD_zero_size", _pad((0, 3), ((1, 1), (0, 2))), exact=True,
         expected=lambda x: [np.zeros((2, 5), np.float32)]),
    Case("PAD_rank_6", _pad((1, 2, 1, 2, 3, 5), ((0, 1), (1, 0), (1, 1), (0, 1), (1, 0), (2, 0))), exact=True,
         expected=lambda x: [np.pad(x, ((0, 1), (1, 0), (1, 1), (0, 1), (1, 0), (2, 0)))],
         why="BUILTIN_REF pads up to rank 5"),
    Case("PAD_INT32", _pad((3, 5), ((1, 1), (1, 2)), I32), exact=True),
    Case("PAD_int64_paddings", _pad((3, 5), ((1, 1), (1, 2)), index_type=np.int64), exact=True),
    Case("PAD_negative", _pad((3, 5), ((-1, 1), (1, 2))), declined="hold a negative one"),
    Case("PADV2_INT32", _pad_v2((3, 5), ((1, 1), (1, 2)), 7, I32), exact=True),
    Case("PADV2_run_time_value", _pad_v2((3, 5), ((1, 1), (1, 2)), None), exact=True),
    Case("PAD_then_ADD", _pad_then_add),
]  # fmt: skip

_MIRRORS: tuple[tuple[Shape, Pairs], ...] = (
    ((2, 5, 5, 3), ((1, 1), (2, 3), (4, 1), (2, 1))),
    ((1, 5, 7, 8), ((0, 0), (2, 1), (1, 4), (0, 0))),
    ((1, 5, 7, 3), ((0, 0), (2, 1), (1, 4), (0, 0))),
    ((1, 5, 7, 6), ((0, 0), (0, 0), (0, 0), (5, 3))),
    ((37,), ((3, 36),)),
    ((3, 5), ((2, 1), (0, 0))),
    ((2, 3, 5), ((1, 0), (0, 0), (4, 4))),
)
CASES += [
    Case(f"D17_MIRROR_PAD_{mode}_{label(s)}_{label(sum(p, ()))}", _mirror(s, p, mode), exact=True)
    for mode in ("REFLECT", "SYMMETRIC")
    for s, p in _MIRRORS
    if mode == "SYMMETRIC" or all(max(pair) < d for d, pair in zip(s, p, strict=True))
]
CASES += [
    Case("MIRROR_PAD_SYMMETRIC_whole", _mirror((3, 5), ((3, 3), (5, 5)), "SYMMETRIC"), exact=True),
    Case("MIRROR_PAD_INT32", _mirror((3, 5), ((1, 2), (4, 3)), "REFLECT", I32), exact=True),
    Case(
        "D18_MIRROR_PAD_REFLECT_too_far",
        _mirror((2, 2), ((2, 2), (0, 0)), "REFLECT"),
        declined="pads axis 0 of size 2 by 2 (supported: up to 1)",
    ),
    Case(
        "D18_MIRROR_PAD_SYMMETRIC_too_far",
        _mirror((2, 2), ((0, 0), (0, 3)), "SYMMETRIC"),
        declined="pads axis 1 of size 2 by 3 (supported: up to 2)",
    ),
]
CASES += [
    Case(f"TILE_{label(s)}_by_{label(m)}", _tile(s, m), exact=True)
    for s, m in (
        ((5,), (3,)),
        ((8,), (3,)),
        ((3, 5), (2, 1)),
        ((3, 5), (1, 3)),
        ((3, 8), (2, 3)),
        ((1, 1, 4, 3), (1, 2, 1, 5)),
        ((2, 3, 4, 5), (2, 1, 3, 1)),
        ((2, 3, 4, 5), (1, 2, 1, 2)),
        ((2, 1, 3, 1, 5), (1, 3, 2, 1, 2)),
        ((3, 5), (1, 1)),
        ((3, 5), (0, 2)),
        ((), ()),
    )
]
CASES += [
    Case("TILE_INT32", _tile((3, 5), (2, 3), I32), exact=True),
    Case("TILE_BOOL", _tile((3, 5), (2, 3), BOOL), exact=True),
    Case("TILE_int64_multiples", _tile((3, 5), (2, 3), index_type=np.int64), exact=True),
]
CASES += [
    Case(f"{name}_{label(a)}_to_{label(b)}", _broadcast(a, b), exact=True)
    for name, a, b in (
        ("A2_BROADCAST_TO", (1, 8, 1), (1, 8, 16)),
        ("A2_BROADCAST_TO", (1, 8, 1), (1, 8, 5)),
        ("A14_BROADCAST_TO", (1, 4, 1, 64), (1, 4, 8, 64)),
        ("BROADCAST_TO", (), (3, 5)),
        ("BROADCAST_TO", (1,), (37,)),
        ("BROADCAST_TO", (5,), (2, 3, 5)),
        ("BROADCAST_TO", (3, 1), (2, 3, 5)),
        ("BROADCAST_TO", (2, 1, 3, 1, 5), (2, 4, 3, 2, 5)),
        ("BROADCAST_TO", (2, 1, 3, 1, 1, 5), (2, 2, 3, 2, 2, 5)),
        ("BROADCAST_TO", (3, 5), (3, 5)),
        ("BROADCAST_TO", (1, 3, 5), (0, 3, 5)),
    )
]
CASES += [
    Case("A14_BROADCAST_TO_then_ADD", _broadcast_and_add),
    Case("BROADCAST_TO_INT32", _broadcast((3, 1), (3, 5), I32, np.int64), exact=True),
    Case("BROADCAST_TO_BOOL", _broadcast((3, 1), (3, 5), BOOL), exact=True),
    Case("BROADCAST_TO_misfit", _broadcast((3, 2), (3, 5)), declined="doesn't broadcast to [3, 5]"),
]
CASES += [
    # More groups of lanes than one axis of a dispatch holds at 64 a workgroup.
    Case(
        "I1_PAD_beyond_65535_workgroups",
        _pad((4, 1025, 1030, 1), ((0, 0), (0, 0), (1, 1), (0, 0)), I32),
        exact=True,
    ),
]
