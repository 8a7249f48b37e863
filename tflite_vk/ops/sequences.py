"""What the recurrent operators share: sequences, states, and the product of all inputs at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tflite_vk.device_info import DeviceInfo
from tflite_vk.epilogue import ACTIVATION_STEPS, UNARY_CODES
from tflite_vk.ir.attributes import Activation
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.layout import pack
from tflite_vk.ops.batch_matmul import Products, lower_products
from tflite_vk.ops.context import LoweringContext
from tflite_vk.shape import LANES, Shape, ceil_div, num_elements, round_up

_MAX_LOCAL_SIZE = 256
_SOFTWARE_LOCAL_SIZE = 16


@dataclass(frozen=True)
class Sequences:
    """A batch of sequences.

    Attributes:
        steps: length of each.
        count: how many.
        time_major: steps before sequences.
    """

    steps: int
    count: int
    time_major: bool

    @classmethod
    def of(cls, shape: Shape, *, time_major: bool) -> Sequences:
        """Of an input [batch, time, inputs], or [time, batch, inputs], or [batch, inputs]."""
        if len(shape) == 2:
            return cls(1, shape[0], time_major=False)
        steps, count = shape[:2] if time_major else (shape[1], shape[0])
        return cls(steps, count, time_major)

    @property
    def strides(self) -> tuple[int, int]:
        """Rows from step to step, and from sequence to sequence."""
        return (self.count, 1) if self.time_major else (1, self.steps)


@dataclass(frozen=True)
class Target:
    """Where a direction's outputs go.

    Attributes:
        buffer: of the output tensor.
        row_groups: groups of one of its rows.
        first: group of the row where they begin.
        is_reverse: the direction walks the steps from the last.
    """

    buffer: int
    row_groups: int
    first: int = 0
    is_reverse: bool = False


def local_size(groups: int, device: DeviceInfo) -> int:
    """Invocations, a power of two, of a workgroup that walks a sequence with so many groups a step."""
    most = min(_MAX_LOCAL_SIZE, device.limits.max_workgroup_invocations)
    if device.is_software:
        most = _SOFTWARE_LOCAL_SIZE
    return int(1 << min(most.bit_length() - 1, max(1, groups - 1).bit_length()))


def activation_code(activation: Activation) -> int:
    """Number of an activation in lstm.comp and rnn.comp."""
    return 0 if activation == "NONE" else UNARY_CODES[ACTIVATION_STEPS[activation]]


def input_products(
    node: Node,
    ctx: LoweringContext,
    source: int,
    weights: npt.NDArray[np.float32],
    rows: int,
) -> int:
    """Add the dispatch that multiplies rows of inputs by weights [units, inputs].

    Returns:
        The buffer of the products [rows, units], float32.
    """
    units, inputs = weights.shape
    matrix = ctx.constant(pack(weights, "f16" if ctx.half else "f32"), "input weights")
    products = ctx.temporary(rows * round_up(units, LANES), "products of the inputs")
    shader = "batch_matmul_wide" if ctx.half else "batch_matmul"
    product = Products(rows, units, inputs, is_b_turned=True)
    lower_products(replace(node, steps=()), ctx, product, (source, matrix, products), shader)
    return products


def check_states(node: Node, graph: Graph, shapes: Mapping[int, Shape]) -> None:
    """Raise ValueError where a state, by position, is no variable of its shape."""
    for position, shape in shapes.items():
        state = graph.optional_input(node, position)
        if state is None or not state.is_variable:
            raise ValueError(f"input {position} is no variable (supported: the state kept there)")
        if num_elements(state.shape) != num_elements(shape) or state.shape[-1:] != shape[-1:]:
            raise ValueError(f"state {list(state.shape)} at input {position}, {list(shape)} fits")


def check_directions(node: Node, forward: int, *, merge: bool) -> None:
    """Raise ValueError where the outputs of two directions can't be written.

    Args:
        node: a bidirectional operator.
        forward: outputs of the forward direction.
        merge: both stand side by side in one tensor.
    """
    if len(node.outputs) != (1 if merge else 2):
        raise ValueError(f"has {len(node.outputs)} outputs, merge_outputs is {merge}")
    if merge and forward % LANES:
        raise ValueError(f"{forward} forward outputs are merged (supported: multiples of {LANES})")


def direction_targets(
    node: Node, ctx: LoweringContext, forward: int, backward: int
) -> tuple[Target, Target]:
    """Where the directions of a bidirectional operator write."""
    buffers = [ctx.buffer(t) for t in node.outputs]
    groups = ceil_div(forward, LANES), ceil_div(backward, LANES)
    if len(buffers) == 1:
        row = sum(groups)
        return Target(buffers[0], row), Target(buffers[0], row, groups[0], is_reverse=True)
    return Target(buffers[0], groups[0]), Target(buffers[1], groups[1], is_reverse=True)
