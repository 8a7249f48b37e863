"""Shape arithmetic against LiteRT's reference kernels."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.oracle import reference
from tflite_vk.dtypes import DType
from tflite_vk.frontend.flatbuffer import read_model
from tflite_vk.ir import attributes as ir
from tflite_vk.ir.verify import verify_graph
from tflite_vk.passes.fold_shapes import MAX_ELEMENTS, fold_shape_node
from tflite_vk.passes.infer_shapes import infer_shapes
from tflite_vk.testing import ModelWriter

A = np.array([7, -3, 5], np.int32)
B = np.array([2, 2, -2], np.int32)
M = np.arange(6, dtype=np.int32).reshape(2, 3)
KEEP = ir.ReducerAttributes(keep_dims=True)
DROP = ir.ReducerAttributes()


def strided(**masks):
    return ir.StridedSliceAttributes(**masks)


CASES = [
    ("ADD", [A, B], ir.BinaryAttributes(), (3,)),
    ("SUB", [A, B], ir.BinaryAttributes(), (3,)),
    ("MUL", [A, np.int32(3)], ir.BinaryAttributes(), (3,)),
    ("MAXIMUM", [A, B], None, (3,)),
    ("MINIMUM", [A, B], None, (3,)),
    ("FLOOR_DIV", [A, B], None, (3,)),
    ("CONCATENATION", [A, B], ir.ConcatenationAttributes(axis=0), (6,)),
    ("CONCATENATION", [M, M], ir.ConcatenationAttributes(axis=-1), (2, 6)),
    ("EXPAND_DIMS", [A, np.int32(0)], None, (1, 3)),
    ("EXPAND_DIMS", [A, np.array([-1], np.int32)], None, (3, 1)),
    ("GATHER", [A, np.array([2, 0], np.int32)], ir.GatherAttributes(), (2,)),
    ("GATHER", [M, np.int32(1)], ir.GatherAttributes(axis=1), (2,)),
    ("PACK", [A, B], ir.PackAttributes(2), (2, 3)),
    ("PACK", [A, B], ir.PackAttributes(2, axis=-1), (3, 2)),
    ("REDUCE_PROD", [A, np.array([0], np.int32)], DROP, ()),
    ("REDUCE_PROD", [M, np.array([1], np.int32)], KEEP, (2, 1)),
    ("REDUCE_MAX", [M, np.array([-1], np.int32)], DROP, (2,)),
    ("REDUCE_MIN", [M, np.array([0, 1], np.int32)], DROP, ()),
    ("SUM", [M, np.array([0], np.int32)], DROP, (3,)),
    ("RESHAPE", [M, np.array([3, -1], np.int32)], ir.ReshapeAttributes(), (3, 2)),
    ("SLICE", [M, np.array([0, 1], np.int32), np.array([-1, 2], np.int32)], None, (2, 2)),
    ("SQUEEZE", [M.reshape(1, 6), ], ir.SqueezeAttributes((0,)), (6,)),
    ("SQUEEZE", [M.reshape(1, 6, 1)], ir.SqueezeAttributes(), (6,)),
    ("STRIDED_SLICE", [A, [0], [2], [1]], strided(), (2,)),
    ("STRIDED_SLICE", [A, [-1], [0], [1]], strided(shrink_axis_mask=1), ()),
    ("STRIDED_SLICE", [A, [1], [0], [1]], strided(end_mask=1), (2,)),
    ("STRIDED_SLICE", [A, [0], [-1], [2]], strided(begin_mask=1), (1,)),
    ("STRIDED_SLICE", [A, [0], [0], [-1]], strided(begin_mask=1, end_mask=1), (3,)),
    ("STRIDED_SLICE", [M, [0, 1], [2, 9], [1, 1]], strided(), (2, 2)),
    ("STRIDED_SLICE", [M, [1, 0], [2, 3], [1, 2]], strided(shrink_axis_mask=1), (2,)),
]  # fmt: skip


def model(op, inputs, attributes, shape, dtype=DType.INT32, *, is_const=True):
    """The operator on constants, or on inputs for a LiteRT that wants some."""
    w = ModelWriter()
    ids = [
        w.const(value) if is_const or i else w.input(np.shape(value), dtype=DType.INT32)
        for i, value in enumerate(inputs)
    ]
    w.output(w.op(op, ids, [(shape, dtype)], attributes))
    return w.build()


@pytest.mark.parametrize(("op", "inputs", "attributes", "shape"), CASES)
def test_against_litert(op, inputs, attributes, shape):
    graph = read_model(model(op, inputs, attributes, shape)).subgraphs[0]
    value = fold_shape_node(graph.nodes[0], graph)
    assert value is not None
    first = np.asarray(inputs[0], np.int32)
    (want,) = reference(model(op, inputs, attributes, shape, is_const=False), [first])
    assert value.dtype == np.int32
    assert value.shape == want.shape
    assert np.array_equal(value, want)


@pytest.mark.parametrize("dtype", [DType.INT32, DType.INT64])
def test_shape_and_rank(dtype):
    w = ModelWriter()
    x = w.input((2, 1, 5))
    shape = w.op("SHAPE", [x], [((3,), dtype)], ir.ShapeAttributes(dtype))
    rank = w.op("RANK", [x], [((), DType.INT32)])
    w.output(shape, rank)
    graph = infer_shapes(
        read_model(w.build()).subgraphs[0], lambda *_: None, {x: (4, 7)}, fold_shape_node
    )
    verify_graph(graph)
    assert graph.nodes == ()
    assert graph.tensors[shape].data.tolist() == [4, 7]
    assert graph.tensors[shape].data.dtype == dtype.numpy
    assert graph.tensors[rank].data.tolist() == 2
    assert dict(graph.folded) == {shape: (0,), rank: (1,)}


def test_a_chain_knows_its_nodes():
    w = ModelWriter()
    x = w.input((2, 3))
    shape = w.op("SHAPE", [x], [((2,), DType.INT32)], ir.ShapeAttributes())
    half = w.op("FLOOR_DIV", [shape, w.const(2)], [((2,), DType.INT32)])
    both = w.op("ADD", [shape, half], [((2,), DType.INT32)], ir.BinaryAttributes())
    w.output(both, w.op("NEG", [x], [(2, 3)]))
    graph = infer_shapes(read_model(w.build()).subgraphs[0], lambda *_: None, None, fold_shape_node)
    assert [n.op for n in graph.nodes] == ["NEG"]
    assert graph.tensors[both].data.tolist() == [3, 4]
    assert graph.folded[both] == (0, 1, 2)


BIG = np.zeros(MAX_ELEMENTS + 1, np.int32)


@pytest.mark.parametrize(
    ("op", "inputs", "attributes"),
    [
        ("ADD", [A.astype(np.float32), np.float32(1)], ir.BinaryAttributes()),
        ("ADD", [A, B], ir.BinaryAttributes(fused_activation_function="RELU")),
        ("ADD", [BIG, np.int32(1)], ir.BinaryAttributes()),
        ("FLOOR_DIV", [A, np.int32(0)], None),
        ("GATHER", [A, np.array([3], np.int32)], ir.GatherAttributes()),
        ("GATHER", [A, np.array([-1], np.int32)], ir.GatherAttributes()),
        ("GATHER", [M, M], ir.GatherAttributes(axis=1, batch_dims=1)),
        ("NEG", [A], None),
        ("RESHAPE", [A], ir.ReshapeAttributes((3, 1))),
        ("RESHAPE", [A, np.array([2, 2], np.int32)], ir.ReshapeAttributes()),
        ("SLICE", [A, np.array([1], np.int32), np.array([3], np.int32)], None),
        ("SQUEEZE", [M], ir.SqueezeAttributes((0,))),
        ("STRIDED_SLICE", [A, [2], [0], [-1]], strided()),
        ("STRIDED_SLICE", [A, [5], [6], [1]], strided(shrink_axis_mask=1)),
        ("STRIDED_SLICE", [M, [0], [1], [1]], strided()),
        ("STRIDED_SLICE", [A, [0], [1], [1]], strided(new_axis_mask=1)),
        ("STRIDED_SLICE", [A, [0], [1], [0]], strided()),
    ],
)
def test_what_is_left_alone(op, inputs, attributes):
    dtype = DType.FLOAT32 if inputs[0].dtype == np.float32 else DType.INT32
    graph = read_model(model(op, inputs, attributes, (3,), dtype)).subgraphs[0]
    assert fold_shape_node(graph.nodes[0], graph) is None
