"""Operators that move elements at ranks and types that LiteRT's kernels refuse: NumPy is the oracle."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tests.support.case import Array, Case
from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import (
    Attributes,
    BinaryAttributes,
    CastAttributes,
    ConcatenationAttributes,
    GatherAttributes,
    MirrorPadAttributes,
    OneHotAttributes,
    PackAttributes,
    ReverseSequenceAttributes,
    SplitAttributes,
    SqueezeAttributes,
    StridedSliceAttributes,
    UnpackAttributes,
)
from tflite_vk.testing.model_writer import ModelWriter

Function = Callable[..., Any]
Given = Callable[[np.random.Generator], Mapping[int, Array]]

F32, I32, U32, BOOL = DType.FLOAT32, DType.INT32, DType.UINT32, DType.BOOL
SHAPE = (2, 3, 2, 3, 2, 5)

X = None
"""Stands for a run-time input of the case's shape and type."""


def _listed(value: Any) -> list[Array]:
    outputs = value if isinstance(value, (list, tuple)) else [value]
    return [np.ascontiguousarray(v) if np.ndim(v) else np.asarray(v) for v in outputs]


def _case(
    op: str,
    inputs: Sequence[Any],
    function: Function,
    attributes: Attributes | None = None,
    *,
    dtype: DType = F32,
    result: DType | None = None,
    shape: tuple[int, ...] = SHAPE,
    given: Given | None = None,
    name: str = "",
) -> Case:
    """One operator.

    Args:
        op: its name.
        inputs: X, a (shape, type) of another run-time input, or the array of a constant.
        function: the outputs from the run-time inputs.
        attributes: its options.
        dtype: type of X.
        result: type of the outputs where it is not that of X.
        shape: shape of X.
        given: inputs that must not be random.
        name: what else to put into the case's name.
    """
    specs = [(shape, dtype) if i is X else i for i in inputs]
    run_time = [s for s in specs if isinstance(s, tuple)]

    def build(w: ModelWriter) -> None:
        values = [np.zeros(s, t.numpy) for s, t in run_time]
        outs = [(v.shape, result or dtype) for v in _listed(function(*values))]
        ids = [w.input(s[0], dtype=s[1]) if isinstance(s, tuple) else w.const(s) for s in specs]
        w.output(*w.multi_op(op, ids, outs, attributes, 2 if op == "BROADCAST_TO" else 1))

    final = (result or dtype).numpy
    return Case(
        f"{op}_{name or 'rank_6'}_{dtype.name}",
        build,
        inputs=given,
        expected=lambda *x: [v.astype(final) for v in _listed(function(*x))],
        exact=True,
        why="BUILTIN_REF refuses the rank or the type",
    )


def _i(*values: Any) -> Array:
    return np.array(values, np.int32)


def _scalar(value: float, dtype: type = np.float32) -> Array:
    return np.array(value, dtype)


def _indices(position: int, limits: Sequence[int], shape: tuple[int, ...]) -> Given:
    return lambda rng: {position: rng.integers(0, limits, shape).astype(np.int32)}


_PADS = ((1, 0), (0, 2), (1, 1), (0, 0), (1, 0), (2, 1))
_MIRRORS = ((1, 0), (0, 2), (1, 1), (0, 0), (1, 0), (4, 1))
_BOX = np.s_[1:, ::-1, :, 0:2, ::-1, 4:0:-2]


def _slice(x: Array) -> Array:
    return x[:, 1:, :, 1:3, :, 1:4]


def _reverse_sequence(x: Array, lengths: Array) -> Array:
    y = x.copy()
    for i, n in enumerate(lengths):
        y[:, i, :, :n] = x[:, i, :, :n][:, :, ::-1] if n else y[:, i, :, :0]
    return y


def _updated(x: Array, update: Array, at: Array) -> Array:
    y = x.copy()
    first = [min(max(int(a), 0), n - m) for a, n, m in zip(at, x.shape, update.shape, strict=True)]
    y[tuple(slice(a, a + n) for a, n in zip(first, update.shape, strict=True))] = update
    return y


def _scattered(indices: Array, updates: Array) -> Array:
    y = np.zeros(SHAPE, updates.dtype)
    np.add.at(y, tuple(np.moveaxis(indices, -1, 0)), updates)
    return y


def _one_hot(indices: Array) -> Array:
    return np.where(indices[:, :, None] == np.arange(4)[:, None, None, None], 2, -1)


_BOTH = (F32, BOOL)

