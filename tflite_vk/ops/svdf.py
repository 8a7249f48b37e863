"""SVDF, float: a dense layer of low rank with a memory of past inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tflite_vk.epilogue import ACTIVATION_STEPS
from tflite_vk.ir.attributes import SvdfAttributes
from tflite_vk.ir.graph import Graph, Node, Step
from tflite_vk.layout import pack, words_for
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.lstm_weights import Floats, constant
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.registry import register
from tflite_vk.ops.sequences import check_states, input_products
from tflite_vk.shape import Shape, num_vectors, vectors_per_row

_STATE = 4


class _Parts(NamedTuple):
    """Constants of a node: [filters, inputs], [filters, memory], [units]."""

    features: npt.NDArray[np.float32]
    times: npt.NDArray[np.float32]
    bias: npt.NDArray[np.float32]
    rank: int


@register
class Svdf(Operator):
    """SVDF.

    Source: EvalFloatSVDF of tflite/kernels/internal/reference/svdf.h.
    """

    versions = {"SVDF": 4}
    notes = "float; constant weights"

    def check(self, node: Node, graph: Graph) -> str | None:
        return "its input is a constant" if graph.input(node, 0).is_const else None

    def _matrix(self, node: Node, graph: Graph, position: int) -> Floats | None:
        return constant(node, graph, position)

    def _products(self, node: Node, ctx: LoweringContext, features: Floats, rows: int) -> int:
        """Add the dispatches that multiply the inputs with the features' weights, in float32."""
        return input_products(node, ctx, ctx.buffer(node.inputs[0]), features, rows)

    def _read(self, node: Node, graph: Graph) -> _Parts:
        """Everything about a node.

        Raises:
            ValueError: a part that is missing, not constant, no float, or doesn't fit.
        """
        a = node.attributes
        assert isinstance(a, SvdfAttributes)
        shape = graph.input(node, 0).shape
        features, times = (self._matrix(node, graph, i) for i in (1, 2))
        if len(shape) != 2 or features is None or times is None:
            raise ValueError(f"input has shape {list(shape)} (supported: rank 2)")
        filters = features.shape[0]
        if features.shape != (filters, shape[1]) or times.ndim != 2 or times.shape[0] != filters:
            raise ValueError(
                f"weights {list(features.shape)} and {list(times.shape)} don't fit {list(shape)}"
            )
        if a.rank < 1 or filters % a.rank:
            raise ValueError(f"rank {a.rank} doesn't divide {filters} filters")
        units = filters // a.rank
        bias = constant(node, graph, 3)
        if bias is not None and bias.shape != (units,):
            raise ValueError(f"bias has shape {list(bias.shape)} for {units} units")
        check_states(node, graph, {_STATE: (shape[0], filters * times.shape[1])})
        zeros = np.zeros(units, np.float32)
        return _Parts(features, times, zeros if bias is None else bias, a.rank)

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape]:
        parts = self._read(node, graph)
        return [(graph.input(node, 0).shape[0], parts.features.shape[0] // parts.rank)]

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        parts = self._read(node, ctx.graph)
        a = node.attributes
        assert isinstance(a, SvdfAttributes)
        state, y = ctx.graph.input(node, _STATE), ctx.graph.output(node)
        filters, memory = parts.times.shape
        groups = num_vectors(state.shape)
        newest = self._products(node, ctx, parts.features, y.shape[0])
        before, after = ctx.kept(state.id)
        moved = after
        if before == after:  # values move past each other: not in place
            moved = ctx.temporary(words_for(state.shape, ctx.storage(state)), "moved state")
        ctx.dispatch_flat(
            node,
            ctx.variant("svdf_state"),
            [before, newest, moved],
            invocations=groups,
            push=(
                groups,
                vectors_per_row(state.shape),
                memory,
                filters,
                vectors_per_row((filters,)),
            ),
        )
        if moved != after:
            plain = replace(node, steps=())
            push = (groups, vectors_per_row(state.shape))
            ctx.compute_flat(plain, "elementwise", [moved], after, invocations=groups, push=push)
        activation = a.fused_activation_function
        steps = () if activation == "NONE" else (Step(ACTIVATION_STEPS[activation]),)
        ctx.compute_flat(
            replace(node, steps=steps),
            "svdf",
            [
                moved,
                ctx.constant(pack(parts.times, "f32"), "time weights"),
                ctx.constant(pack(parts.bias, "f32"), "bias"),
            ],
            ctx.buffer(y.id),
            invocations=num_vectors(y.shape),
            push=(
                num_vectors(y.shape),
                vectors_per_row(y.shape),
                y.shape[1],
                vectors_per_row(state.shape),
                memory,
                vectors_per_row(parts.times.shape),
                parts.rank,
            ),
            flops=2 * y.shape[0] * filters * memory,
        )
