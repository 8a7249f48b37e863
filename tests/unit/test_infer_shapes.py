from __future__ import annotations

from dataclasses import replace

import pytest

from tflite_vk.dtypes import DType
from tflite_vk.ir.graph import Graph, Node, Tensor
from tflite_vk.passes.infer_shapes import infer_shapes, with_shape

F = DType.FLOAT32


def chain(*ops):
    tensors = {
        i: Tensor(i, f"t{i}", (2, 3), F, shape_signature=(-1, 3)) for i in range(len(ops) + 1)
    }
    nodes = tuple(Node(i, op, (i,), (i + 1,)) for i, op in enumerate(ops))
    return Graph("g", tensors, nodes, (0,), (len(ops),))


def infer(node, graph):
    """A registry of three operators."""
    shape = graph.input(node, 0).shape
    match node.op:
        case "SAME":
            return [shape]
        case "DOUBLE":
            return [(shape[0] * 2, *shape[1:])]
        case "EVEN":
            if shape[0] % 2:
                raise ValueError(f"{shape[0]} is odd")
            return [shape]
        case "BROKEN":
            raise IndexError
    return None


def shapes(graph):
    return [graph.tensors[i].shape for i in sorted(graph.tensors)]


def test_shapes_follow_from_the_input():
    graph = infer_shapes(chain("SAME", "DOUBLE", "SAME"), infer, {0: (5, 7)})
    assert shapes(graph) == [(5, 7), (5, 7), (10, 7), (10, 7)]
    assert graph.tensors[3].shape_signature == (-1, 3)


def test_shapes_in_the_file_may_be_wrong():
    assert shapes(infer_shapes(chain("DOUBLE", "SAME"), infer)) == [(2, 3), (4, 3), (4, 3)]


def test_the_graph_given_is_not_changed():
    graph = chain("DOUBLE")
    infer_shapes(graph, infer, {0: (5, 7)})
    assert shapes(graph) == [(2, 3), (2, 3)]


@pytest.mark.parametrize("op", ["UNKNOWN", "BROKEN"])
def test_what_can_not_be_told(op):
    graph = chain(op, "SAME")
    assert shapes(infer_shapes(graph, infer)) == [(2, 3)] * 3
    assert not infer_shapes(graph, infer).tensors[1].is_dynamic
    assert infer_shapes(graph, infer, {0: (4, 3)}).tensors[1].is_dynamic


def test_a_misfit():
    with pytest.raises(ValueError, match="EVEN #1: 3 is odd"):
        infer_shapes(chain("SAME", "EVEN"), infer, {0: (3, 3)})
    # In the file's own shapes it is the check for support that tells.
    odd = chain("EVEN")
    odd = odd.with_(tensors=[replace(odd.tensors[0], shape=(3, 3))])
    assert shapes(infer_shapes(odd, infer)) == [(3, 3), (2, 3)]


def test_a_signature_of_another_rank_is_dropped():
    tensor = chain("SAME").tensors[0]
    assert with_shape(tensor, (1, 3)).shape_signature == (-1, 3)
    assert with_shape(tensor, (3,)).shape_signature is None