CASES = [
    *(
        _case(*arguments, dtype=dtype)
        for dtype in (F32, U32, BOOL)
        for arguments in (
            ("SQUEEZE", [X], lambda x: x, SqueezeAttributes(())),
            ("SLICE", [X, _i(0, 1, 0, 1, 0, 1), _i(-1, -1, -1, 2, -1, 3)], _slice),
            (
                "STRIDED_SLICE",
                [X, _i(1, 2, 0, 0, 1, 4), _i(2, -9, 2, 2, -9, 0), _i(1, -1, 1, 1, -1, -2)],
                lambda x: x[_BOX],
                StridedSliceAttributes(),
            ),
            ("SPLIT", [_i(3).reshape(()), X], lambda x: np.split(x, 3, 3), SplitAttributes(3)),
            (
                "SPLIT_V",
                [X, _i(2, 3), _i(5).reshape(())],
                lambda x: np.split(x, [2], 5),
                SplitAttributes(2),
            ),
            ("UNPACK", [X], lambda x: list(np.moveaxis(x, 5, 0)), UnpackAttributes(5, 5)),
            (
                "CONCATENATION",
                [X, X, X],
                lambda *x: np.concatenate(x, 5),
                ConcatenationAttributes(axis=5),
            ),
            ("TRANSPOSE", [X, _i(5, 2, 0, 4, 1, 3)], lambda x: x.transpose(5, 2, 0, 4, 1, 3)),
            ("TILE", [X, _i(1, 2, 1, 1, 2, 2)], lambda x: np.tile(x, (1, 2, 1, 1, 2, 2))),
            ("REVERSE_V2", [X, _i(1, 3, 5)], lambda x: x[:, ::-1, :, ::-1, :, ::-1]),
            ("PAD", [X, np.array(_PADS, np.int32)], lambda x: np.pad(x, _PADS)),
            (
                "MIRROR_PAD",
                [X, np.array(_MIRRORS, np.int32)],
                lambda x: np.pad(x, _MIRRORS, "reflect"),
                MirrorPadAttributes("REFLECT"),
            ),
        )
    ),
    *(
        _case("PACK", [X, X], lambda a, b: np.stack([a, b], 2), PackAttributes(2, 2), dtype=dtype, shape=SHAPE[1:])
        for dtype in _BOTH
    ),
    _case("PADV2", [X, np.array(_PADS, np.int32), _scalar(7)], lambda x: np.pad(x, _PADS, constant_values=7)),
    _case("EXPAND_DIMS", [X, _i(1)], lambda x: x[:, None], shape=SHAPE[1:], dtype=BOOL),
    _case(
        "GATHER",
        [X, ((2, 4), I32)],
        lambda x, i: np.stack([x[k][:, :, i[k]] for k in range(2)]),
        GatherAttributes(axis=3, batch_dims=1),
        given=_indices(1, [3], (2, 4)),
    ),
    _case(
        "GATHER",
        [X, ((4,), I32)],
        lambda x, i: x[..., i],
        GatherAttributes(axis=-1),
        dtype=BOOL,
        given=_indices(1, [5], (4,)),
    ),
    _case(
        "GATHER_ND",
        [X, ((4, 6), I32)],
        lambda x, i: x[tuple(i.T)],
        given=_indices(1, SHAPE, (4, 6)),
    ),
    _case(
        "GATHER_ND",
        [X, ((4, 2), I32)],
        lambda x, i: x[i[:, 0], i[:, 1]],
        dtype=BOOL,
        given=_indices(1, SHAPE[:2], (4, 2)),
        name="slices",
    ),
    _case(
        "EMBEDDING_LOOKUP",
        [((4,), I32), X],
        lambda i, x: x[i],
        given=_indices(0, [2], (4,)),
        dtype=BOOL,
    ),
    _case(
        "REVERSE_SEQUENCE",
        [X, ((3,), I32)],
        _reverse_sequence,
        ReverseSequenceAttributes(seq_dim=3, batch_dim=1),
        given=_indices(1, [4], (3,)),
        dtype=BOOL,
    ),
    _case("ONE_HOT", [((2, 3, 2, 3, 2), I32), _i(4).reshape(()), _scalar(2), _scalar(-1)], _one_hot,
          OneHotAttributes(axis=2), given=_indices(0, [5], (2, 3, 2, 3, 2))),
    _case("FILL", [np.array(SHAPE, np.int32), ((), F32)], lambda v: np.full(SHAPE, v)),
    _case("ZEROS_LIKE", [X], np.zeros_like, dtype=BOOL),
    _case("RANK", [X], lambda x: np.array(6, np.int32), result=I32),
    _case("DYNAMIC_UPDATE_SLICE", [X, ((1, 2, 2, 1, 2, 3), F32), ((6,), I32)], _updated,
          given=lambda rng: {2: _i(1, 5, -1, 1, 0, 1)}),
    _case("DYNAMIC_UPDATE_SLICE", [X, ((1, 2, 2, 1, 2, 5), BOOL), ((6,), I32)], _updated, dtype=BOOL,
          given=lambda rng: {2: _i(1, 5, -1, 1, 0, 1)}),
    _case("SCATTER_ND", [((9, 3), I32), ((9, *SHAPE[3:]), I32), np.array(SHAPE, np.int32)], _scattered,
          given=_indices(0, SHAPE[:3], (9, 3)), dtype=I32),
    _case("SCATTER_ND", [((9, 6), I32), ((9,), I32), np.array(SHAPE, np.int32)], _scattered,
          given=_indices(0, SHAPE, (9, 6)), dtype=I32, name="elements"),
    _case("SELECT", [(SHAPE, BOOL), X, X], np.where),
    _case("SELECT", [((2,), BOOL), X, X], lambda c, a, b: np.where(c.reshape(2, 1, 1, 1, 1, 1), a, b), dtype=BOOL),
    _case("CAST", [X], lambda x: x.astype(np.int32), CastAttributes(F32, I32), result=I32),
    *(
        _case(op, [X, (SHAPE[2:], t)], function, dtype=t, result=BOOL)
        for op, function in (("EQUAL", np.equal), ("LESS", np.less), ("NOT_EQUAL", np.not_equal),
                             ("GREATER", np.greater), ("GREATER_EQUAL", np.greater_equal),
                             ("LESS_EQUAL", np.less_equal))
        for t in (F32, I32)
    ),
    *(
        _case(op, [X, (SHAPE[3:], BOOL)], function, dtype=BOOL)
        for op, function in (("LOGICAL_AND", np.logical_and), ("LOGICAL_OR", np.logical_or))
    ),
    _case("LOGICAL_NOT", [X], np.logical_not, dtype=BOOL),
    *(
        _case(op, [X, ((3, 1, 5), I32)], function, BinaryAttributes() if op in {"SUB", "MUL"} else None, dtype=I32)
        for op, function in (("SUB", np.subtract), ("MUL", np.multiply), ("MAXIMUM", np.maximum))
    ),
]  # fmt: skip
