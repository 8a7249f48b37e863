"""FILL, ZEROS_LIKE, SHAPE, RANK, REVERSE_V2, REVERSE_SEQUENCE, DYNAMIC_UPDATE_SLICE, SCATTER_ND."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tests.ops.cases.reshape import label
from tests.support.case import Array, Case
from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import BinaryAttributes, ReverseSequenceAttributes, ShapeAttributes
from tflite_vk.testing.model_writer import ModelWriter

Shape = tuple[int, ...]
Build = Callable[[ModelWriter], None]
Inputs = Callable[[np.random.Generator], Mapping[int, Array]]

F32, I32, BOOL = DType.FLOAT32, DType.INT32, DType.BOOL


def _fill(
    shape: Shape, value: float | None, dtype: DType = F32, index_type: type = np.int32
) -> Build:
    def build(w: ModelWriter) -> None:
        dims = w.const(np.array(shape, index_type))
        fill = w.input((), dtype=dtype) if value is None else w.const(np.array(value, dtype.numpy))
        y = w.op("FILL", [dims, fill], [(shape, dtype)])
        if value is None or dtype is not F32:
            w.output(y)
        else:
            w.output(w.op("ADD", [w.input(shape), y], [shape], BinaryAttributes()), y)

    return build


def _of_input(op: str, shape: Shape, result: Shape, dtype: DType, result_dtype: DType) -> Build:
    def build(w: ModelWriter) -> None:
        x = w.input(shape, dtype=dtype)
        w.output(
            w.op(op, [x], [(result, result_dtype)], ShapeAttributes() if op == "SHAPE" else None)
        )

    return build


def _broadcast_args(is_const: bool) -> Build:
    def build(w: ModelWriter) -> None:
        a = w.const(np.array((3, 1), np.int32)) if is_const else w.input((2,), dtype=I32)
        args = w.op("BROADCAST_ARGS", [a, w.const(np.array((2, 1, 5), np.int32))], [((3,), I32)])
        w.output(w.op("ADD", [w.input((3,), dtype=I32), args], [((3,), I32)], BinaryAttributes()))

    return build


def _reverse(shape: Shape, axes: Sequence[int], dtype: DType = F32) -> Build:
    def build(w: ModelWriter) -> None:
        inputs = [w.input(shape, dtype=dtype), w.const(np.array(axes, np.int32))]
        w.output(w.op("REVERSE_V2", inputs, [(shape, dtype)]))

    return build


def _reverse_sequence(shape: Shape, seq: int, batch: int, dtype: DType = F32) -> Build:
    def build(w: ModelWriter) -> None:
        inputs = [w.input(shape, dtype=dtype), w.input((shape[batch],), dtype=I32)]
        attributes = ReverseSequenceAttributes(seq_dim=seq, batch_dim=batch)
        w.output(w.op("REVERSE_SEQUENCE", inputs, [(shape, dtype)], attributes))

    return build


def _update(shape: Shape, update: Shape, dtype: DType = F32, const: Shape | None = None) -> Build:
    def build(w: ModelWriter) -> None:
        inputs = [w.input(shape, dtype=dtype), w.input(update, dtype=dtype)]
        if const is None:
            inputs.append(w.input((len(shape),), dtype=I32))
        else:
            inputs.append(w.const(np.array(const, np.int64)))
        w.output(w.op("DYNAMIC_UPDATE_SLICE", inputs, [(shape, dtype)]))

    return build


def _at(*starts: int) -> Inputs:
    return lambda rng: {2: np.array(starts, np.int32)}


def _scatter(indices: Shape, shape: Shape, dtype: DType = F32, const: bool = False) -> Build:
    depth = indices[-1]

    def build(w: ModelWriter) -> None:
        if const:
            where = w.const(
                np.random.default_rng(4).integers(0, shape[:depth], indices).astype(np.int32)
            )
        else:
            where = w.input(indices, dtype=I32)
        updates = w.input((*indices[:-1], *shape[depth:]), dtype=dtype)
        w.output(
            w.op(
                "SCATTER_ND", [where, updates, w.const(np.array(shape, np.int32))], [(shape, dtype)]
            )
        )

    return build


def _places(indices: Shape, shape: Shape) -> Inputs:
    return lambda rng: {0: rng.integers(0, shape[: indices[-1]], indices).astype(np.int32)}


CASES = [
    Case("FILL", _fill((2, 3, 5), 3.5), exact=True),
    Case("FILL_INT32", _fill((3, 5), 7, I32), exact=True),
    Case("FILL_int64_shape", _fill((3, 5), 2, index_type=np.int64), exact=True),
    Case("FILL_run_time_value", _fill((2, 3, 5), None), exact=True),
    Case("FILL_run_time_INT32", _fill((37,), None, I32), exact=True),
    Case("FILL_scalar", _fill((), None), exact=True),
    Case("ZEROS_LIKE", _of_input("ZEROS_LIKE", (3, 5), (3, 5), F32, F32), exact=True),
    Case("ZEROS_LIKE_INT32", _of_input("ZEROS_LIKE", (3, 5), (3, 5), I32, I32), exact=True),
    Case("SHAPE", _of_input("SHAPE", (2, 3, 5), (3,), F32, I32), exact=True),
    Case("SHAPE_rank_6", _of_input("SHAPE", (2, 1, 3, 1, 2, 5), (6,), I32, I32), exact=True),
    Case("BROADCAST_ARGS", _broadcast_args(True), exact=True),
    Case("BROADCAST_ARGS_run_time", _broadcast_args(False), declined="the shapes are no constants"),
    Case("RANK", _of_input("RANK", (2, 3, 5), (), F32, I32), exact=True),
]
CASES += [
    Case(f"REVERSE_V2_{label(shape)}_{label(axes)}", _reverse(shape, axes), exact=True)
    for shape, axes in (
        ((37,), (0,)),
        ((3, 5), (1,)),
        ((3, 5), (0,)),
        ((3, 5), (-1,)),
        ((3, 5, 8), (1,)),
        ((3, 5, 8), (0, 1)),
        ((2, 3, 4, 5), (1, 2)),
        ((2, 3, 4, 5), (2, 3)),
        ((2, 1, 3, 2, 5), (2,)),
    )
]
CASES += [
    Case(
        "REVERSE_V2_apart",
        _reverse((2, 3, 5), (0, 2)),
        exact=True,
        expected=lambda x: [x[::-1, :, ::-1]],
        why="BUILTIN_REF wants axes that follow each other",
    ),
    Case("REVERSE_V2_INT32", _reverse((3, 5), (1,), I32), exact=True),
    Case("REVERSE_V2_BOOL", _reverse((3, 5), (1,), BOOL), exact=True),
    Case("REVERSE_V2_no_axis", _reverse((3, 5), (2,)), declined="axes [2] of a tensor of rank 2"),
]
CASES += [
    Case(
        f"REVERSE_SEQUENCE_{label(shape)}_seq_{seq}_batch_{batch}",
        _reverse_sequence(shape, seq, batch),
        inputs=lambda rng, n=shape[batch], m=shape[seq]: {
            1: rng.integers(1, m + 1, n).astype(np.int32)
        },
        exact=True,
    )
    for shape, seq, batch in (
        ((3, 7, 5), 1, 0),
        ((3, 7, 5), 0, 1),
        ((3, 7, 5), 2, 0),
        ((3, 7, 5), 1, 2),
        ((2, 3, 5, 8), 2, 1),
        ((4, 7), 1, 0),
    )
]
CASES += [
    Case(
        f"DYNAMIC_UPDATE_SLICE_{label(shape)}_{label(update)}_at_{label(at)}",
        _update(shape, update),
        inputs=_at(*at),
        exact=True,
    )
    for shape, update, at in (
        ((7, 5), (2, 5), (3, 0)),
        ((7, 5), (2, 3), (3, 1)),
        ((7, 5), (2, 3), (6, 4)),
        ((7, 5), (2, 3), (-2, -1)),
        ((37,), (5,), (9,)),
        ((2, 9, 8), (1, 4, 8), (1, 2, 0)),
        ((1, 4, 16, 6), (1, 4, 1, 6), (0, 0, 11, 0)),
        ((2, 3, 2, 3, 5), (1, 2, 2, 1, 3), (1, 0, 0, 2, 2)),
        ((3, 5), (3, 5), (0, 0)),
    )
]
CASES += [
    Case("DYNAMIC_UPDATE_SLICE_INT32", _update((7, 5), (2, 3), I32), inputs=_at(3, 1), exact=True),
    Case("DYNAMIC_UPDATE_SLICE_const_INT64", _update((7, 5), (2, 3), const=(3, 1)), exact=True),
    Case("DYNAMIC_UPDATE_SLICE_too_large", _update((7, 5), (2, 6), const=(3, 1)), declined="doesn't fit [7, 5]"),
]  # fmt: skip
CASES += [
    Case(
        f"SCATTER_ND_{label(indices)}_into_{label(shape)}",
        _scatter(indices, shape),
        inputs=_places(indices, shape),
    )
    for indices, shape in (
        ((4, 1), (8,)),
        ((20, 1), (7,)),
        ((3, 1), (5, 7)),
        ((9, 2), (3, 5)),
        ((2, 3, 2), (3, 4, 5)),
        ((5, 1), (3, 4, 8)),
    )
]
CASES += [
    Case("SCATTER_ND_INT32", _scatter((9, 2), (3, 5), I32), inputs=_places((9, 2), (3, 5)), exact=True),
    *(Case(f"SCATTER_ND_{t.name}_{label(i)}", _scatter(i, s, t), inputs=_places(i, s), exact=True)
      for t in (DType.INT8, DType.UINT8, BOOL) for i, s in (((9, 2), (3, 5)), ((5, 1), (2, 7)))),
    Case("SCATTER_ND_const", _scatter((4, 1), (5, 7), const=True)),
    Case("SCATTER_ND_run_time_outside", _scatter((4, 1), (3, 5)), exact=True,
         inputs=lambda rng: {0: np.array([[-1], [1], [3], [1 << 30]], np.int32)},
         expected=lambda i, u: [np.stack([0 * u[0], u[1], 0 * u[0]])],
         why="TFLite stops with an error; here such an update is left out"),
]  # fmt: skip
