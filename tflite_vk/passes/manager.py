"""The passes in order. Each returns a new graph; the verifier runs between them."""

from __future__ import annotations

from collections.abc import Callable

from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ir.verify import verify_graph
from tflite_vk.passes.dequantize_inputs import dequantize_inputs
from tflite_vk.passes.fuse_elementwise import fuse_elementwise
from tflite_vk.passes.remove_no_ops import remove_no_ops
from tflite_vk.passes.rename_stablehlo import rename_stablehlo
from tflite_vk.passes.split_activations import split_activations
from tflite_vk.passes.split_sums import split_sums
from tflite_vk.passes.to_elementwise import to_elementwise


def run_passes(
    graph: Graph, ends_in_epilogue: Callable[[Node, Graph], bool], *, fusion: bool = True
) -> Graph:
    """Rewrite a graph for lowering.

    Args:
        graph: constants already folded.
        ends_in_epilogue: True for a node whose kernel applies fused steps to output 0.
        fusion: False keeps one kernel an operator, to find a fault or to compare.
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
    for rewrite in passes:
        graph = rewrite(graph)
        verify_graph(graph)
    return graph
