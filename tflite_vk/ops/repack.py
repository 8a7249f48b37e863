"""One tensor in another shape of as many elements, for RESHAPE and for kernels that want rows."""

from __future__ import annotations

from tflite_vk.ir.graph import Node, Tensor
from tflite_vk.layout import Storage, words_for
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
) -> None:
    """Add the dispatch that copies a buffer of one shape into a buffer of another."""
    vectors = num_vectors(new)
    ctx.dispatch_flat(
        node,
        lanes_variant("repack", storage),
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


def is_better_flat(tensor: Tensor) -> bool:
    """True for a graph input or output whose rows have padding, and are many.

    The host then copies the array as it is, and a dispatch moves the elements.
    """
    return tensor.num_elements >= FLAT_ELEMENTS and inner(tensor.shape) % LANES != 0


def unpack_input(ctx: LoweringContext, tensor: Tensor) -> int:
    """A host-written buffer in the array's own order, and the dispatch from it to the tensor."""
    flat = (tensor.num_elements,)
    storage = ctx.storage(tensor)
    source = ctx.host_buffer(words_for(flat, storage), f"{tensor.name}/flat", "input")
    node = Node(HOST_NODE, "INPUT", (), (tensor.id,))
    repack_into(ctx, node, source, flat, ctx.buffer(tensor.id), tensor.shape, storage)
    return source


def pack_output(ctx: LoweringContext, tensor: Tensor) -> int:
    """A host-read buffer in the array's own order, and the dispatch from the tensor to it."""
    flat = (tensor.num_elements,)
    storage = ctx.storage(tensor)
    target = ctx.host_buffer(words_for(flat, storage), f"{tensor.name}/flat", "output")
    node = Node(HOST_NODE, "OUTPUT", (tensor.id,), ())
    repack_into(ctx, node, ctx.buffer(tensor.id), tensor.shape, target, flat, storage)
    return target
