"""PAD, PADV2, MIRROR_PAD."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflite_vk.ir.attributes import MirrorPadAttributes
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.layout import pack
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.moving import (
    MOVED,
    check_data_types,
    input_ints,
    zero_value,
)
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.registry import register
from tflite_vk.ops.surround import Extent, surround
from tflite_vk.shape import Shape


def _paddings(node: Node, graph: Graph) -> list[tuple[int, int]] | None:
    """Elements before and after along each dimension; None where not constant."""
    flat = input_ints(node, graph, 1)
    if flat is None:
        return None
    rank = graph.input(node, 0).rank
    if graph.input(node, 1).shape != (rank, 2):
        raise ValueError(f"paddings of shape {list(graph.input(node, 1).shape)} for rank {rank}")
    if min(flat, default=0) < 0:
        raise ValueError(f"paddings {list(flat)} hold a negative one")
    return [(flat[2 * i], flat[2 * i + 1]) for i in range(rank)]


def _extents(source: Shape, paddings: list[tuple[int, int]]) -> list[Extent]:
    return [
        Extent(before + size + after, size, before)
        for size, (before, after) in zip(source, paddings, strict=True)
    ]


def _zero(node: Node, ctx: LoweringContext) -> int:
    """A buffer with what stands for zero in the output's type."""
    output = ctx.graph.output(node)
    value = np.full(1, zero_value(output), output.dtype.numpy)
    return ctx.constant(pack(value, ctx.storage(output)), "zero")


class _Padding(Operator):
    """What the three share."""

    dtypes = MOVED

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape] | None:
        paddings = _paddings(node, graph)
        if paddings is None:
            return None
        return [tuple(e.result for e in _extents(graph.input(node, 0).shape, paddings))]

    def is_alias(self, node: Node, graph: Graph) -> bool:
        source = graph.input(node, 0)
        return source.shape == graph.output(node).shape and not source.is_variable

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        paddings = _paddings(node, ctx.graph)
        assert paddings is not None
        extents = _extents(ctx.graph.input(node, 0).shape, paddings)
        if isinstance(node.attributes, MirrorPadAttributes):
            is_symmetric = node.attributes.mode == "SYMMETRIC"
            surround(ctx, node, extents, "mirror", is_symmetric=is_symmetric)
        else:
            value = ctx.buffer(node.inputs[2]) if node.op == "PADV2" else _zero(node, ctx)
            surround(ctx, node, extents, "fill", fill=value)


@register
class Pad(_Padding):
    """Constant values around a tensor."""

    versions = {"PAD": 5, "PADV2": 5}
    notes = "paddings must be constants and not negative; PADV2's value may be a run-time tensor"

    def check(self, node: Node, graph: Graph) -> str | None:
        if node.op == "PADV2" and graph.input(node, 2).num_elements != 1:
            return (
                f"the padding value has {graph.input(node, 2).num_elements} elements (supported: 1)"
            )
        return check_data_types(node, graph, (0, 2) if node.op == "PADV2" else (0,))


@register
class MirrorPad(_Padding):
    """A tensor mirrored at its borders."""

    versions = {"MIRROR_PAD": 3}
    notes = "paddings must be constants and lie inside the dimension, as TFLite requires"

    def check(self, node: Node, graph: Graph) -> str | None:
        paddings = _paddings(node, graph)
        assert paddings is not None
        assert isinstance(node.attributes, MirrorPadAttributes)
        spared = node.attributes.mode == "REFLECT"
        for axis, (size, pair) in enumerate(zip(graph.input(node, 0).shape, paddings, strict=True)):
            if max(pair) > max(0, size - spared):
                return (
                    f"pads axis {axis} of size {size} by {max(pair)}"
                    f" (supported: up to {max(0, size - spared)})"
                )
        return check_data_types(node, graph, [0])
