"""Move functions of one 8-bit integer into the kernel that makes their argument.

They are tables of 256 results, so a kernel that maps its bytes through one gives the same integers as
two kernels would. A producer takes a consumer in when nothing else needs the value between them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from tflite_vk.ir.graph import Graph, Node, Step

Question = Callable[[Node, Graph], bool]


def fuse_tables(graph: Graph, is_table: Question, takes_table: Question) -> Graph:
    """Fuse every function of a byte that a producer can take in.

    Args:
        graph: any.
        is_table: True for a function of one 8-bit value with 8-bit results.
        takes_table: True for a node whose kernel maps its 8-bit results through a table.
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
            and reads[node.inputs[0]] == 1
            and before.outputs == (node.inputs[0],)
            and is_table(node, graph)
            and takes_table(before, graph)
        ):
            step = Step(
                node.op, attributes=node.attributes, source=node.index, result=node.outputs[0]
            )
            placed = replace(
                before,
                outputs=node.outputs,
                steps=(*before.steps, step, *node.steps),
                sources=(*before.origins, *node.origins),
                made=graph.made(before).id,
            )
            nodes[at] = None
        producer.update(dict.fromkeys(placed.outputs, len(nodes)))
        nodes.append(placed)
    return graph.with_(nodes=[n for n in nodes if n is not None])
