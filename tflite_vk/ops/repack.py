"""One tensor in another shape of as many elements, for RESHAPE and for kernels that want rows."""

from __future__ import annotations

from tflite_vk.ir.graph import Node, Tensor
from tflite_vk.layout import Storage, storage_of, words_for
from tflite_vk.ops.context import HOST_NODE, LoweringContext
from tflite_vk.ops.division import division_words
from tflite_vk.ops.moving import lanes_variant
from tflite_vk.shape import (
    LANES,
    Shape,
    inner,
    is_layout_preserving,
    num_vectors,
    vectors_per_row,
)

FLAT_ELEMENTS = 1 << 12
"""From this size on the device moves padding in and out of rows; NumPy takes a microsecond for
each hundred rows."""


def repack_into(
    ctx: LoweringContext,
    node: Node,
    source: int,
    old: Shape,
    target: int,
    new: Shape,
    storage: Storage,
    stored: Storage | None = None,
) -> None:
    """Add the dispatch that copies a buffer of one shape into a buffer of another.

    Args:
        ctx: the context.
        node: the node it serves.
        source: buffer to read.
        old: its shape.
        target: buffer to write.
        new: its shape.
        storage: of the source.
        stored: of the target, "f32" for "f16" or the other way round; None for the source's.
    """
    is_same = stored in (None, storage)
    vectors = num_vectors(new)
    ctx.dispatch_flat(
        node,
        lanes_variant("repack", storage) if is_same else f"convert_{storage}_{stored}",
        [source, target],
        invocations=vectors,
        push=(
            vectors,
            inner(new),
            vectors_per_row(new),
            inner(old),
            vectors_per_row(old) * LANES,
            *division_words((vectors_per_row(new), inner(old)), 2),
        ),
    )


def repack(ctx: LoweringContext, node: Node, tensor: Tensor, shape: Shape) -> int:
    """A buffer with the tensor's elements in the layout of `shape`; its own where nothing moves."""
    if is_layout_preserving(tensor.shape, shape):
        return ctx.buffer(tensor.id)
    storage = ctx.storage(tensor)
    target = ctx.temporary(words_for(shape, storage), f"{tensor.name}/rows")
    repack_into(ctx, node, ctx.buffer(tensor.id), tensor.shape, target, shape, storage)
    return target


def host_storage(tensor: Tensor) -> Storage:
    """How a graph input or output meets the host: as it is, for NumPy converts float16 slowly."""
    storage = storage_of(tensor.dtype)
    assert storage is not None, tensor.dtype
    return storage


def is_better_flat(tensor: Tensor) -> bool:
    """True for a graph input or output whose rows have padding, and are many.

    The host then copies the array as it is, and a dispatch moves the elements.
    """
    return tensor.num_elements >= FLAT_ELEMENTS and inner(tensor.shape) % LANES != 0


def unpack_input(ctx: LoweringContext, tensor: Tensor, stored: Storage) -> int:
    """A host-written buffer in the array's own order, and the dispatch from it to the tensor.

    Args:
        ctx: the context.
        tensor: a graph input.
        stored: how the nodes read it.
    """
    flat = (tensor.num_elements,)
    storage = host_storage(tensor)
    source = ctx.host_buffer(words_for(flat, storage), f"{tensor.name}/flat", "input")
    node = Node(HOST_NODE, "INPUT", (), (tensor.id,))
    target = ctx.buffer(tensor.id, stored)
    repack_into(ctx, node, source, flat, target, tensor.shape, storage, stored)
    return source


def pack_output(ctx: LoweringContext, tensor: Tensor) -> int:
    """A host-read buffer in the array's own order, and the dispatch from the tensor to it."""
    flat = (tensor.num_elements,)
    storage, stored = host_storage(tensor), ctx.stored_as(tensor.id)
    target = ctx.host_buffer(words_for(flat, storage), f"{tensor.name}/flat", "output")
    node = Node(HOST_NODE, "OUTPUT", (tensor.id,), ())
    source = ctx.buffer(tensor.id, stored)
    repack_into(ctx, node, source, tensor.shape, target, flat, stored, storage)
    return target
