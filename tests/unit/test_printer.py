from __future__ import annotations

import numpy as np

from tflite_vk.dtypes import DType
from tflite_vk.ir import attributes as ir
from tflite_vk.ir.graph import Graph, Node, Quantization, Step, Tensor
from tflite_vk.ir.printer import format_attributes, format_graph

GOLDEN = """\
graph main
  inputs  %0 FLOAT32[1,8,8,3], %9 INT8[4]q(0.5,-3)
  CONV_2D #0 (of #0, #2)  %0 FLOAT32[1,8,8,3], %1 const FLOAT32[4,3,3,3], - -> %3 FLOAT32[1,8,8,4]  padding=VALID stride_w=2 | RELU6 | ADD %4 FLOAT32[4] | %5 const FLOAT32[] SUB | LEAKY_RELU alpha=0.1
  custom MyOperator #3  %3 FLOAT32[1,8,8,4], %6 var FLOAT32[2] -> %7 FLOAT32[dynamic], %8 INT8[]q(axis 1)  data=<20 bytes>
  outputs %7 FLOAT32[dynamic], %7 FLOAT32[dynamic]
  folded  %1 const FLOAT32[4,3,3,3] from #5, #6"""


def test_golden():
    f = DType.FLOAT32
    tensors = [
        Tensor(0, "x", (1, 8, 8, 3), f),
        Tensor(1, "k", (4, 3, 3, 3), f, data=np.zeros((4, 3, 3, 3), np.float32)),
        Tensor(3, "y", (1, 8, 8, 4), f),
        Tensor(4, "b", (4,), f),
        Tensor(5, "s", (), f, data=np.zeros((), np.float32)),
        Tensor(6, "v", (2,), f, is_variable=True),
        Tensor(7, "d", (1,), f, is_dynamic=True),
        Tensor(8, "c", (), DType.INT8, quantization=Quantization((1.0, 2.0), (0, 0), 1)),
        Tensor(9, "q", (4,), DType.INT8, quantization=Quantization((0.5,), (-3,))),
    ]
    steps = (
        Step("RELU6"),
        Step("ADD", operand=4),
        Step("SUB", operand=5, operand_first=True),
        Step("LEAKY_RELU", attributes=ir.LeakyReluAttributes(0.1)),
    )
    nodes = (
        Node(
            0,
            "CONV_2D",
            (0, 1, -1),
            (3,),
            ir.Conv2DAttributes(padding="VALID", stride_w=2),
            steps=steps,
            sources=(0, 2),
        ),
        Node(3, "MyOperator", (3, 6), (7, 8), ir.CustomAttributes(bytes(20)), is_custom=True),
    )
    graph = Graph("main", {t.id: t for t in tensors}, nodes, (0, 9), (7, 7), {1: (5, 6)})
    assert format_graph(graph) == GOLDEN


def test_attributes_of_every_kind():
    assert format_attributes(ir.ReshapeAttributes((1, -1))) == "new_shape=[1,-1]"
    assert format_attributes(ir.CastAttributes(DType.BOOL, DType.INT8)) == (
        "in_data_type=BOOL out_data_type=INT8"
    )
    assert format_attributes(ir.SoftmaxAttributes(beta=1 / 3)) == "beta=0.333333"
    assert format_attributes(ir.ReducerAttributes(keep_dims=True)) == "keep_dims=True"
    assert format_attributes(ir.NoAttributes()) == ""


def test_an_empty_graph():
    assert format_graph(Graph("", {}, (), (), ())) == "graph (unnamed)\n  inputs\n  outputs"
