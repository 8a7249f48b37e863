"""Operators that move values and compute nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tests.fuzz.builder import MAX_ELEMENTS, Builder, Value
from tests.fuzz.eager import RefusedError
from tests.fuzz.generators import BOTH, generator
from tflite_vk.ir.attributes import (
    BlockSizeAttributes,
    ConcatenationAttributes,
    GatherAttributes,
    MirrorPadAttributes,
    PackAttributes,
    ReverseSequenceAttributes,
    SplitAttributes,
    SqueezeAttributes,
    StridedSliceAttributes,
    UnpackAttributes,
)


def is_kind(g: Builder, v: Value) -> bool:
    """True for a value of the graph's kind."""
    return v.is_float if g.group == "float" else v.is_quantized


def _is_like(v: Value, x: Value) -> bool:
    """True for a value of the same type, with the same scale where there is one."""
    return v.array.dtype == x.array.dtype and v.quantization == x.quantization


def some(g: Builder, low: int = 0, high: int = 6) -> Value:
    """Any value that moves: of the graph's kind mostly, sometimes int32 or bool."""
    if g.chance(0.2):
        found = g.pick(lambda v: not is_kind(g, v) and low <= v.rank <= high)
        if found is not None:
            return found
    return g.any(rank=range(low, high + 1))


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


@generator(2, *BOTH)
def reshape(g: Builder) -> None:
    x = g.any(accept=lambda v: v.array.size > 0)
    shape = list(g.factor(x.array.size, g.integer(0 if x.array.size == 1 else 1, 6)))
    g.reshape(x, shape)


@generator(1, *BOTH)
def reshape_with_a_blank(g: Builder) -> None:
    x = g.any(rank=(1, 2, 3, 4, 5), accept=lambda v: v.array.size > 0)
    shape = list(g.factor(x.array.size, g.integer(1, 5)))
    shape[g.integer(0, len(shape) - 1)] = -1
    g.apply("RESHAPE", [x, np.array(shape, np.int32)], out=x.result)


@generator(1, *BOTH)
def squeeze(g: Builder) -> None:
    x = some(g, 1)
    ones = [i for i, n in enumerate(x.shape) if n == 1]
    if not ones:
        raise RefusedError("nothing to squeeze")
    chosen = tuple(i - x.rank * g.chance(0.3) for i in ones if g.chance(0.6))
    g.apply("SQUEEZE", [x], SqueezeAttributes(chosen), out=x.result)


@generator(1, *BOTH)
def expand_dims(g: Builder) -> None:
    x = some(g, 0, 5)
    g.apply("EXPAND_DIMS", [x, np.array(g.integer(-x.rank - 1, x.rank), np.int32)], out=x.result)


@generator(2, *BOTH)
def transpose(g: Builder) -> None:
    x = some(g, 1, 6)
    perm = g.rng.permutation(x.rank).astype(np.int32)
    g.apply("TRANSPOSE", [x, perm], out=x.result, version=4 if x.rank > 4 else 1)


@generator(3, *BOTH)
def concatenation(g: Builder) -> None:
    x = some(g, 1, 5)
    axis = g.integer(0, x.rank - 1)
    parts = [x]
    for _ in range(g.choice((1, 1, 2, 3, 4, 8))):

        def fits(v: Value) -> bool:
            return (
                v.array.dtype == x.array.dtype
                and v.rank == x.rank
                and all(
                    a == b
                    for i, (a, b) in enumerate(zip(v.shape, x.shape, strict=True))
                    if i != axis
                )
            )

        other = g.pick(fits)
        if other is not None and g.chance(0.7):
            parts.append(other)
        else:
            shape = list(x.shape)
            shape[axis] = g.integer(1, 6)
            parts.append(g.like(x, shape))
    order = g.rng.permutation(len(parts))
    a = ConcatenationAttributes("NONE", axis - x.rank * g.chance(0.3))
    g.apply("CONCATENATION", [parts[i] for i in order], a, out=x.result)


@generator(1, *BOTH)
def pack(g: Builder) -> None:
    x = some(g, 0, 4)
    parts = [x]
    for _ in range(g.integer(1, 3)):
        other = g.pick(lambda v: _is_like(v, x) and v.shape == x.shape)
        if g.chance(0.3):
            other = g.like(x, x.shape)
        parts.append(other or x)
    axis = g.integer(-x.rank - 1, x.rank)
    g.apply("PACK", parts, PackAttributes(len(parts), axis), out=x.result)


