"""Quantizing activations while running, and what becomes of the sums of their products.

Source: PortableSymmetricQuantizeFloats, PortableAsymmetricQuantizeFloats and MatrixBatchVectorMultiply-
Accumulate of tflite/kernels/internal/reference/portable_tensor_utils.cc.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tflite_vk.dtypes import DType
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.conv_weights import bias_buffer
from tflite_vk.ops.fully_connected import FEW_ROWS
from tflite_vk.ops.quantized.fully_connected import lower_rows, rows_product
from tflite_vk.ops.quantized.product import lower_raw
from tflite_vk.ops.quantized.weights import Ints, check_scales
from tflite_vk.ops.reduction import SOFTWARE_SHARERS
from tflite_vk.shape import LANES, Shape, ceil_div, num_vectors, round_up

INT8_OR_INT4 = frozenset({DType.INT8, DType.INT4})

_LOCAL_SIZE = 128
_PART = 2048
"""Groups of a row that one workgroup quantizes, and that it finds the range of by itself."""
_MOST_PARTS = 64
"""Ranges that every workgroup joins at most."""


@dataclass(frozen=True)
class Rows:
    """Activations that were quantized while running.

    Attributes:
        values: buffer of int8 values.
        found: buffer with scale and zero point of each row.
        num_groups: groups of four lanes in the input.
        count: rows.
    """

    values: int
    found: int
    count: int


def check_hybrid(
    graph: Graph,
    node: Node,
    axis: int,
    filters: frozenset[DType] = frozenset({DType.INT8}),
    data_at: int = 0,
    bias_at: int = 2,
) -> str | None:
    """Reason where filter and bias are none that TFLite quantizes float activations for.

    Args:
        graph: the graph.
        node: its data is multiplied with the constant input 1.
        axis: the filter's dimension of output channels.
        filters: types of integers that TFLite has kernels for.
        data_at: position of the data.
        bias_at: position of the bias.
    """
    weights, bias = graph.input(node, 1), graph.optional_input(node, bias_at)
    if graph.input(node, data_at).is_const:
        return "its input is a constant"
    if weights.dtype not in filters:
        names = ", ".join(sorted(t.name for t in {DType.FLOAT32, *filters}))
        return f"filter is {weights.dtype.name} (supported: {names})"
    if not weights.is_const:
        return "filter of integers is known only while running (supported: a constant)"
    if bias is not None and bias.dtype is not DType.FLOAT32:
        return f"bias is {bias.dtype.name} (supported: FLOAT32)"
    return check_scales(weights, axis)


def quantize_rows(
    ctx: LoweringContext, node: Node, source: int, shape: Shape, rows: int, *, is_asymmetric: bool
) -> Rows:
    """Add the dispatches that quantize each row of a float tensor.

    Args:
        ctx: the program being made.
        node: the node.
        source: buffer of the tensor.
        shape: its shape.
        rows: how many parts are quantized by themselves, each a whole number of lines.
        is_asymmetric: with a zero point.
    """
    groups = num_vectors(shape)
    row_groups = groups // rows
    parts = min(_MOST_PARTS, ceil_div(row_groups, _PART))
    part_groups = ceil_div(row_groups, parts)
    parts = ceil_div(row_groups, part_groups)
    most = SOFTWARE_SHARERS if ctx.device.is_software else _LOCAL_SIZE
    local = (min(most, 1 << (part_groups - 1).bit_length()), 1, 1)
    z = ceil_div(rows, ctx.limits.max_workgroup_count[1])
    grid = (parts, ceil_div(rows, z), z)
    spec = (*local, parts if parts > 1 else 0, int(is_asymmetric), shape[-1] % LANES)
    push = (rows, row_groups, ceil_div(shape[-1], LANES), part_groups)
    ranges = ctx.unused()
    if parts > 1:
        ranges = ctx.temporary(rows * parts * LANES, "ranges of activations")
        shader = ctx.variant("hybrid_range")
        ctx.dispatch(node, shader, [source, ranges], groups=grid, spec=spec, push=push)
    values = ctx.temporary(groups, "quantized activations")
    found = ctx.temporary(rows * LANES, "scales of activations")
    ctx.dispatch(
        node,
        ctx.variant("hybrid_quantize"),
        [source, ranges, values, found],
        groups=grid,
        spec=spec,
        push=push,
        flops=groups * LANES,
    )
    return Rows(values, found, rows)


def products_of_rows(
    ctx: LoweringContext,
    node: Node,
    source: int,
    matrix: Ints,
    scales: npt.NDArray[np.float32],
    count: int,
    *,
    is_asymmetric: bool,
) -> int:
    """Add the dispatches that quantize rows of floats and multiply them by an int8 matrix.

    Args:
        ctx: the program being made.
        node: the node.
        source: buffer of the rows.
        matrix: [units, inputs], the units in whole groups.
        scales: of the units.
        count: rows.
        is_asymmetric: quantize with a zero point.

    Returns:
        The buffer of the products [rows, units], float32 whatever the rows are kept in.
    """
    units, inputs = matrix.shape
    rows = quantize_rows(ctx, node, source, (count, inputs), count, is_asymmetric=is_asymmetric)
    sums = ctx.temporary(count * units, "sums of the inputs")
    buffers, values = (rows.values, rows.found, sums), matrix[:, None, :]
    if count >= FEW_ROWS:
        lower_raw(ctx, node, rows_product(count, inputs, units), buffers, values)
    else:
        lower_rows(ctx, node, "_raw", buffers, count, values, spec=(0, 0, 0), push=(0,) * 6)
    products = ctx.temporary(count * units, "products of the inputs")
    bias = ctx.constant(np.zeros(units, np.float32), "no bias")
    with ctx.precision(half=False):
        scale_into(
            ctx,
            replace(node, steps=()),
            rows,
            (sums, bias, products),
            scales,
            matrix.sum(axis=1),
            groups=count * units // LANES,
            scales_first=True,
        )
    return products


def padded_rows(matrix: npt.NDArray[np.generic]) -> Ints:
    """A matrix [units, inputs] of integers with rows of zeros up to whole groups."""
    padded = np.zeros((round_up(matrix.shape[0], LANES), matrix.shape[1]), np.int64)
    padded[: matrix.shape[0]] = matrix
    return padded


def integers_of(node: Node, graph: Graph, position: int) -> npt.NDArray[np.float32] | None:
    """The integers of an optional constant int8 input with one scale, as floats.

    Raises:
        ValueError: it is something else.
    """
    tensor = graph.optional_input(node, position)
    if tensor is None:
        return None
    if tensor.data is None or tensor.dtype is not DType.INT8:
        kind = "run-time" if tensor.data is None else "constant"
        raise ValueError(
            f"input {position} is a {kind} {tensor.dtype.name} (supported: constant INT8)"
        )
    if tensor.quantization is None or not tensor.quantization.is_per_tensor:
        raise ValueError(f"input {position} is INT8 without a scale of its own")
    if (reason := check_scales(tensor, 0)) is not None:
        raise ValueError(reason)
    return np.asarray(tensor.data, np.float32)


def scale_of(node: Node, graph: Graph, position: int) -> np.float32:
    """The scale of such an input."""
    q = graph.input(node, position).quantization
    assert q is not None
    return np.float32(q.scale[0])


def scale_sums(
    ctx: LoweringContext,
    node: Node,
    rows: Rows,
    sums: int,
    sums_of_weights: Ints,
    *,
    scales_first: bool,
    bias_at: int = 2,
) -> None:
    """Add the dispatch that makes the output of the sums.

    Args:
        ctx: the program being made.
        node: the node.
        rows: what the sums were made of.
        sums: buffer of int32 sums in the output's shape.
        sums_of_weights: for each output channel, that the zero point has been multiplied with.
        scales_first: multiply the scales with each other first.
        bias_at: position of the bias.
    """
    weights, output = ctx.graph.input(node, 1), ctx.graph.output(node)
    channels, groups = output.shape[-1], num_vectors(output.shape)
    assert weights.quantization is not None
    scales = np.broadcast_to(np.asarray(weights.quantization.scale, np.float32), channels)
    scale_into(
        ctx,
        node,
        rows,
        (sums, bias_buffer(ctx, node, channels, bias_at), ctx.buffer(output.id)),
        scales,
        sums_of_weights,
        groups=groups,
        scales_first=scales_first,
    )


def scale_into(
    ctx: LoweringContext,
    node: Node,
    rows: Rows,
    buffers: tuple[int, int, int],
    scales: npt.NDArray[np.float32],
    sums_of_weights: Ints,
    *,
    groups: int,
    scales_first: bool,
) -> None:
    """Add the dispatch that makes reals of sums.

    Args:
        ctx: the program being made.
        node: the node.
        rows: what the sums were made of.
        buffers: int32 sums, bias, target.
        scales: of the weights, for each output channel.
        sums_of_weights: for each output channel, that the zero point has been multiplied with.
        groups: of four lanes in the target.
        scales_first: multiply the scales with each other first.
    """
    channels = len(scales)
    words = np.zeros((2, round_up(channels, LANES)), np.int32)
    words[0, :channels] = np.ascontiguousarray(scales).view(np.int32)
    words[1, :channels] = sums_of_weights
    by_group = words.reshape(2, -1, LANES).transpose(1, 0, 2)
    sums, bias, target = buffers
    ctx.compute_flat(
        node,
        "hybrid_scale",
        [sums, rows.found, ctx.constant(by_group, f"{node.op}/scales"), bias],
        target,
        invocations=groups,
        spec=(int(scales_first),),
        push=(groups, ceil_div(channels, LANES), groups // rows.count),
        flops=2 * groups * LANES,
    )
