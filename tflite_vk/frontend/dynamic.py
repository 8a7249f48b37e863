"""Which tensors get their shape only while running: those that depend on values, not on shapes.

TFLite finds this out while it prepares operators, which for a delegate that allows dynamic tensors
is after it had to choose its nodes. So the same rule is applied here, from the operators' names.
Where it misses one, nothing breaks: TFLite prepares the delegate's kernel late, with real shapes.
"""

from __future__ import annotations

from dataclasses import replace

from tflite_vk.ir.graph import Graph, Node

_ALWAYS = frozenset({"WHERE", "UNIQUE", "SKIP_GRAM"})
"""Operators whose output shape follows from the values of their inputs."""

_SHAPE_INPUTS: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("FILL", "RANDOM_UNIFORM", "RANDOM_STANDARD_NORMAL"), (0,)),
    **dict.fromkeys(("SPLIT", "TRANSPOSE_CONV", "CONV_3D_TRANSPOSE"), (0,)),
    **dict.fromkeys(
        [
            "RESHAPE",
            "TILE",
            "PAD",
            "PADV2",
            "MIRROR_PAD",
            "BROADCAST_TO",
            "RESIZE_BILINEAR",
            "TRANSPOSE",
            "RESIZE_NEAREST_NEIGHBOR",
            "EXPAND_DIMS",
            "ONE_HOT",
            "TOPK_V2",
            "ARG_MAX",
            "ARG_MIN",
            "MEAN",
            "SUM",
            "REDUCE_PROD",
            "REDUCE_MAX",
            "REDUCE_MIN",
            "REDUCE_ANY",
            "REDUCE_ALL",
            "MULTINOMIAL",
            "RFFT2D",
            "SEGMENT_SUM",
            "SPARSE_TO_DENSE",
        ],
        (1,),
    ),
    **dict.fromkeys(("SLICE", "SPLIT_V", "SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND"), (1, 2)),
    "STRIDED_SLICE": (1, 2, 3),
    "RANGE": (0, 1, 2),
    **dict.fromkeys(
        [
            "SCATTER_ND",
            "NON_MAX_SUPPRESSION_V4",
            "NON_MAX_SUPPRESSION_V5",
            "UNSORTED_SEGMENT_SUM",
            "UNSORTED_SEGMENT_PROD",
            "UNSORTED_SEGMENT_MAX",
            "UNSORTED_SEGMENT_MIN",
        ],
        (2,),
    ),
}
"""Positions of the inputs whose values set the output shape."""

_ON_SHAPES = frozenset(
    [
        "STRIDED_SLICE",
        "SLICE",
        "PACK",
        "CONCATENATION",
        "GATHER",
        "CAST",
        "ADD",
        "SUB",
        "MUL",
        "FLOOR_DIV",
        "DIV",
        "NEG",
        "MAXIMUM",
        "MINIMUM",
        "REDUCE_PROD",
        "REDUCE_MAX",
        "SUM",
        "SQUEEZE",
        "EXPAND_DIMS",
        "RESHAPE",
        "UNPACK",
        "SPLIT",
        "FILL",
        "BROADCAST_ARGS",
        "RANGE",
        "SELECT",
        "SELECT_V2",
        "EQUAL",
    ]
)
"""What models compute shapes with; their values are as good as known where their inputs' are."""


def mark_dynamic(graph: Graph) -> Graph:
    """The graph with `is_dynamic` set on every tensor whose shape depends on run-time values.

    What a dynamic tensor flows into is dynamic too. Values computed from SHAPE and RANK alone
    count as known, since they change only when the caller resizes an input.
    """
    dynamic = {i for i, t in graph.tensors.items() if t.is_dynamic}
    known = {i for i, t in graph.tensors.items() if t.is_const}
    for node in graph.nodes:
        reads = set(node.reads)
        if node.op in ("SHAPE", "RANK"):
            if dynamic.isdisjoint(reads):
                known.update(node.outputs)
        elif node.op in _ALWAYS or _has_unknown_shape(node, known) or dynamic & reads:
            dynamic.update(node.outputs)
        elif node.op in _ON_SHAPES and reads <= known:
            known.update(node.outputs)
    changed = [t for i, t in graph.tensors.items() if i in dynamic and not t.is_dynamic]
    return graph.with_(tensors=[replace(t, is_dynamic=True) for t in changed])


def _has_unknown_shape(node: Node, known: set[int]) -> bool:
    return any(
        node.has_input(position) and node.inputs[position] not in known
        for position in _SHAPE_INPUTS.get(node.op, ())
    )
