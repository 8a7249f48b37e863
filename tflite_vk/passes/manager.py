"""The passes in order. Each returns a new graph; the verifier runs between them."""

from __future__ import annotations

from collections.abc import Callable

from tflite_vk.ir.graph import Graph
from tflite_vk.ir.verify import verify_graph
from tflite_vk.passes.dequantize_inputs import dequantize_inputs
from tflite_vk.passes.fuse_elementwise import fuse_elementwise
from tflite_vk.passes.fuse_separable import PairQuestion, fuse_separable
from tflite_vk.passes.fuse_tables import Question, fuse_tables
from tflite_vk.passes.remove_no_ops import remove_no_ops
from tflite_vk.passes.rename_stablehlo import rename_stablehlo
from tflite_vk.passes.split_activations import split_activations
from tflite_vk.passes.split_sums import split_sums
from tflite_vk.passes.to_elementwise import to_elementwise


def run_passes(
    graph: Graph,
    ends_in_epilogue: Question,
    *,
    fusion: bool = True,
    is_table: Question | None = None,
    takes_table: Question | None = None,
    joins: PairQuestion | None = None,
) -> Graph:
    """Rewrite a graph for lowering.

    Args:
        graph: constants already folded.
        ends_in_epilogue: True for a node whose kernel applies fused steps to output 0.
        fusion: False keeps one kernel an operator, to find a fault or to compare.
        is_table: True for a function of one 8-bit value.
        takes_table: True for a node whose kernel maps its results through a table. Where either is
            None, no such functions are fused.
        joins: True where one kernel for a depthwise convolution and the convolution behind it is faster
            on the device; None for never.
    """
    passes: list[Callable[[Graph], Graph]] = [
        rename_stablehlo,
        dequantize_inputs,
        lambda g: split_activations(g, ends_in_epilogue),
        split_sums,
        remove_no_ops,
        to_elementwise,
    ]
    if fusion:
        passes.append(lambda g: fuse_elementwise(g, ends_in_epilogue))
        if is_table is not None and takes_table is not None:
            passes.append(lambda g: fuse_tables(g, is_table, takes_table))
        if joins is not None:
            # Last: by now either part has all the elementwise steps that it can have.
            passes.append(lambda g: fuse_separable(g, joins))
    for rewrite in passes:
        graph = rewrite(graph)
        verify_graph(graph)
    return graph
