"""BATCH_MATMUL: batches that broadcast, either matrix transposed, constant or run-time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tflite_vk.device_info import DeviceInfo
from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import BatchMatMulAttributes
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.launch import Groups, fold
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.reduction import power_of_two
from tflite_vk.ops.registry import register
from tflite_vk.shape import (
    LANES,
    Shape,
    broadcast,
    ceil_div,
    num_elements,
    pad_rank,
    vectors_per_row,
)

_BATCH_RANK = 4
_LOCAL_SIZE = 64


@dataclass(frozen=True)
class Products:
    """Matrix products as the kernel sees them.

    Attributes:
        rows, columns, inner: sizes of one product.
        is_a_turned, is_b_turned: the matrix is stored transposed.
        batches: output batches, _BATCH_RANK of them.
        a_strides, b_strides: groups from matrix to matrix along each, 0 where one is broadcast.
    """

    rows: int
    columns: int
    inner: int
    is_a_turned: bool = False
    is_b_turned: bool = False
    batches: Shape = (1,) * _BATCH_RANK
    a_strides: tuple[int, ...] = (0,) * _BATCH_RANK
    b_strides: tuple[int, ...] = (0,) * _BATCH_RANK


@dataclass(frozen=True)
class Launch:
    """How the kernel is started for products.

    Attributes:
        local: local size.
        groups: workgroup counts.
        spec, push: the kernel's own constants.
        flops: operations.
    """

    local: Groups
    groups: Groups
    spec: tuple[int, ...]
    push: tuple[int, ...]
    flops: int


def launch_products(product: Products, ctx: LoweringContext) -> Launch:
    """Tile, grid and constants of the kernel for products."""
    tile, sharers = _choose_tile(product, ctx.device)
    groups, row_tiles = ceil_div(product.columns, LANES), ceil_div(product.rows, tile)
    tiles = num_elements(product.batches) * row_tiles * groups
    local = (max(1, _LOCAL_SIZE // sharers), sharers, 1)
    return Launch(
        local,
        fold(ceil_div(tiles, local[0]), ctx.limits),
        spec=(tile, int(product.is_a_turned), int(product.is_b_turned)),
        push=(
            tiles,
            groups,
            row_tiles,
            product.rows,
            product.columns,
            product.inner,
            ceil_div(product.rows if product.is_a_turned else product.inner, LANES),
            ceil_div(product.inner if product.is_b_turned else product.columns, LANES),
            *product.batches[1:],
            *product.a_strides,
            *product.b_strides,
        ),
        flops=2 * num_elements(product.batches) * product.rows * product.columns * product.inner,
    )


def lower_products(
    node: Node,
    ctx: LoweringContext,
    product: Products,
    buffers: tuple[int, int, int],
    shader: str = "batch_matmul",
) -> None:
    """Add the dispatch that multiplies the first two buffers into the third."""
    launch = launch_products(product, ctx)
    ctx.compute(
        node,
        shader,
        buffers[:2],
        buffers[2],
        local=launch.local,
        groups=launch.groups,
        spec=launch.spec,
        push=launch.push,
        flops=launch.flops,
    )


def _matrix_strides(shape: Shape) -> tuple[int, ...]:
    """Groups to step along each of _BATCH_RANK batch dimensions of an operand."""
    batches = pad_rank(shape[:-2], _BATCH_RANK)
    step = shape[-2] * vectors_per_row(shape)
    strides = []
    for size in reversed(batches):
        strides.append(0 if size == 1 else step)
        step *= size
    return tuple(reversed(strides))


def products_of(a: Shape, b: Shape, y: Shape, attributes: BatchMatMulAttributes) -> Products:
    """The products that BATCH_MATMUL of such tensors is."""
    rows, columns = y[-2:]
    inner = a[-2] if attributes.adj_x else a[-1]
    batches = pad_rank(y[:-2], _BATCH_RANK)
    a_strides, b_strides = _matrix_strides(a), _matrix_strides(b)
    if (
        not attributes.adj_x
        and not any(b_strides)
        and num_elements(a[:-2]) == num_elements(batches)
    ):
        # One matrix on the right for all batches: one product with as many rows as there are.
        rows *= num_elements(batches)
        batches, a_strides = (1,) * _BATCH_RANK, (0,) * _BATCH_RANK
    turned = attributes.adj_x, attributes.adj_y
    return Products(rows, columns, inner, *turned, batches, a_strides, b_strides)


def _choose_tile(product: Products, device: DeviceInfo) -> tuple[int, int]:
    """Rows of one invocation, and invocations that share its sums.

    A software driver is bound by loads: large tiles. A GPU wants many invocations.
    """
    outputs = num_elements(product.batches) * product.rows * ceil_div(product.columns, LANES)
    if device.is_software:
        return (1 if product.rows == 1 else 4 if product.rows <= 4 else 8), 1
    tile = 4 if outputs >= 1 << 16 and product.rows > 1 else 1
    k_groups = ceil_div(product.inner, LANES)
    wanted = ceil_div(1 << 15, ceil_div(outputs, tile))
    return tile, power_of_two(max(1, min(wanted, k_groups // 4, 16)))


@register
class BatchMatMul(Operator):
    """BATCH_MATMUL."""

    versions = {"BATCH_MATMUL": 4}
    ends_in_epilogue = True
    notes = "adj_x, adj_y; batches broadcast; either side may be constant"

    def check(self, node: Node, graph: Graph) -> str | None:
        tensors = [graph.input(node, i) for i in range(2)]
        if all(t.is_const for t in tensors):
            return "both inputs are constants"
        for i, tensor in enumerate(tensors):
            if tensor.dtype is not DType.FLOAT32:
                return f"input {i} is {tensor.dtype.name} (supported: FLOAT32)"
        return None

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape]:
        a, b = (graph.input(node, i).shape for i in range(2))
        attributes = node.attributes
        assert isinstance(attributes, BatchMatMulAttributes)
        if min(len(a), len(b)) < 2:
            raise ValueError(f"inputs {list(a)} and {list(b)} must be matrices or batches of them")
        rows, a_inner = reversed(a[-2:]) if attributes.adj_x else a[-2:]
        b_inner, columns = reversed(b[-2:]) if attributes.adj_y else b[-2:]
        if a_inner != b_inner:
            raise ValueError(f"inner sizes {a_inner} and {b_inner} of the products differ")
        batches = broadcast([a[:-2], b[:-2]])
        if batches is None:
            raise ValueError(f"batches {list(a[:-2])} and {list(b[:-2])} don't broadcast")
        return [(*batches, rows, columns)]

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        a, b = (ctx.graph.input(node, i) for i in range(2))
        y = ctx.graph.output(node)
        attributes = node.attributes
        assert isinstance(attributes, BatchMatMulAttributes)
        product = products_of(a.shape, b.shape, y.shape, attributes)
        lower_products(node, ctx, product, (ctx.buffer(a.id), ctx.buffer(b.id), ctx.buffer(y.id)))
