"""Which operators a device takes, as bytes and back, so that the answer need not be found again."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tflite_vk.ir.graph import Graph, Node
from tflite_vk.passes.infer_shapes import with_shape
from tflite_vk.shape import Shape

Unsupported = Callable[[Node, Graph], str | None]


@dataclass(frozen=True)
class Plan:
    """What was found out about a graph.

    Attributes:
        reasons: for each node that was asked about, why the device can't run it; None if it can.
        shapes: of tensors whose shape was found to differ from the graph's.
    """

    reasons: Mapping[int, str | None]
    shapes: Mapping[int, Shape] = field(default_factory=dict)

    def unsupported(self, otherwise: Unsupported) -> Unsupported:
        """A check for support that knows the answers; asks `otherwise` for what is missing."""

        def check(node: Node, graph: Graph) -> str | None:
            if node.index in self.reasons:
                return self.reasons[node.index]
            return otherwise(node, graph)

        return check

    def with_shapes(self, graph: Graph) -> Graph:
        """The graph in the shapes that were found."""
        return graph.with_(
            tensors=[with_shape(graph.tensors[t], shape) for t, shape in self.shapes.items()]
        )


class PlanRecorder:
    """Remembers what a check for support answers."""

    def __init__(self, unsupported: Unsupported) -> None:
        self._unsupported = unsupported
        self._reasons: dict[int, str | None] = {}

    def __call__(self, node: Node, graph: Graph) -> str | None:
        """Ask, and remember."""
        reason = self._unsupported(node, graph)
        # A composite has as many answers as nodes: one that can't run decides.
        self._reasons[node.index] = self._reasons.get(node.index) or reason
        return reason

    def plan(self, shapes: Mapping[int, Shape] | None = None) -> Plan:
        """What was found out."""
        return Plan(dict(self._reasons), dict(shapes or {}))


def changed_shapes(before: Graph, after: Graph) -> dict[int, Shape] | None:
    """Shapes that differ between a graph and what was made of it; None where more differs."""
    if before.nodes != after.nodes or before.tensors.keys() != after.tensors.keys():
        return None
    out: dict[int, Shape] = {}
    for tensor_id, old in before.tensors.items():
        new = after.tensors[tensor_id]
        if new is old:
            continue
        if (new.data is not old.data) or new.is_dynamic != old.is_dynamic:
            return None
        if new.shape != old.shape:
            out[tensor_id] = new.shape
    return out


def encode_plan(plan: Plan) -> bytes:
    """The content of a file."""
    head = {"reasons": sorted(plan.reasons.items()), "shapes": sorted(plan.shapes.items())}
    return json.dumps(head).encode()


def decode_plan(data: memoryview) -> Plan:
    """What `encode_plan` was given.

    Raises:
        Exception: of any kind, where it was not written by this code.
    """
    head = json.loads(bytes(data))
    shapes = {int(t): tuple(int(d) for d in shape) for t, shape in head["shapes"]}
    return Plan({int(n): reason for n, reason in head["reasons"]}, shapes)
