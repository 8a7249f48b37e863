"""SPACE_TO_DEPTH and DEPTH_TO_SPACE: blocks of pixels to channels and back."""

from __future__ import annotations

from collections.abc import Sequence

from tflite_vk.ir.attributes import BlockSizeAttributes
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.moving import MOVED, check_data_types
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.registry import register
from tflite_vk.ops.strided_copy import View, strided_copy
from tflite_vk.shape import Shape, strides


def _block_size(node: Node) -> int:
    assert isinstance(node.attributes, BlockSizeAttributes)
    return node.attributes.block_size


@register
class SpaceToDepth(Operator):
    """Blocks of pixels to channels and back."""

    versions = {"SPACE_TO_DEPTH": 2, "DEPTH_TO_SPACE": 2}
    dtypes = MOVED

    def check(self, node: Node, graph: Graph) -> str | None:
        return check_data_types(node, graph, [0])

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape]:
        source = graph.input(node, 0).shape
        block = _block_size(node)
        if len(source) != 4 or block < 1:
            raise ValueError(
                f"block size {block} of a shape {list(source)} (supported: rank 4, from 1 on)"
            )
        n, h, w, c = source
        if node.op == "SPACE_TO_DEPTH":
            if h % block or w % block:
                raise ValueError(f"height {h} and width {w} are no multiples of block size {block}")
            return [(n, h // block, w // block, c * block * block)]
        if c % (block * block):
            raise ValueError(f"{c} channels are no multiple of block size {block} squared")
        return [(n, h * block, w * block, c // (block * block))]

    def is_alias(self, node: Node, graph: Graph) -> bool:
        return _block_size(node) == 1 and not graph.input(node, 0).is_variable

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        source, target = ctx.graph.input(node, 0), ctx.graph.output(node)
        block = _block_size(node)
        n, h, w, c = target.shape
        step_n, step_h, step_w, _ = strides(source.shape)
        if node.op == "SPACE_TO_DEPTH":
            view = View(
                ((n, step_n), (h, block * step_h), (w, block * step_w)),
                ((block, step_h), (block, step_w), (c // (block * block), 1)),
            )
        else:
            view = View(
                (
                    (n, step_n),
                    (h // block, step_h),
                    (block, block * c),
                    (w // block, step_w),
                    (block, c),
                ),
                ((c, 1),),
            )
        strided_copy(
            ctx,
            node,
            ctx.buffer(source.id),
            ctx.buffer(target.id),
            target.shape,
            view,
            ctx.storage(target),
        )
