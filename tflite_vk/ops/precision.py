"""Which nodes run in float32 although precision="fp16" was asked for.

float16 ends at 65504. Squares get there first: a variance or a norm of values around 300 is beyond it
and, saturated or infinite, gives plausible numbers once a root and a division have tamed it. So a sum
of squares runs in float32 from the squares up to the root, as do operators that the user names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from tflite_vk.epilogue import BINARY_CODES
from tflite_vk.ir.graph import Graph, Node

_SUMS = frozenset({"SUM", "MEAN"})
_SQUARES = frozenset({"SQUARE", "SQUARED_DIFFERENCE", "POW"})
"""passes/to_elementwise.py makes a SQUARE of x * x."""
_TAMING = frozenset({"SQRT", "RSQRT", "LOG"})
"""Functions that bring a sum of squares back to the size of what was squared."""
_RESHAPING = frozenset({"RESHAPE", "SQUEEZE", "EXPAND_DIMS"})


def fp32_outputs(graph: Graph, wanted: Collection[int] = ()) -> frozenset[int]:
    """First outputs of the nodes that run in float32.

    Args:
        graph: after all passes.
        wanted: TFLite indices of nodes that the user wants there; what they are fused with goes along.
    """
    return frozenset(_Precision(graph, frozenset(wanted)).found)


def nodes_named(graph: Graph, ops: Collection[str]) -> frozenset[int]:
    """TFLite indices of a graph's nodes by operator, TFLite's names in any case."""
    names = {*ops, *(op.upper() for op in ops)}
    return frozenset(node.index for node in graph.nodes if node.op in names)


def is_elementwise(node: Node) -> bool:
    """True for a node that is nothing but elementwise operators."""
    return node.op == "ELEMENTWISE" or node.op in BINARY_CODES


def _names(node: Node) -> set[str]:
    """Operators of a node, fused ones too."""
    return {node.op, *(s.op for s in node.steps)}


class _Precision:
    def __init__(self, graph: Graph, wanted: frozenset[int]) -> None:
        self.graph = graph
        self.found: set[int] = set()
        self._writer = {t: node for node in graph.nodes for t in node.outputs}
        self._readers: defaultdict[int, list[Node]] = defaultdict(list)
        for node in graph.nodes:
            for tensor in set(node.reads):
                self._readers[tensor].append(node)
        for node in graph.nodes:
            if not wanted.isdisjoint(node.origins):
                self._add(node)
            if node.op == "BITCAST":
                self._add(node)  # its bits are those of float32
            if node.op in _SUMS:
                self._add_sum_of_squares(node)
            self._add_reals_of_integers(node)
        self._add_users_of_states()

    def _add(self, node: Node) -> None:
        self.found.add(node.outputs[0])

    def _add_reals_of_integers(self, node: Node) -> None:
        """What passes/dequantize_inputs.py took apart is one operator, which has integers for input."""
        for tensor in set(node.inputs):
            inside = self._writer.get(tensor)
            if inside is not None and inside.op == "DEQUANTIZE" and inside.index == node.index:
                self._add(inside)
                self._add(node)

    def _add_sum_of_squares(self, node: Node) -> None:
        behind = [node]
        square = self._writer.get(node.inputs[0])
        while square is not None and square.op in _RESHAPING:
            behind.append(square)
            square = self._writer.get(square.inputs[0])
        if square is None or _names(square).isdisjoint(_SQUARES):
            return
        for part in (square, *behind[1:]):
            self._add(part)
        # Its kernel reads float32 in either precision: what it writes decides.
        if _names(node).isdisjoint(_TAMING):
            self._add(node)
            self._add_until_tamed(node)

    def _add_until_tamed(self, node: Node) -> None:
        if not _names(node).isdisjoint(_TAMING):
            return
        for reader in self._readers[node.outputs[0]]:
            if is_elementwise(reader) and reader.outputs[0] not in self.found:
                self._add(reader)
                self._add_until_tamed(reader)

    def _add_users_of_states(self) -> None:
        """A state has one storage, so all that use it run in one precision: the host's, if it does."""
        used = {
            t
            for node in self.graph.nodes
            if node.outputs[0] in self.found
            for t in (*node.reads, *node.outputs)
        }
        used.update(self.graph.inputs, self.graph.outputs)
        states = {t for t in used if self.graph.tensors[t].is_variable}
        for node in self.graph.nodes:
            if not states.isdisjoint((*node.reads, *node.outputs)):
                self._add(node)
