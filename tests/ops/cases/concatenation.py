"""CONCATENATION, PACK, and their inverses SPLIT, SPLIT_V, UNPACK."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tests.ops.cases.reshape import label
from tests.support.case import Case
from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import (
    ConcatenationAttributes,
    PackAttributes,
    SplitAttributes,
    UnpackAttributes,
)
from tflite_vk.testing.model_writer import ModelWriter

Shape = tuple[int, ...]
Build = Callable[[ModelWriter], None]

F32, I32, BOOL = DType.FLOAT32, DType.INT32, DType.BOOL


def _concat(
    shapes: Sequence[Shape],
    axis: int,
    dtype: DType = F32,
    constants: Sequence[int] = (),
    activation: str = "NONE",
) -> Build:
    result = np.concatenate([np.zeros(s, np.bool_) for s in shapes], axis).shape

    def build(w: ModelWriter) -> None:
        rng = np.random.default_rng(3)
        inputs = [
            w.const(rng.uniform(-2, 2, shape).astype(dtype.numpy))
            if i in constants
            else w.input(shape, dtype=dtype)
            for i, shape in enumerate(shapes)
        ]
        attributes = ConcatenationAttributes(axis=axis, fused_activation_function=activation)  # type: ignore[arg-type]
        w.output(w.op("CONCATENATION", inputs, [(result, dtype)], attributes))

    return build


def _repeated(w: ModelWriter) -> None:
    x, y = w.input((2, 3, 5)), w.input((2, 3, 2))
    out = w.op("CONCATENATION", [x, y, x, x, y], [(2, 3, 19)], ConcatenationAttributes(axis=-1))
    w.output(out)


def _single(w: ModelWriter) -> None:
    w.output(w.op("CONCATENATION", [w.input((2, 3))], [(2, 3)], ConcatenationAttributes(axis=1)))


def _of_intermediate(w: ModelWriter) -> None:
    x = w.input((1, 5, 7, 3))
    a = w.op("RELU", [x], [(1, 5, 7, 3)])
    b = w.op("NEG", [x], [(1, 5, 7, 3)])
    y = w.op("CONCATENATION", [a, b], [(1, 5, 7, 6)], ConcatenationAttributes(axis=3))
    w.output(a, w.op("ABS", [y], [(1, 5, 7, 6)]))


def _pack(shape: Shape, count: int, axis: int, dtype: DType = F32) -> Build:
    result = np.stack([np.zeros(shape, np.bool_)] * count, axis).shape

    def build(w: ModelWriter) -> None:
        inputs = [w.input(shape, dtype=dtype) for _ in range(count)]
        attributes = PackAttributes(values_count=count, axis=axis)
        w.output(w.op("PACK", inputs, [(result, dtype)], attributes))

    return build


def _unpack(shape: Shape, axis: int, dtype: DType = F32) -> Build:
    count = shape[axis]
    result = np.zeros(shape, np.bool_).take(0, axis).shape

    def build(w: ModelWriter) -> None:
        x = w.input(shape, dtype=dtype)
        outs = [(result, dtype)] * count
        w.output(*w.multi_op("UNPACK", [x], outs, UnpackAttributes(num=count, axis=axis)))

    return build


def _split(shape: Shape, count: int, axis: int, dtype: DType = F32) -> Build:
    def build(w: ModelWriter) -> None:
        piece = list(shape)
        piece[axis] //= count
        inputs = [w.const(axis), w.input(shape, dtype=dtype)]
        outs = [(tuple(piece), dtype)] * count
        w.output(*w.multi_op("SPLIT", inputs, outs, SplitAttributes(num_splits=count)))

    return build


def _split_v(shape: Shape, sizes: Sequence[int], axis: int, dtype: DType = F32) -> Build:
    def build(w: ModelWriter) -> None:
        rest = shape[axis] - sum(n for n in sizes if n != -1)
        outs = []
        for size in sizes:
            piece = list(shape)
            piece[axis] = rest if size == -1 else size
            outs.append((tuple(piece), dtype))
        inputs = [w.input(shape, dtype=dtype), w.const(np.array(sizes, np.int32)), w.const(axis)]
        attributes = SplitAttributes(num_splits=len(sizes))
        w.output(*w.multi_op("SPLIT_V", inputs, outs, attributes))

    return build


def _run_time_axis(w: ModelWriter) -> None:
    inputs = [w.input((), dtype=I32), w.input((4, 4))]
    w.output(*w.multi_op("SPLIT", inputs, [(2, 4)] * 2, SplitAttributes(num_splits=2)))


def _split_and_join(w: ModelWriter) -> None:
    x = w.input((1, 5, 3, 6))
    inputs = [w.const(3), x]
    pieces = w.multi_op("SPLIT", inputs, [(1, 5, 3, 2)] * 3, SplitAttributes(num_splits=3))
    y = w.op(
        "CONCATENATION",
        [pieces[2], pieces[0], pieces[1]],
        [(1, 5, 3, 6)],
        ConcatenationAttributes(axis=3),
    )
    w.output(y, pieces[1])


CASES = [
    Case(
        f"CONCATENATION_axis_{axis}_{'_'.join(map(label, shapes))}",
        _concat(shapes, axis),
        exact=True,
    )
    for axis, shapes in (
        (0, ((2, 3, 5), (1, 3, 5))),
        (1, ((2, 3, 5), (2, 4, 5))),
        (2, ((2, 3, 5), (2, 3, 7))),
        (-1, ((2, 3, 8), (2, 3, 4), (2, 3, 5))),
        (-1, ((2, 3, 1), (2, 3, 1), (2, 3, 1))),
        (-1, ((1, 4, 4, 3), (1, 4, 4, 37))),
        (3, ((1, 5, 7, 5), (1, 5, 7, 8), (1, 5, 7, 1), (1, 5, 7, 2), (1, 5, 7, 3), (1, 5, 7, 4))),
        (3, ((2, 3, 3, 4), (2, 3, 3, 8), (2, 3, 3, 12), (2, 3, 3, 4), (2, 3, 3, 7))),
        (1, ((2, 3, 3, 5), (2, 1, 3, 5), (2, 7, 3, 5))),
        (0, ((3,), (5,), (2,))),
        (0, ((4,), (8,), (3,))),
        (4, ((2, 1, 3, 2, 5), (2, 1, 3, 2, 2))),
        (1, ((2, 1, 3, 2, 5), (2, 3, 3, 2, 5))),
        (1, ((3, 0), (3, 2), (3, 5))),
        (0, ((0, 3), (2, 3))),
    )
]
CASES += [
    Case(
        "CONCATENATION_rank_6",
        _concat(((2, 1, 2, 3, 2, 3), (2, 1, 2, 1, 2, 3)), -3),
        exact=True,
        expected=lambda *x: [np.concatenate(x, -3)],
        why="BUILTIN_REF concatenates up to rank 5",
    ),
    Case("D24_CONCATENATION_8_inputs_axis_1", _concat(((1, 3, 4, 5),) * 8, 1), exact=True),
    Case("D24_CONCATENATION_8_inputs_axis_3", _concat(((1, 3, 4, 5),) * 8, 3), exact=True),
    Case("CONCATENATION_9_inputs_of_3", _concat(((5, 3),) * 9, 1), exact=True),
    Case("B10_CONCATENATION_constants", _concat(((1, 10), (1, 10)), 1, constants=(0, 1)), exact=True),
    Case("B10_CONCATENATION_constant", _concat(((1, 10), (1, 10)), 1, constants=(1,)), exact=True),
    Case("CONCATENATION_constant_first", _concat(((3, 5), (3, 2)), 1, constants=(0,)), exact=True),
    Case("CONCATENATION_INT32", _concat(((3, 5), (3, 2)), 1, I32, constants=(0,)), exact=True),
    Case("CONCATENATION_BOOL", _concat(((3, 5), (3, 2)), 1, BOOL), exact=True),
    Case("CONCATENATION_RELU6", _concat(((3, 5), (3, 2)), 1, activation="RELU6"), low=-9, high=9,
         expected=lambda *x: [np.clip(np.concatenate(x, 1), 0, 6)],
         why="TFLite's kernel refuses a fused activation"),
    Case("CONCATENATION_repeated_inputs", _repeated, exact=True),
    Case("CONCATENATION_one_input", _single, exact=True),
    Case("CONCATENATION_of_intermediates", _of_intermediate, exact=True),
]  # fmt: skip
CASES += [
    Case(f"PACK_{count}_{label(shape)}_axis_{axis}", _pack(shape, count, axis), exact=True)
    for shape, count, axis in (
        ((), 3, 0),
        ((5,), 3, 0),
        ((5,), 3, 1),
        ((8,), 2, -1),
        ((3, 5), 2, 0),
        ((3, 5), 7, 1),
        ((3, 5), 7, 2),
        ((3, 1), 3, -1),
        ((2, 3, 4), 3, -2),
        ((2, 3, 4), 6, 3),
        ((7,), 1, 1),
        ((7,), 1, 0),
    )
]
CASES += [
    Case("PACK_INT32", _pack((3, 5), 3, 1, I32), exact=True),
    Case("PACK_BOOL", _pack((3, 5), 2, 2, BOOL), exact=True, expected=lambda *x: [np.stack(x, 2)]),
]
CASES += [
    Case(f"UNPACK_{label(shape)}_axis_{axis}", _unpack(shape, axis), exact=True)
    for shape, axis in (
        ((3,), 0),
        ((3, 5), 0),
        ((3, 5), 1),
        ((3, 4, 7), 1),
        ((3, 4, 7), -1),
        ((2, 3, 5, 4), 0),
        ((2, 3, 5, 4), -2),
        ((1, 5), 0),
        ((5, 1), 1),
    )
]
CASES += [
    Case("UNPACK_INT32", _unpack((3, 5), 1, I32), exact=True),
    Case("UNPACK_BOOL", _unpack((3, 5), 0, BOOL), exact=True),
]
CASES += [
    Case(f"SPLIT_{label(shape)}_in_{count}_axis_{axis}", _split(shape, count, axis), exact=True)
    for shape, count, axis in (
        ((6, 5), 3, 0),
        ((5, 6), 3, 1),
        ((2, 4, 3, 12), 3, 3),
        ((2, 4, 3, 12), 4, -1),
        ((2, 4, 3, 12), 1, 3),
        ((2, 4, 3, 7), 2, -3),
        ((37,), 37, 0),
        ((2, 3, 4, 3, 5), 2, 2),
    )
]
CASES += [
    Case("SPLIT_INT32", _split((4, 6), 2, 1, I32), exact=True),
    Case(
        "SPLIT_BOOL", _split((4, 6), 2, 1, BOOL), exact=True, expected=lambda x: np.split(x, 2, 1)
    ),
    Case("SPLIT_uneven", _split((4, 7), 2, 1), declined="can't split 7 elements evenly in 2"),
    Case("SPLIT_run_time_axis", _run_time_axis, declined="depends on run-time values"),
    Case("SPLIT_and_CONCATENATION", _split_and_join, exact=True),
]
CASES += [
    Case(
        f"SPLIT_V_{label(shape)}_in_{label(sizes)}_axis_{axis}",
        _split_v(shape, sizes, axis),
        exact=True,
    )
    for shape, sizes, axis in (
        ((6, 5), (1, 3, 2), 0),
        ((5, 11), (4, -1, 2), 1),
        ((2, 3, 12), (8, 4), -1),
        ((2, 3, 12), (3, 0, 9), -1),
        ((2, 3, 12), (12,), 2),
    )
]
CASES += [
    Case("SPLIT_V_wrong_sizes", _split_v((6, 5), (1, 3), 0), declined="sizes [1, 3] of 6 elements"),
]