@generator(1, *BOTH)
def unpack(g: Builder) -> None:
    x = some(g, 1, 5)
    axis = g.integer(-x.rank, x.rank - 1)
    count = x.shape[axis]
    if not 1 <= count <= 5:
        raise RefusedError("many outputs")
    g.apply_multi("UNPACK", [x], UnpackAttributes(count, axis), outs=[x.result] * count)


@generator(2, *BOTH)
def split(g: Builder) -> None:
    x = some(g, 1, 5)
    axis = g.integer(-x.rank, x.rank - 1)
    counts = [n for n in (2, 3, 4, 5) if x.shape[axis] % n == 0]
    if not counts:
        raise RefusedError("nothing divides it")
    n = g.choice(counts)
    g.apply_multi("SPLIT", [np.array(axis, np.int32), x], SplitAttributes(n), outs=[x.result] * n)


@generator(1, *BOTH)
def split_v(g: Builder) -> None:
    x = some(g, 1, 4)
    axis = g.integer(-x.rank, x.rank - 1)
    length = x.shape[axis]
    n = g.integer(1, 4)
    cuts = sorted(g.integer(0, length) for _ in range(n - 1))
    sizes = np.diff([0, *cuts, length]).astype(np.int32)
    if (sizes == 0).any():
        raise RefusedError("an empty part")
    if g.chance(0.4):
        sizes[g.integer(0, n - 1)] = -1
    outs = [x.result] * n
    g.apply_multi("SPLIT_V", [x, sizes, np.array(axis, np.int32)], SplitAttributes(n), outs=outs)


@generator(2, *BOTH)
def pad(g: Builder) -> None:
    x = g.any(rank=(1, 2, 3, 4, 5))
    pads = g.rng.integers(0, 4, (x.rank, 2)) * (g.rng.random((x.rank, 1)) < 0.5)
    if g.chance(0.4):
        value = g.like(x, (1,))
        if x.is_float:
            value = g.const(np.array([g.choice((0.0, 3.0, -1.5, -100.0))], np.float32))
        g.apply("PADV2", [x, pads.astype(np.int32), value], out=x.result)
    else:
        g.apply("PAD", [x, pads.astype(np.int32)], out=x.result)


@generator(1, *BOTH)
def mirror_pad(g: Builder) -> None:
    x = g.any(rank=(1, 2, 3, 4, 5), accept=lambda v: v.array.size > 0)
    mode = g.choice(("REFLECT", "SYMMETRIC"))
    pads = np.zeros((x.rank, 2), np.int32)
    for axis, n in enumerate(x.shape):
        most = min(3, n - (mode == "REFLECT"))  # more reads outside (D18)
        if g.chance(0.6):
            pads[axis] = [g.integer(0, most), g.integer(0, most)]
    g.apply("MIRROR_PAD", [x, pads], MirrorPadAttributes(mode), out=x.result)


@generator(1, *BOTH)
def slice_any(g: Builder) -> None:
    x = some(g, 1, 5)
    begin = [g.integer(0, max(0, n - 1)) for n in x.shape]
    size = [g.integer(1, max(1, n - b)) for n, b in zip(x.shape, begin, strict=True)]
    written = [-1 if g.chance(0.2) else n for n in size]
    shape = (n if w < 0 else w for n, w in zip(_rests(x, begin), written, strict=True))
    out = replace(x.result, shape=tuple(shape))
    g.apply("SLICE", [x, ints(*begin), ints(*written)], out=out)


def _rests(x: Value, begin: Sequence[int]) -> list[int]:
    """How much of each dimension is behind its first element taken."""
    return [n - b for n, b in zip(x.shape, begin, strict=True)]


