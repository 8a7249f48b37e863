"""Move functions of one 8-bit integer into the kernel that makes their argument.

They are tables of 256 results, so a kernel that maps its bytes through one gives the same integers as
two kernels would. A producer takes a consumer in when nothing else needs the value between them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tflite_vk.ir.graph import Graph, Node, Step
from tflite_vk.passes.merge import merge_into_producers

Question = Callable[[Node, Graph], bool]


def fuse_tables(graph: Graph, is_table: Question, takes_table: Question) -> Graph:
    """Fuse every function of a byte that a producer can take in.

    Args:
        graph: any.
        is_table: True for a function of one 8-bit value with 8-bit results.
        takes_table: True for a node whose kernel maps its 8-bit results through a table.
    """

    def merge(before: Node, node: Node) -> Node | None:
        if before.outputs != (node.inputs[0],):
            return None
        if not (is_table(node, graph) and takes_table(before, graph)):
            return None
        step = Step(node.op, attributes=node.attributes, source=node.index, result=node.outputs[0])
        return replace(
            before,
            outputs=node.outputs,
            steps=(*before.steps, step, *node.steps),
            sources=(*before.origins, *node.origins),
            made=graph.made(before).id,
        )

    return merge_into_producers(graph, merge)
