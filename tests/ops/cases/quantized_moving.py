"""Every case of an operator that moves elements, again with integers in place of its floats.

A group of 8-bit lanes is one word, so these are other builds of the kernels, with other shapes that fill
a group. What pads is the zero point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from tests.ops.cases import (
    concatenation,
    gather,
    pad,
    reshape,
    scatter,
    select,
    space,
    strided_slice,
    transpose,
)
from tests.support.case import Array, Case
from tests.support.quantized import per_tensor
from tflite_vk.dtypes import DType
from tflite_vk.testing.model_writer import ModelWriter

_MODULES = (concatenation, gather, pad, reshape, scatter, select, space, strided_slice, transpose)
_SCALE = (0.02, 100)

_MOVES = frozenset(
    {
        "BATCH_TO_SPACE_ND", "BROADCAST_TO", "CONCATENATION", "DEPTH_TO_SPACE", "DYNAMIC_UPDATE_SLICE",
        "EXPAND_DIMS", "FILL", "GATHER", "GATHER_ND", "MIRROR_PAD", "ONE_HOT", "PACK", "PAD", "PADV2",
        "RESHAPE", "REVERSE_SEQUENCE", "REVERSE_V2", "SELECT", "SELECT_V2", "SLICE", "SPACE_TO_BATCH_ND",
        "SPACE_TO_DEPTH", "SPLIT", "SPLIT_V", "SQUEEZE", "STRIDED_SLICE", "TILE", "TRANSPOSE", "UNPACK",
    }
)  # fmt: skip
_WITHOUT_KERNEL: dict[DType, frozenset[str]] = {
    DType.INT8: frozenset({"REVERSE_SEQUENCE"}),
    DType.UINT8: frozenset(),
    DType.INT16: frozenset({"DEPTH_TO_SPACE", "ONE_HOT", "SPACE_TO_DEPTH"}),
}
"""What LiteRT 2.3.0 refuses to run on a type."""


def _integers(values: Array, dtype: DType) -> Array:
    """Floats of the cases, mostly within 2 of zero, as integers all over the type's range."""
    info = np.iinfo(dtype.numpy)
    zero = per_tensor(dtype, _SCALE).zero_point[0]
    steps = 60 if info.bits == 8 else 15000
    return np.clip(np.rint(values * steps) + zero, info.min, info.max).astype(dtype.numpy)


def _retyped(build: Callable[[ModelWriter], object], dtype: DType) -> Callable[[ModelWriter], None]:
    def run(w: ModelWriter) -> None:
        build(w)
        for record in w.tensors:
            if record.spec.dtype is not DType.FLOAT32:
                continue
            quantization = per_tensor(dtype, _SCALE)
            record.spec = replace(record.spec, dtype=dtype, quantization=quantization)
            if record.buffer:
                values = np.frombuffer(w.pool.buffers[record.buffer], np.float32)
                record.buffer = w.pool.add(_integers(values, dtype).tobytes())

    return run


def _inputs(
    case: Case, dtype: DType
) -> Callable[[np.random.Generator], Mapping[int, Array]] | None:
    given = case.inputs
    if given is None:
        return None

    def make(rng: np.random.Generator) -> Mapping[int, Array]:
        return {
            i: _integers(v, dtype) if v.dtype == np.float32 else v for i, v in given(rng).items()
        }

    return make


def _operators(case: Case) -> set[str]:
    w = ModelWriter()
    case.build(w)
    return {o.op for o in w.operators}


def _has_floats(case: Case) -> bool:
    w = ModelWriter()
    case.build(w)
    return any(t.spec.dtype is DType.FLOAT32 for t in w.tensors)


def _cases() -> Iterator[Case]:
    for module in _MODULES:
        for case in module.CASES:
            names = _operators(case)
            if case.declined or case.expected or not names <= _MOVES or not _has_floats(case):
                continue
            for dtype, missing in _WITHOUT_KERNEL.items():
                # To kernels that move bits uint8 is int8, so it is tried where something is filled in.
                repeats = dtype is DType.UINT8 and module not in {concatenation, pad, space}
                if not names & missing and not repeats:
                    yield Case(
                        f"quantized_{dtype.name}_{case.name}",
                        _retyped(case.build, dtype),
                        inputs=_inputs(case, dtype),
                        exact=True,
                    )


CASES = list(_cases())
