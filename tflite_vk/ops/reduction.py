"""Lowering of reductions, for the reduction operators and for pools over whole images."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tflite_vk.device_info import DeviceInfo
from tflite_vk.ir.graph import Node
from tflite_vk.ops.axes import Walk, three
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.launch import fold
from tflite_vk.program import float_word
from tflite_vk.shape import (
    Shape,
    ceil_div,
    inner,
    num_vectors,
    padded_elements,
    vectors_per_row,
)

OP_CODES = {
    "SUM": 0,
    "MEAN": 0,
    "REDUCE_PROD": 1,
    "REDUCE_MAX": 2,
    "REDUCE_MIN": 3,
    "REDUCE_ANY": 2,
    "REDUCE_ALL": 3,
}

INTEGER_SHADERS = frozenset(
    {
        "reduce_i32",
        "reduce_u32",
        "reduce_i64",
        "reduce_i32_mean",
        *(f"reduce_{kept_as}{to}" for kept_as in ("i8", "u8", "i16") for to in ("", "_i32")),
    }
)

_LOCAL_SIZE = 128
"""Invocations of a workgroup: what every device takes."""
SOFTWARE_SHARERS = 8
"""A software driver pays for every barrier: one vector's width shares a reduction at most."""
_ENOUGH_INVOCATIONS = 1 << 14
"""With so many at work a device is busy, and a reduction isn't shared further."""
_MIN_SLICE = 64
"""Groups that one invocation of a software driver reduces before a second dispatch is worth it."""

# Of a GPU, found on an H200: the means of a style network's normalizations then take half the time of
# one workgroup for each output group. Smaller ones are bound by their launch: MobileNet's MEAN and
# SOFTMAX take what the shortest kernel takes, so that subgroup operations have nothing to gain there.
_GPU_INVOCATIONS = 256
"""Of a workgroup."""
_GPU_OUTPUTS = 8
"""Neighbouring groups of outputs that a workgroup makes: a row of 128 bytes."""
_GPU_WORKGROUPS = 132
"""So many keep it busy; a reduction with fewer is cut into slices."""
_GPU_MIN_SLICE = 4
"""Groups that one invocation reduces before that."""


@dataclass(frozen=True)
class Split:
    """How a reduction is shared.

    Attributes:
        sharers: invocations of one workgroup that share each reduction; a power of two.
        outputs: groups of outputs in one workgroup.
        slices: dispatch slices, joined by a second dispatch where more than one.
    """

    sharers: int
    outputs: int
    slices: int


def power_of_two(value: int) -> int:
    """Largest power of two <= value."""
    return 1 << (value.bit_length() - 1)


