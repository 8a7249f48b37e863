"""Each rule of the verifier, broken once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tflite_vk.dtypes import DType
from tflite_vk.errors import Error
from tflite_vk.ir.graph import Graph, Node, Quantization, Step, Tensor
from tflite_vk.ir.verify import RULES, GraphError, verify_graph


def graph():
    weights = np.zeros((2, 3), np.float32)
    tensors = [
        Tensor(0, "x", (2, 3), DType.FLOAT32),
        Tensor(1, "w", (2, 3), DType.FLOAT32, data=weights),
        Tensor(2, "m", (2, 3), DType.FLOAT32),
        Tensor(3, "y", (2, 3), DType.FLOAT32),
        Tensor(4, "v", (2, 3), DType.FLOAT32, is_variable=True),
        Tensor(5, "folded", (3,), DType.FLOAT32, data=np.zeros(3, np.float32)),
    ]
    nodes = (
        Node(0, "ADD", (0, 1), (2,), steps=(Step("RELU"), Step("MUL", operand=5))),
        Node(1, "MUL", (2, 4), (3,)),
    )
    return Graph("g", {t.id: t for t in tensors}, nodes, (0,), (3,), {5: (7,)})


def with_tensor(g, index, **fields):
    return g.with_(tensors=[replace(g.tensors[index], **fields)])


def with_node(g, index, **fields):
    nodes = list(g.nodes)
    nodes[index] = replace(nodes[index], **fields)
    return g.with_(nodes=nodes)


def test_a_good_graph():
    verify_graph(graph())


BREAKAGES = [
    (
        "a tensor stands under its own id",
        lambda g: replace(g, tensors={**g.tensors, 9: g.tensors[0]}),
        "tensor 0 stands under id 9",
    ),
    (
        "every tensor named is there",
        lambda g: with_node(g, 1, inputs=(2, 77)),
        "MUL #1 names tensor 77",
    ),
    (
        "every tensor named is there",
        lambda g: replace(g, inputs=(0, -1)),
        "graph inputs names tensor -1",
    ),
    (
        "every tensor named is there",
        lambda g: with_node(g, 0, steps=(Step("ADD", operand=40),)),
        "ADD #0 names tensor 40",
    ),
    (
        "shapes have no negative dimension",
        lambda g: with_tensor(g, 2, shape=(2, -1)),
        r"tensor 2 has shape \[2, -1\]",
    ),
    (
        "shapes have no negative dimension",
        lambda g: with_tensor(g, 0, shape_signature=(-1,)),
        "tensor 0 has rank 2, its signature 1",
    ),
    (
        "a constant holds its shape and type",
        lambda g: with_tensor(g, 1, shape=(3, 2)),
        r"tensor 1 of shape \[3, 2\] holds \[2, 3\]",
    ),
    (
        "a constant holds its shape and type",
        lambda g: with_tensor(g, 1, dtype=DType.INT32),
        "tensor 1 of INT32 holds float32",
    ),
    (
        "a constant holds its shape and type",
        lambda g: with_tensor(g, 1, is_variable=True),
        "both constant and variable",
    ),
    (
        "scales and zero points match the shape",
        lambda g: with_tensor(g, 0, quantization=Quantization((1.0,), ())),
        "tensor 0: 1 scales, 0 zero points",
    ),
    (
        "scales and zero points match the shape",
        lambda g: with_tensor(g, 0, quantization=Quantization((1.0, 1.0), (0, 0), 1)),
        "tensor 0: 2 scales for 3 slices",
    ),
    (
        "scales and zero points match the shape",
        lambda g: with_tensor(g, 0, quantization=Quantization((1.0, 1.0), (0, 0), 2)),
        "quantized axis 2 of rank 2",
    ),
    (
        "a tensor has one writer",
        lambda g: with_node(g, 1, outputs=(2,)),
        "MUL #1 and ADD #0 write tensor 2",
    ),
    (
        "a tensor has one writer",
        lambda g: with_node(g, 1, outputs=(1,)),
        "MUL #1 writes constant 1",
    ),
    (
        "a tensor has one writer",
        lambda g: with_node(g, 1, outputs=(0,)),
        "MUL #1 writes graph input 0",
    ),
    (
        "nodes stand in execution order",
        lambda g: g.with_(nodes=g.nodes[::-1]),
        "MUL #1 reads tensor 2 before anything writes it",
    ),
    (
        "nodes stand in execution order",
        lambda g: g.with_(nodes=g.nodes[:1]),
        "nothing writes graph output 3",
    ),
    (
        "fused steps broadcast to the output",
        lambda g: with_tensor(g, 5, shape=(4,), data=np.zeros(4, np.float32)),
        r"operand 5 \[4\] of step MUL does not broadcast to \[2, 3\]",
    ),
    (
        "fused steps broadcast to the output",
        lambda g: with_node(g, 0, steps=(Step("RELU", operand_first=True),)),
        "step RELU puts an absent operand first",
    ),
    (
        "folded tensors are constants",
        lambda g: g.with_(folded={2: (7,)}),
        "folded tensor 2 is no constant",
    ),
]


@pytest.mark.parametrize(("rule", "breakage", "match"), BREAKAGES)
def test_broken(rule, breakage, match):
    with pytest.raises(GraphError, match=match) as caught:
        verify_graph(breakage(graph()))
    assert f"graph 'g' breaks rule '{rule}'" in str(caught.value)
    assert "please report it" in str(caught.value)
    assert isinstance(caught.value, Error)


def test_every_rule_is_broken_once():
    assert {rule for rule, _, _ in BREAKAGES} == set(RULES)


@pytest.mark.parametrize(
    ("dtype", "numpy"),
    [(DType.INT4, np.int8), (DType.UINT4, np.uint8), (DType.BFLOAT16, np.uint16)],
)
def test_constants_of_types_that_numpy_lacks(dtype, numpy):
    g = graph()
    data = np.zeros((2, 3), numpy)
    verify_graph(with_tensor(g, 1, dtype=dtype, data=data))
    with pytest.raises(GraphError):
        verify_graph(with_tensor(g, 1, dtype=dtype, data=data.astype(np.float32)))
