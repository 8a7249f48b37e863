"""States that the host keeps: uploaded like an input before each run, downloaded like an output after it.

Under a delegate TFLite owns the memory of variables: it sets them back itself, and nodes that stay on
the CPU may read them. They meet the host in their own type; what is float16 on the device is converted
there.
"""

from __future__ import annotations

from dataclasses import dataclass

from tflite_vk.ir.graph import Node, Tensor
from tflite_vk.layout import words_for
from tflite_vk.ops.context import HOST_NODE, LoweringContext
from tflite_vk.ops.repack import host_storage, repack_into


@dataclass(frozen=True)
class HostState:
    """Where the host's copy of a state meets a program.

    Attributes:
        before: buffer that the host writes.
        after: buffer that it reads; None where no node writes the state.
    """

    before: int
    after: int | None


def upload_state(ctx: LoweringContext, tensor: Tensor) -> int:
    """A host-written buffer that holds a state before the run, as the nodes read it or before that."""
    storage, stored = host_storage(tensor), ctx.storage(tensor)
    source = ctx.host_buffer(words_for(tensor.shape, storage), tensor.name, "input")
    if stored == storage:
        ctx.place(tensor.id, source)
        return source
    target = ctx.temporary(words_for(tensor.shape, stored), f"{tensor.name}/{stored}")
    node = Node(HOST_NODE, "INPUT", (), (tensor.id,))
    repack_into(ctx, node, source, tensor.shape, target, tensor.shape, storage, stored)
    ctx.place(tensor.id, target)
    return source


def download_state(ctx: LoweringContext, tensor: Tensor) -> int | None:
    """A host-read buffer that holds a state after the run; None where no node has written it."""
    renewed = ctx.renewed.get(tensor.id)
    if renewed is None:
        return None
    storage, stored = host_storage(tensor), ctx.stored_as(tensor.id)
    if stored == storage:
        ctx.show(renewed)
        return renewed
    target = ctx.host_buffer(words_for(tensor.shape, storage), f"{tensor.name}/after", "output")
    node = Node(HOST_NODE, "OUTPUT", (tensor.id,), ())
    repack_into(ctx, node, renewed, tensor.shape, target, tensor.shape, stored, storage)
    return target
