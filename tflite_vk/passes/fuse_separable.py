"""Make one node of a DEPTHWISE_CONV_2D and the 1x1 CONV_2D behind it: a depthwise separable convolution.

The values between the two then never leave the workgroup that needs them, and one launch is saved. As
with elementwise steps, nothing else may need them. Whether the two are such a pair, and whether one kernel
is faster, is the operator family's to say: it depends on the device.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tflite_vk.ir.attributes import DepthwiseConv2DAttributes, SeparableConv2DAttributes
from tflite_vk.ir.graph import NO_TENSOR, Graph, Node
from tflite_vk.passes.merge import merge_into_producers

SEPARABLE_CONV_2D = "SEPARABLE_CONV_2D"

PairQuestion = Callable[[Node, Node, Graph], bool]


def fuse_separable(graph: Graph, joins: PairQuestion) -> Graph:
    """Fuse every such pair.

    Args:
        graph: elementwise operators already fused.
        joins: True where one kernel computes the second node and the first, whose result it reads, and
            is faster.
    """

    def merge(before: Node, node: Node) -> Node | None:
        is_pair = before.op == "DEPTHWISE_CONV_2D" and joins(before, node, graph)
        return _joined(before, node) if is_pair else None

    return merge_into_producers(graph, merge)


def _joined(depthwise: Node, pointwise: Node) -> Node:
    """The node of both; its options are the depthwise part's, the other has none that matter."""
    a = depthwise.attributes
    assert isinstance(a, DepthwiseConv2DAttributes)
    assert len(depthwise.steps) <= 1
    return replace(
        pointwise,
        index=depthwise.index,
        op=SEPARABLE_CONV_2D,
        inputs=(*_three_inputs(depthwise), *_three_inputs(pointwise)[1:]),
        attributes=SeparableConv2DAttributes(
            **vars(a), between="".join(s.op for s in depthwise.steps)
        ),
        sources=(*depthwise.origins, *pointwise.origins),
    )


def _three_inputs(node: Node) -> tuple[int, ...]:
    """Input, filter and bias, which may be absent."""
    return (*node.inputs, NO_TENSOR)[:3]
