"""SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND: blocks of pixels to batches and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.division import division_words
from tflite_vk.ops.moving import (
    MOVED,
    check_data_types,
    input_ints,
    lanes_variant,
    zero_value,
)
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.registry import register
from tflite_vk.shape import Shape, num_elements, num_vectors, vectors_per_row


@dataclass(frozen=True)
class Blocks:
    """Block shape, and padding or crops before and after, for each spatial dimension."""

    sizes: tuple[int, ...]
    edges: tuple[tuple[int, int], ...]


def _blocks(node: Node, graph: Graph) -> Blocks | None:
    sizes, flat = input_ints(node, graph, 1), input_ints(node, graph, 2)
    if sizes is None or flat is None:
        return None
    spatial = graph.input(node, 0).rank - 2
    if (
        len(sizes) != spatial
        or len(flat) != 2 * spatial
        or min((*sizes, 1)) < 1
        or min((*flat, 0)) < 0
    ):
        raise ValueError(
            f"block shape {list(sizes)} with {list(flat)} around for {spatial} spatial dimensions"
        )
    return Blocks(sizes, tuple(zip(flat[::2], flat[1::2], strict=True)))


def _to_batch(source: Shape, blocks: Blocks) -> Shape:
    batch, *spatial, channels = source
    padded = [n + a + b for n, (a, b) in zip(spatial, blocks.edges, strict=True)]
    if any(n % b for n, b in zip(padded, blocks.sizes, strict=True)):
        raise ValueError(
            f"padded sizes {padded} are no multiples of the block {list(blocks.sizes)}"
        )
    small = [n // b for n, b in zip(padded, blocks.sizes, strict=True)]
    return (batch * num_elements(blocks.sizes), *small, channels)


def _to_space(source: Shape, blocks: Blocks) -> Shape:
    batch, *spatial, channels = source
    if batch % num_elements(blocks.sizes):
        raise ValueError(f"batch {batch} is no multiple of the block {list(blocks.sizes)}")
    large = [
        n * b - sum(edge) for n, b, edge in zip(spatial, blocks.sizes, blocks.edges, strict=True)
    ]
    if min(large) < 0:
        raise ValueError(f"crops {list(blocks.edges)} leave nothing of {list(source)}")
    return (batch // num_elements(blocks.sizes), *large, channels)


def _with_height(shape: Shape) -> Shape:
    """[N, H, W, C] of a shape with one or two spatial dimensions."""
    return (shape[0], 1, *shape[1:]) if len(shape) == 3 else shape


@register
class SpaceToBatchNd(Operator):
    """Blocks of pixels to batches and back."""

    versions = {"SPACE_TO_BATCH_ND": 4, "BATCH_TO_SPACE_ND": 4}
    dtypes = MOVED
    notes = "rank 3 or 4; block shape, paddings and crops must be constants"

    def check(self, node: Node, graph: Graph) -> str | None:
        return check_data_types(node, graph, [0])

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape] | None:
        source = graph.input(node, 0).shape
        if len(source) not in (3, 4):
            raise ValueError(f"rank {len(source)} (supported: 3, 4)")
        blocks = _blocks(node, graph)
        if blocks is None:
            return None
        make = _to_batch if node.op == "SPACE_TO_BATCH_ND" else _to_space
        return [make(source, blocks)]

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        source, target = ctx.graph.input(node, 0), ctx.graph.output(node)
        blocks = _blocks(node, ctx.graph)
        assert blocks is not None
        x, y = _with_height(source.shape), _with_height(target.shape)
        is_flat = source.rank == 3
        sizes = (1, *blocks.sizes) if is_flat else blocks.sizes
        edges = ((0, 0), *blocks.edges) if is_flat else blocks.edges
        vectors = num_vectors(y)
        ctx.dispatch_flat(
            node,
            lanes_variant("space_to_batch_nd", ctx.storage(target)),
            [ctx.buffer(source.id), ctx.buffer(target.id)],
            invocations=vectors,
            spec=(int(node.op == "SPACE_TO_BATCH_ND"),),
            push=(
                vectors,
                vectors_per_row(y),
                y[1],
                y[2],
                x[0],
                x[1],
                x[2],
                y[0],
                *sizes,
                edges[0][0],
                edges[1][0],
                zero_value(target) & 0xFF,  # int16 has none
                *division_words((vectors_per_row(y), y[2], y[1], x[0], *sizes), 6),
            ),
        )
