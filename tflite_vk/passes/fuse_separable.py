"""Make one node of a DEPTHWISE_CONV_2D and the 1x1 CONV_2D behind it: a depthwise separable convolution.

The values between the two then never leave the workgroup that needs them, and one launch is saved. As
with elementwise steps, nothing else may need them. Whether the two are such a pair, and whether one kernel
is faster, is the operator family's to say: it depends on the device.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from tflite_vk.ir.attributes import DepthwiseConv2DAttributes, SeparableConv2DAttributes
from tflite_vk.ir.graph import NO_TENSOR, Graph, Node

SEPARABLE_CONV_2D = "SEPARABLE_CONV_2D"

PairQuestion = Callable[[Node, Node, Graph], bool]


def fuse_separable(graph: Graph, joins: PairQuestion) -> Graph:
    """Fuse every such pair.

    Args:
        graph: elementwise operators already fused.
        joins: True where one kernel computes the second node and the first, whose result it reads, and
            is faster.
    """
    reads = Counter(t for node in graph.nodes for t in node.reads)
    reads.update(graph.outputs)
    producer: dict[int, int] = {}
    nodes: list[Node | None] = []
    for node in graph.nodes:
        placed = node
        at = producer.get(node.inputs[0]) if node.inputs else None
        before = nodes[at] if at is not None else None
        if (
            at is not None
            and before is not None
            and before.op == "DEPTHWISE_CONV_2D"
            and reads[node.inputs[0]] == 1
            and joins(before, node, graph)
        ):
            placed = _joined(before, node)
            nodes[at] = None
        producer.update(dict.fromkeys(placed.outputs, len(nodes)))
        nodes.append(placed)
    return graph.with_(nodes=[n for n in nodes if n is not None])


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
