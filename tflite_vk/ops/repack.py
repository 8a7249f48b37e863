"""One tensor in another shape of as many elements, for RESHAPE and for kernels that want rows."""

from __future__ import annotations

from tflite_vk.ir.graph import Node, Tensor
from tflite_vk.layout import Storage, words_for
from tflite_vk.ops.context import LoweringContext
from tflite_vk.shape import Shape, inner, is_layout_preserving, num_vectors, vectors_per_row

_BUILDS: dict[Storage, str] = {
    "f16": "repack_f16",
    "i16": "repack_i16",
    "i8": "repack_i8",
    "u8": "repack_i8",
}


def repack_into(
    ctx: LoweringContext,
    node: Node,
    source: int,
    old: Shape,
    target: int,
    new: Shape,
    storage: Storage,
) -> None:
    """Add the dispatch that copies a buffer of one shape into a buffer of another."""
    vectors = num_vectors(new)
    ctx.dispatch_flat(
        node,
        _BUILDS.get(storage, "repack"),
        [source, target],
        invocations=vectors,
        push=(vectors, inner(new), vectors_per_row(new), inner(old), vectors_per_row(old)),
    )


def repack(ctx: LoweringContext, node: Node, tensor: Tensor, shape: Shape) -> int:
    """A buffer with the tensor's elements in the layout of `shape`; its own where nothing moves."""
    if is_layout_preserving(tensor.shape, shape):
        return ctx.buffer(tensor.id)
    storage = ctx.storage(tensor)
    target = ctx.temporary(words_for(shape, storage), f"{tensor.name}/rows")
    repack_into(ctx, node, ctx.buffer(tensor.id), tensor.shape, target, shape, storage)
    return target
