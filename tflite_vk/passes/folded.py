"""Keeping the record of nodes that were computed before running."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tflite_vk.ir.graph import Node

Folded = Mapping[int, tuple[int, ...]]
"""`Graph.folded`."""


def whole_nodes(folded: Folded, nodes: Iterable[Node]) -> Folded:
    """The record without composites of which only a part was computed.

    Args:
        folded: for each constant the TFLite nodes it replaces.
        nodes: those left.
    """
    left = {n.index for n in nodes if n.is_inlined}
    whole = {t: tuple(dict.fromkeys(i for i in s if i not in left)) for t, s in folded.items()}
    return {t: sources for t, sources in whole.items() if sources}