@generator(2, *BOTH)
def strided_slice(g: Builder) -> None:
    x = some(g, 1, 4)
    begin, end, stride = [], [], []
    masks = dict.fromkeys(("begin_mask", "end_mask", "shrink_axis_mask", "new_axis_mask"), 0)
    spec = g.integer(1, x.rank)
    for axis in range(spec):
        n = x.shape[axis]
        bit = 1 << axis
        if g.chance(0.15) and n:
            at = g.integer(-n, n - 1)
            begin.append(at)
            end.append(at + 1 if at != -1 else n)
            stride.append(1)
            masks["shrink_axis_mask"] |= bit
            continue
        step = g.choice((1, 1, 1, 2, 3, -1, -2))
        low, high = sorted((g.integer(0, n), g.integer(0, n)))
        if step > 0:
            begin.append(low - n if g.chance(0.3) and low < n else low)
            end.append(high + g.choice((0, 0, 5)))
        else:
            begin.append(high)
            end.append(low - n - 1 if low == 0 else low - n)
        stride.append(step)
        if g.chance(0.25):
            masks["begin_mask"] |= bit
        if g.chance(0.25):
            masks["end_mask"] |= bit
    a = StridedSliceAttributes(**masks)
    g.apply("STRIDED_SLICE", [x, ints(*begin), ints(*end), ints(*stride)], a, out=x.result)


@generator(1, *BOTH)
def gather(g: Builder) -> None:
    x = some(g, 1, 4)
    axis = g.integer(-x.rank, x.rank - 1)
    n = x.shape[axis]
    if not n:
        raise RefusedError("nothing to take")
    batch = 0
    shape = g.shape(g.integer(0, 2), 30)
    positive = axis % x.rank
    if positive and g.chance(0.3):
        batch = g.integer(1, positive)
        shape = (*x.shape[:batch], *shape)
    indices = g.rng.integers(0, n, shape).astype(np.int32)
    given = g.input(indices) if g.chance(0.4) else g.const(indices)
    a = GatherAttributes(axis, batch)
    g.apply("GATHER", [x, given], a, out=x.result, version=4 if batch else 1)


@generator(0.7, *BOTH)
def gather_nd(g: Builder) -> None:
    x = some(g, 1, 4)
    if 0 in x.shape:
        raise RefusedError("nothing to take")
    depth = g.integer(1, x.rank)
    shape = g.shape(g.integer(0, 2), 30)
    columns = [g.rng.integers(0, n, shape) for n in x.shape[:depth]]
    indices = np.stack(columns, -1).astype(np.int32)
    g.apply("GATHER_ND", [x, indices], out=x.result)


@generator(0.5)
def embedding_lookup(g: Builder) -> None:
    table = g.floats(g.shape(g.integer(2, 3), 1000), exact=True)
    rows = g.rng.integers(0, table.shape[0], g.choice((1, 3, 8))).astype(np.int32)
    g.apply("EMBEDDING_LOOKUP", [g.input(rows), table])


@generator(1, *BOTH)
def tile(g: Builder) -> None:
    x = some(g, 1, 5)
    times = [g.choice((1, 1, 2, 3)) for _ in x.shape]
    if x.array.size * int(np.prod(times)) > 2 * MAX_ELEMENTS:
        raise RefusedError("too much")
    g.apply("TILE", [x, ints(*times)], out=x.result)


@generator(1, *BOTH)
def broadcast_to(g: Builder) -> None:
    x = some(g, 0, 5)
    extra = g.shape(g.integer(0, 1), 4)
    shape = (*extra, *(g.choice((2, 3, 5)) if n == 1 else n for n in x.shape))
    if int(np.prod(shape)) > 2 * MAX_ELEMENTS or not shape:
        raise RefusedError("too much")
    g.apply("BROADCAST_TO", [x, ints(*shape)], out=x.result, version=2)


@generator(1, *BOTH)
def reverse(g: Builder) -> None:
    x = some(g, 1, 5)
    if not x.array.size:
        raise RefusedError("LiteRT's kernel divides by its size")
    g.apply("REVERSE_V2", [x, ints(g.integer(-x.rank, x.rank - 1))], out=x.result)


@generator(0.5, *BOTH)
def reverse_sequence(g: Builder) -> None:
    x = g.any(rank=(2, 3, 4), accept=lambda v: v.array.size > 0)
    seq, batch = (int(i) for i in g.rng.permutation(x.rank)[:2])
    lengths = g.rng.integers(0, x.shape[seq] + 1, x.shape[batch]).astype(np.int32)
    a = ReverseSequenceAttributes(seq, batch)
    g.apply("REVERSE_SEQUENCE", [x, lengths], a, out=x.result)


