"""INT64 while running: moved, converted, compared, added, and as indices, with values beyond 32 bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tests.ops.cases.reshape import label
from tests.support.case import Array, Case
from tflite_vk.dtypes import DType
from tflite_vk.ir import attributes as ir
from tflite_vk.testing.model_writer import ModelWriter

Shape = tuple[int, ...]
Build = Callable[[ModelWriter], None]
Inputs = Callable[[np.random.Generator], dict[int, Array]]

F32, I32, I64, BOOL = DType.FLOAT32, DType.INT32, DType.INT64, DType.BOOL

LOWEST, HIGHEST = -(1 << 63), (1 << 63) - 1
EDGES = (
    0, 1, -1, 5, -7, (1 << 24) + 1, -(1 << 24) - 3, (1 << 31) - 1, 1 << 31, -(1 << 31), -(1 << 31) - 1,
    (1 << 32) - 1, 1 << 32, -(1 << 32), (1 << 40) + (1 << 16) + 1, (1 << 40) + (1 << 15), (1 << 56) + (1 << 32),
    (1 << 56) + (1 << 32) + 1, -(1 << 56) - (3 << 32), (1 << 62) + (1 << 38), HIGHEST, LOWEST, LOWEST + 1,
)  # fmt: skip


def wide(rng: np.random.Generator, shape: Shape) -> Array:
    """Values of every length, the edges first."""
    bits = rng.integers(1, 64, shape)
    values = np.asarray(rng.integers(0, HIGHEST, shape, np.int64) >> (63 - bits), np.int64)
    values = np.asarray(values * rng.choice([-1, 1], shape), np.int64)
    count = min(len(EDGES), values.size)
    values.reshape(-1)[:count] = EDGES[:count]
    return values


def _wide(*shapes: Shape) -> Inputs:
    return lambda rng: {
        i: wide(rng, s) if i == 0 else rng.permuted(wide(rng, s)) for i, s in enumerate(shapes)
    }


Operand = tuple[Shape, DType] | Array


def _op(
    op: str,
    inputs: Sequence[Operand],
    outputs: Sequence[tuple[Shape, DType]],
    attributes: ir.Attributes | None = None,
) -> Build:
    def build(w: ModelWriter) -> None:
        ids = [w.input(i[0], dtype=i[1]) if isinstance(i, tuple) else w.const(i) for i in inputs]
        w.output(*w.multi_op(op, ids, outputs, attributes))

    return build


def _cast(shape: Shape, source: DType, target: DType) -> Build:
    attributes = ir.CastAttributes(source, target)
    return _op("CAST", [(shape, source)], [(shape, target)], attributes)


def _below(position: int, shape: Shape, size: int) -> Inputs:
    return lambda rng: {position: rng.integers(0, size, shape, np.int64)}


def _floats(rng: np.random.Generator) -> dict[int, Array]:
    """Whole and other floats within int64, the largest of them too."""
    values = rng.choice([-1, 1], (3, 37)) * 2.0 ** rng.uniform(-2, 62.9, (3, 37))
    values[0, :6] = 0.0, -0.5, 2.0**32, -(2.0**32), 2.0**63 - 2.0**39, -(2.0**63)
    return {0: values.astype(np.float32)}


_ATTRIBUTES = {"ADD", "SUB", "MUL"}
_BROADCASTS: tuple[tuple[Shape, Shape], ...] = (
    ((3, 37), (3, 37)), ((2, 1, 5), (3, 1)), ((), (2, 23)), ((1, 4, 5, 3), (3,)), ((3, 5, 1), (3, 1, 7)),
)  # fmt: skip


def _binary(op: str, a: Shape, b: Shape, result: DType = I64) -> Build:
    attributes = ir.BinaryAttributes() if op in _ATTRIBUTES else None
    return _op(op, [(a, I64), (b, I64)], [(np.broadcast_shapes(a, b), result)], attributes)


def _divisors(a: Shape, b: Shape) -> Inputs:
    def inputs(rng: np.random.Generator) -> dict[int, Array]:
        divisors = rng.permuted(wide(rng, b))
        # The lowest by -1 is beyond int64, where C++ leaves the remainder open.
        return {0: wide(rng, a), 1: np.where(np.isin(divisors, (0, -1)), 3, divisors)}

    return inputs


def _same_half(w: ModelWriter) -> None:
    """Values that differ in one word only."""
    x = w.input((2, 8), dtype=I64)
    values = [0, 1 << 32, 1, LOWEST, -1, 5, (1 << 32) + 5, 1 << 31]
    y = w.const(np.array(values * 2, np.int64).reshape(2, 8))
    w.output(*(w.op(op, [x, y], [((2, 8), BOOL)]) for op in ("EQUAL", "LESS", "GREATER_EQUAL")))


def _tokens(w: ModelWriter) -> None:
    """What converters write for a text model: int64 ids, a mask, a table."""
    ids = w.input((2, 5), dtype=I64)
    table = w.const(np.random.default_rng(1).uniform(-1, 1, (9, 3)).astype(np.float32))
    rows = w.op("GATHER", [table, ids], [(2, 5, 3)], ir.GatherAttributes(0))
    known = w.op("NOT_EQUAL", [ids, w.const(np.array(0, np.int64))], [((2, 5), BOOL)])
    mask = w.op("CAST", [known], [((2, 5), F32)], ir.CastAttributes(BOOL, F32))
    mask = w.op("RESHAPE", [mask, w.const(np.array([2, 5, 1], np.int32))], [(2, 5, 1)])
    w.output(w.op("MUL", [rows, mask], [(2, 5, 3)], ir.BinaryAttributes()))


def _greedy(w: ModelWriter) -> None:
    """ARG_MAX in int64, then the chosen row, and the position as int32 and as it is."""
    x = w.input((3, 7))
    best = w.op(
        "ARG_MAX", [x, w.const(np.array(1, np.int32))], [((3,), I64)], ir.ArgAttributes(I64)
    )
    table = w.const(np.arange(21, dtype=np.float32).reshape(7, 3))
    rows = w.op("GATHER", [table, best], [(3, 3)], ir.GatherAttributes(0))
    w.output(rows, best, w.op("CAST", [best], [((3,), I32)], ir.CastAttributes(I64, I32)))


def _outside(values: Array, ids: Array) -> list[Array]:
    inside = (ids >= 0) & (ids < len(values))
    return [np.where(inside[:, None], values[np.where(inside, ids, 0)], 0)]


S = (2, 3, 5)


def moves(t: DType, value: int) -> tuple[tuple[str, Build], ...]:
    """Operators that move values of a type, a constant among them."""
    return (
        ("CONCATENATION_last", _op("CONCATENATION", [(S, t), ((2, 3, 2), t)], [((2, 3, 7), t)], ir.ConcatenationAttributes(axis=2))),
        ("CONCATENATION_first", _op("CONCATENATION", [(S, t), ((1, 3, 5), t)], [((3, 3, 5), t)], ir.ConcatenationAttributes(axis=0))),
        ("CONCATENATION_constant", _op("CONCATENATION", [(S, t), np.full((2, 3, 1), value, t.numpy)], [((2, 3, 6), t)], ir.ConcatenationAttributes(axis=-1))),
        ("PACK", _op("PACK", [(S, t), (S, t)], [((2, 3, 5, 2), t)], ir.PackAttributes(2, 3))),
        ("SPLIT", _op("SPLIT", [np.array(0, np.int32), (S, t)], [((1, 3, 5), t)] * 2, ir.SplitAttributes(2))),
        ("SPLIT_V", _op("SPLIT_V", [(S, t), np.array([2, 3], np.int64), np.array(2, np.int32)], [((2, 3, 2), t), ((2, 3, 3), t)], ir.SplitAttributes(2))),
        ("RESHAPE", _op("RESHAPE", [(S, t), np.array([5, 6], np.int32)], [((5, 6), t)])),
        ("RESHAPE_large", _op("RESHAPE", [((64, 65), t), np.array([65, 64], np.int32)], [((65, 64), t)])),
        ("SQUEEZE", _op("SQUEEZE", [((1, 3, 1, 5), t)], [((3, 5), t)], ir.SqueezeAttributes((0, 2)))),
        ("EXPAND_DIMS", _op("EXPAND_DIMS", [(S, t), np.array(0, np.int64)], [((1, *S), t)])),
        ("TRANSPOSE", _op("TRANSPOSE", [(S, t), np.array([2, 0, 1], np.int32)], [((5, 2, 3), t)])),
        ("TRANSPOSE_large", _op("TRANSPOSE", [((65, 70), t), np.array([1, 0], np.int32)], [((70, 65), t)])),
        ("SLICE", _op("SLICE", [(S, t), np.array([0, 1, 1], np.int64), np.array([2, 2, 3], np.int64)], [((2, 2, 3), t)])),
        ("STRIDED_SLICE", _op("STRIDED_SLICE", [(S, t), np.array([1, 0, 4], np.int32), np.array([2, 3, 0], np.int32), np.array([1, 2, -2], np.int32)], [((1, 2, 2), t)], ir.StridedSliceAttributes())),
        ("PAD", _op("PAD", [(S, t), np.array([[0, 1], [1, 0], [2, 1]], np.int64)], [((3, 4, 8), t)])),
        ("PADV2", _op("PADV2", [(S, t), np.array([[0, 1], [1, 0], [4, 1]], np.int32), np.array(value, t.numpy)], [((3, 4, 10), t)])),
        ("MIRROR_PAD", _op("MIRROR_PAD", [(S, t), np.array([[0, 1], [1, 0], [2, 1]], np.int32)], [((3, 4, 8), t)], ir.MirrorPadAttributes())),
        ("TILE", _op("TILE", [(S, t), np.array([2, 1, 3], np.int64)], [((4, 3, 15), t)])),
        ("REVERSE_V2", _op("REVERSE_V2", [(S, t), np.array([2], np.int32)], [(S, t)])),
        ("SPACE_TO_DEPTH", _op("SPACE_TO_DEPTH", [((2, 4, 6, 3), t)], [((2, 2, 3, 12), t)], ir.BlockSizeAttributes(2))),
        ("SPACE_TO_BATCH_ND", _op("SPACE_TO_BATCH_ND", [((1, 3, 4, 3), t), np.array([2, 2], np.int32), np.array([[1, 0], [0, 0]], np.int32)], [((4, 2, 2, 3), t)])),
        ("FILL", _op("FILL", [np.array([2, 5], np.int64), ((), t)], [((2, 5), t)])),
        ("ZEROS_LIKE", _op("ZEROS_LIKE", [(S, t)], [(S, t)])),
        ("empty", _op("CONCATENATION", [((0, 3), t), ((0, 2), t)], [((0, 5), t)], ir.ConcatenationAttributes(axis=1))),
)  # fmt: skip


CASES = [
    Case(f"CAST_INT64_{t.name}", _cast((3, 37), I64, t), inputs=_wide((3, 37)), exact=True)
    for t in (F32, I32, BOOL, DType.UINT32, DType.INT8, DType.UINT8, DType.INT16)
]
CASES += [
    Case(f"CAST_{t.name}_INT64", _cast((3, 37), t, I64), exact=True)
    for t in (F32, I32, BOOL, DType.UINT32, DType.INT8, DType.UINT8, DType.INT16)
]
CASES += [
    Case(f"CAST_INT64_FLOAT32_{label(s)}", _cast(s, I64, F32), inputs=_wide(s), exact=True)
    for s in ((), (5,), (2, 1, 3, 1, 2, 5), (2, 0, 3), (64, 65))
]
CASES += [
    Case("CAST_FLOAT32_INT64_large", _cast((3, 37), F32, I64), inputs=_floats, exact=True,
         expected=lambda x: [x.astype(np.int64)], why="float16 has none of these"),
    Case("CAST_UINT32_INT64_high", _cast((5,), DType.UINT32, I64), exact=True,
         inputs=lambda rng: {0: np.array([0, 1, 1 << 31, (1 << 32) - 1, 7], np.uint32)}),
]  # fmt: skip
CASES += [
    Case(f"{op}_INT64_{label(a)}_{label(b)}", _binary(op, a, b), inputs=_wide(a, b), exact=True)
    for op in ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM")
    for a, b in _BROADCASTS
]
CASES += [
    Case(f"FLOOR_MOD_INT64_{label(a)}_{label(b)}", _binary("FLOOR_MOD", a, b), inputs=_divisors(a, b), exact=True)
    for a, b in _BROADCASTS
]  # fmt: skip
CASES += [
    Case(f"{op}_INT64_{label(a)}_{label(b)}", _binary(op, a, b, BOOL), inputs=_wide(a, b), exact=True)
    for op in ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL")
    for a, b in _BROADCASTS[:3]
]  # fmt: skip
CASES += [
    Case("comparisons_INT64_one_word", _same_half, exact=True, inputs=lambda rng: {
        0: np.array([0, 0, 1 << 32, 1, (1 << 32) - 1, 5, 5, -(1 << 31)] * 2, np.int64).reshape(2, 8)}),
    Case("NEG_INT64", _op("NEG", [((3, 37), I64)], [((3, 37), I64)]), inputs=_wide((3, 37)), exact=True),
    *(Case(f"ADD_INT64_{a}", _op("ADD", [((3, 5), I64), ((5,), I64)], [((3, 5), I64)], ir.BinaryAttributes(a)),  # type: ignore[arg-type]
           inputs=lambda rng: {0: rng.integers(-9, 9, (3, 5)), 1: rng.integers(-9, 9, (5,))}, exact=True)
      for a in ("RELU", "RELU6", "RELU_N1_TO_1")),
    Case("DIV_INT64", _binary("DIV", (3, 5), (5,)), declined="output 0 is INT64"),
    Case("ABS_INT64", _op("ABS", [((3,), I64)], [((3,), I64)]), declined="output 0 is INT64"),
    Case("POW_INT64", _binary("POW", (3, 5), (5,)), declined="output 0 is INT64"),
]  # fmt: skip


def _every_input(build: Build) -> Inputs:
    w = ModelWriter()
    build(w)
    return _wide(*(w.tensors[t].spec.shape for t in w.inputs))


# Values of 40 bits and more show a word that stays behind.
CASES += [
    Case(f"INT64_{name}", build, inputs=_every_input(build), exact=True)
    for name, build in moves(I64, -(1 << 40))
]
CASES += [
    Case("INT64_BROADCAST_TO", _op("BROADCAST_TO", [((3, 1), I64), np.array([2, 3, 5], np.int64)], [((2, 3, 5), I64)]),
         inputs=_wide((3, 1)), exact=True, expected=lambda x: [np.broadcast_to(x, (2, 3, 5))],
         why="BUILTIN_REF has no version 1"),
    *(Case(f"INT64_{op}", _op(op, [(S, BOOL), (S, I64), (S, I64)], [(S, I64)]), exact=True,
           inputs=lambda rng: {1: wide(rng, S), 2: rng.permuted(wide(rng, S))}) for op in ("SELECT", "SELECT_V2")),
    Case("INT64_SELECT_V2_broadcast", _op("SELECT_V2", [((3, 1), BOOL), ((), I64), (S, I64)], [(S, I64)]), exact=True,
         inputs=lambda rng: {1: np.array(1 << 45), 2: wide(rng, S)}),
    Case("INT64_ONE_HOT_values", _op("ONE_HOT", [((3, 2), I64), np.array(4, np.int32), np.array(1 << 40, np.int64), np.array(-1, np.int64)],
         [((3, 2, 4), I64)], ir.OneHotAttributes()), exact=True,
         inputs=lambda rng: {0: np.array([0, 3, 1, 2, 4, -1]).reshape(3, 2)}),
]  # fmt: skip

# Indices.
CASES += [
    Case("GATHER_INT64_indices", _op("GATHER", [(S, F32), ((4,), I64)], [((2, 4, 5), F32)], ir.GatherAttributes(1)), exact=True,
         inputs=_below(1, (4,), 3)),
    Case("GATHER_INT64_both", _op("GATHER", [((7, 3), I64), ((2, 2), I64)], [((2, 2, 3), I64)], ir.GatherAttributes(0)), exact=True,
         inputs=lambda rng: {0: wide(rng, (7, 3)), 1: rng.integers(0, 7, (2, 2))}),
    Case("GATHER_INT64_columns", _op("GATHER", [((3, 7), I64), ((5,), I32)], [((3, 5), I64)], ir.GatherAttributes(1)), exact=True,
         inputs=lambda rng: {0: wide(rng, (3, 7)), 1: rng.integers(0, 7, (5,)).astype(np.int32)}),
    Case("GATHER_INT64_scalar", _op("GATHER", [((37,), I64), ((3, 2), I32)], [((3, 2), I64)], ir.GatherAttributes(0)), exact=True,
         inputs=lambda rng: {0: wide(rng, (37,)), 1: rng.integers(0, 37, (3, 2)).astype(np.int32)}),
    Case("GATHER_INT64_outside", _op("GATHER", [((3, 5), F32), ((6,), I64)], [((6, 5), F32)], ir.GatherAttributes(0)), exact=True,
         inputs=lambda rng: {1: np.array([0, 1 << 32, 2, (1 << 32) + 1, -1, -(1 << 32) + 2])},
         expected=_outside, why="TFLite stops with an error; here such a row is zero"),
    Case("GATHER_ND_INT64", _op("GATHER_ND", [((3, 4, 5), I64), ((3, 2), I64)], [((3, 5), I64)]), exact=True,
         inputs=lambda rng: {0: wide(rng, (3, 4, 5)), 1: rng.integers(0, 3, (3, 2))}),
    Case("DYNAMIC_UPDATE_SLICE_INT64", _op("DYNAMIC_UPDATE_SLICE", [(S, I64), ((1, 3, 2), I64), ((3,), I64)], [(S, I64)]), exact=True,
         inputs=lambda rng: {0: wide(rng, S), 1: wide(rng, (1, 3, 2)), 2: np.array([1, 0, 1 << 40])},
         expected=lambda x, u, at: [np.concatenate([x[:1], np.concatenate([x[1:, :, :3], u], 2)])],
         why="TFLite narrows the indices before it clamps them"),
    Case("REVERSE_SEQUENCE_INT64", _op("REVERSE_SEQUENCE", [((3, 7, 5), I64), ((3,), I64)], [((3, 7, 5), I64)],
         ir.ReverseSequenceAttributes(1, 0)), exact=True, inputs=lambda rng: {0: wide(rng, (3, 7, 5)), 1: np.array([0, 4, 7])}),
    *(Case(f"{op}_to_INT64_{label(s)}_axis_{axis}", _op(op, [(s, F32), np.array(axis, d)],
           [(tuple(n for i, n in enumerate(s) if i != axis % len(s)), I64)], ir.ArgAttributes(I64)), exact=True)
      for op in ("ARG_MAX", "ARG_MIN") for s, axis, d in (((7,), 0, np.int32), ((3, 37), -1, np.int32), ((2, 5, 7), 1, np.int64), ((2, 0, 3), 2, np.int64))),
    Case("SHAPE_INT64", _op("SHAPE", [(S, F32)], [((3,), I64)], ir.ShapeAttributes(I64)), exact=True),
    Case("tokens_INT64", _tokens, inputs=_below(0, (2, 5), 9)),
    Case("greedy_INT64", _greedy, exact=True),
]  # fmt: skip