def split(outputs: int, count: int, device: DeviceInfo) -> Split:
    """Share reductions of `count` groups each, for so many groups of outputs."""
    if not device.is_software:
        return _gpu_split(outputs, count, device)
    whole = split_once(outputs, count, device)
    wanted = ceil_div(_ENOUGH_INVOCATIONS, outputs * whole.sharers)
    slices = min(wanted, count // (whole.sharers * _MIN_SLICE), 256)
    return replace(whole, slices=max(1, slices))


def split_once(outputs: int, count: int, device: DeviceInfo) -> Split:
    """As `split`, for what one dispatch has to do."""
    wanted = max(1, ceil_div(_ENOUGH_INVOCATIONS, outputs))
    most = SOFTWARE_SHARERS if device.is_software else _LOCAL_SIZE
    sharers = power_of_two(max(1, min(count, wanted, most)))
    per_workgroup = min(_LOCAL_SIZE // sharers, 1 << max(0, outputs - 1).bit_length())
    return Split(sharers, per_workgroup, slices=1)


def _gpu_split(outputs: int, count: int, device: DeviceInfo) -> Split:
    limits = device.limits
    most = min(_GPU_INVOCATIONS, limits.max_workgroup_invocations, *limits.max_workgroup_size[:2])
    per_workgroup = min(_GPU_OUTPUTS, 1 << max(0, outputs - 1).bit_length())
    sharers = power_of_two(max(1, min(count, most // per_workgroup)))
    wanted = ceil_div(_GPU_WORKGROUPS, ceil_div(outputs, per_workgroup))
    slices = min(wanted, count // (sharers * _GPU_MIN_SLICE), 256)
    return Split(sharers, per_workgroup, max(1, slices))


@dataclass(frozen=True)
class Reduction:
    """One reduction as the kernel's push constants name it.

    Attributes:
        op: code of OP_CODES.
        plan: dimensions of the source.
        result: shape of the output, or of anything laid out like it.
        first: group of the source where the reduced box begins.
        scale: factor on the result, where it is float.
        divisor: of the result of 64-bit sums, below 2^31; cut off toward zero.
    """

    op: int
    plan: Walk
    result: Shape
    first: int = 0
    scale: float = 1.0
    divisor: int = 1


def lower_reduction(
    ctx: LoweringContext,
    node: Node,
    reduction: Reduction,
    source: int,
    output: int,
    *,
    is_wide: bool = False,
) -> None:
    """Add the dispatches of a reduction whose output is float32 and ends in the epilogue.

    Args:
        ctx: the context.
        node: the node.
        reduction: what is reduced.
        source: buffer to reduce.
        output: buffer of the output.
        is_wide: the source is float32 in fp16 mode too.
    """
    groups = num_vectors(reduction.result)
    count = reduction.plan.count
    how = split(groups, count, ctx.device)
    if how.slices == 1:
        shader = "reduce_final" if ctx.half and is_wide else "reduce"
        _dispatch(ctx, node, shader, reduction, how, source, output)
        return
    partial = ctx.temporary(how.slices * groups * 4, "partial reduction")
    first_half = replace(reduction, scale=1.0)
    with ctx.precision(half=ctx.half and not is_wide):
        shader = "reduce_partial" if ctx.half else "reduce"
        _dispatch(ctx, replace(node, steps=()), shader, first_half, how, source, partial)
    row_groups = vectors_per_row(reduction.result)
    joined = Walk(
        kept=((groups // row_groups, row_groups),),
        reduced=((how.slices, groups),),
        is_inner_reduced=False,
        row_groups=1,
        tail=0,
    )
    second_half = replace(reduction, plan=joined, first=0)
    shader = "reduce_final" if ctx.half else "reduce"
    whole = split_once(groups, how.slices, ctx.device)
    _dispatch(ctx, node, shader, second_half, whole, partial, output)


def _dispatch(
    ctx: LoweringContext,
    node: Node,
    shader: str,
    reduction: Reduction,
    how: Split,
    source: int,
    output: int,
) -> None:
    plan = reduction.plan
    groups = num_vectors(reduction.result)
    kept_sizes, kept_strides = three(plan.kept)
    reduced_sizes, reduced_strides = three(plan.reduced)
    x, y, _ = fold(ceil_div(groups, how.outputs), ctx.limits)
    local = (how.sharers, how.outputs) if plan.is_inner_reduced else (how.outputs, how.sharers)
    spec = (reduction.op, int(plan.is_inner_reduced), plan.tail)
    is_integer = shader in INTEGER_SHADERS
    push = (
        groups,
        vectors_per_row(reduction.result),
        inner(reduction.result),
        reduction.first,
        *kept_sizes[1:],
        *kept_strides,
        *reduced_sizes[1:],
        *reduced_strides,
        plan.row_groups,
        plan.count,
        max(1, ceil_div(plan.count, how.slices)),
        reduction.divisor if is_integer else float_word(reduction.scale),
    )
    flops = plan.count * padded_elements(reduction.result)
    sizes = (x, y, how.slices)
    if is_integer:
        ctx.dispatch(
            node,
            shader,
            [source, output],
            groups=sizes,
            spec=(*local, 1, *spec),
            push=push,
            flops=flops,
        )
        return
    ctx.compute(
        node,
        shader,
        [source],
        output,
        local=(*local, 1),
        groups=sizes,
        spec=spec,
        push=push,
        flops=flops,
    )


def lower_integer_reduction(
    ctx: LoweringContext, node: Node, shader: str, reduction: Reduction, source: int, output: int
) -> None:
    """Add the dispatch of a reduction of integers or booleans."""
    how = split_once(num_vectors(reduction.result), reduction.plan.count, ctx.device)
    _dispatch(ctx, node, shader, reduction, how, source, output)