@generator(0.7, *BOTH)
def space_to_depth(g: Builder) -> None:
    block = g.choice((2, 3))

    def fits(v: Value) -> bool:
        return v.shape[1] % block == 0 and v.shape[2] % block == 0 if v.rank == 4 else False

    x = g.pick(lambda v: is_kind(g, v) and fits(v)) or g.new(
        (g.integer(1, 2), block * g.integer(1, 3), block * g.integer(1, 3), g.integer(1, 5))
    )
    g.apply("SPACE_TO_DEPTH", [x], BlockSizeAttributes(block), out=x.result)


@generator(0.7, *BOTH)
def depth_to_space(g: Builder) -> None:
    block = g.choice((2, 3))
    x = g.pick(
        lambda v: is_kind(g, v) and v.rank == 4 and v.shape[3] % (block * block) == 0
    ) or g.new((1, g.integer(1, 4), g.integer(1, 4), block * block * g.integer(1, 5)))
    g.apply("DEPTH_TO_SPACE", [x], BlockSizeAttributes(block), out=x.result)


@generator(1, *BOTH)
def space_to_batch(g: Builder) -> None:
    x = g.any(rank=(3, 4), accept=lambda v: v.array.size > 0)
    spatial = x.rank - 2
    block = [g.integer(1, 3) for _ in range(spatial)]
    pads = []
    for n, b in zip(x.shape[1:], block, strict=False):
        before = g.integer(0, 2)
        pads.append([before, -(n + before) % b + b * g.choice((0, 0, 1))])
    given = [x, ints(*block), np.array(pads, np.int32)]
    g.apply("SPACE_TO_BATCH_ND", given, out=x.result)


@generator(1, *BOTH)
def batch_to_space(g: Builder) -> None:
    rank = g.choice((3, 4))
    block = [g.integer(1, 3) for _ in range(rank - 2)]
    times = int(np.prod(block))
    x = g.pick(
        lambda v: is_kind(g, v) and v.rank == rank and v.shape[0] % times == 0 and v.array.size > 0
    )
    if x is None:
        x = g.new((times * g.integer(1, 2), *g.shape(rank - 1, 200)))
    crops = []
    for n, b in zip(x.shape[1:], block, strict=False):
        before = g.integer(0, min(2, n * b - 1))
        crops.append([before, g.integer(0, min(2, n * b - 1 - before))])
    given = [x, ints(*block), np.array(crops, np.int32)]
    g.apply("BATCH_TO_SPACE_ND", given, out=x.result)


@generator(0.5, *BOTH)
def dynamic_update_slice(g: Builder) -> None:
    x = g.any(rank=(1, 2, 3, 4), accept=lambda v: v.array.size > 0)
    shape = tuple(g.integer(1, n) for n in x.shape)
    # What would stick out is moved in.
    start = ints(*(g.integer(-1, n) for n in x.shape))
    other = g.pick(lambda v: _is_like(v, x) and v.shape == shape)
    where = g.input(start) if g.chance(0.5) else g.const(start)
    g.apply("DYNAMIC_UPDATE_SLICE", [x, other or g.like(x, shape), where], out=x.result)


@generator(0.5)
def scatter_nd(g: Builder) -> None:
    shape = g.shape(g.integer(1, 3), 300)
    depth = g.integer(1, len(shape))
    slots = int(np.prod(shape[:depth]))
    count = g.integer(1, min(6, slots))
    flat = g.rng.choice(slots, count, replace=False)  # sums of several are in no fixed order
    indices = np.stack(np.unravel_index(flat, shape[:depth]), -1).astype(np.int32)
    updates = (count, *shape[depth:])
    x = g.pick(lambda v: is_kind(g, v) and v.shape == updates) or g.new(updates)
    g.apply("SCATTER_ND", [indices, x, ints(*shape)], out=x.result)


@generator(0.5, *BOTH)
def fill(g: Builder) -> None:
    x = g.pick(lambda v: v.rank == 0 and is_kind(g, v)) or g.new(())
    g.apply("FILL", [ints(*g.shape(g.integer(1, 4), 500)), x], out=x.result)


@generator(0.5, *BOTH)
def zeros_like(g: Builder) -> None:
    x = some(g)
    if x.array.dtype == np.bool_:
        raise RefusedError("of bool")
    g.apply("ZEROS_LIKE", [x], out=x.result)
