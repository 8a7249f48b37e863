import numpy as np
import pytest

from tflite_vk.dtypes import DType
from tflite_vk.frontend.flatbuffer import read_model
from tflite_vk.ir.attributes import (
    ConcatenationAttributes,
    PackAttributes,
    ReducerAttributes,
    ShapeAttributes,
    StridedSliceAttributes,
)
from tflite_vk.ops import registry
from tflite_vk.passes.fold_shapes import fold_shape_node
from tflite_vk.passes.infer_shapes import infer_shapes
from tflite_vk.testing.model_writer import ModelWriter, TensorSpec

INT = DType.INT32


def dynamic(w, *tensors):
    graph = read_model(w.build()).subgraphs[0]
    return [graph.tensors[t].is_dynamic for t in tensors]


def test_where_and_what_follows():
    w = ModelWriter()
    x = w.input((4,), dtype=DType.BOOL)
    y = w.input((4,))
    where = w.op("WHERE", [x], [((1, 1), DType.INT64)])
    picked = w.op("GATHER_ND", [y, where], [(1,)])
    apart = w.op("NEG", [y], [(4,)])
    w.output(picked, apart)
    assert dynamic(w, x, where, picked, apart) == [False, True, True, False]


@pytest.mark.parametrize(
    "op", ["TILE", "PAD", "RESIZE_BILINEAR", "TRANSPOSE", "MEAN", "BROADCAST_TO"]
)
def test_operand_that_sets_the_shape(op):
    w = ModelWriter()
    x, run_time = w.input((2, 2)), w.input((2,), dtype=INT)
    known, unknown = w.op(op, [x, w.const([1, 1])], [(2, 2)]), w.op(op, [x, run_time], [(2, 2)])
    w.output(known, unknown)
    assert dynamic(w, known, unknown) == [False, True]


def test_shapes_computed_from_shapes_are_known():
    # What Keras makes of Flatten with an unknown batch.
    w = ModelWriter()
    x = w.input((1, 2, 2), shape_signature=(-1, 2, 2))
    shape = w.op("SHAPE", [x], [((3,), INT)], ShapeAttributes(INT))
    begin, end, strides = w.const([0]), w.const([1]), w.const([1])
    batch = w.op(
        "STRIDED_SLICE",
        [shape, begin, end, strides],
        [((), INT)],
        StridedSliceAttributes(0, 0, 0, 0, 1),
    )
    packed = w.op("PACK", [batch, w.const(np.int32(-1))], [((2,), INT)], PackAttributes(2, 0))
    y = w.op("RESHAPE", [x, packed], [(1, 4)])
    from_values = w.op("CAST", [x], [((1, 2, 2), INT)])
    z = w.op("RESHAPE", [x, w.op("SQUEEZE", [from_values], [((2, 2), INT)])], [(1, 4)])
    w.output(y, z)
    assert dynamic(w, shape, batch, packed, y, z) == [False, False, False, False, True]


def test_shape_of_a_dynamic_tensor_is_unknown():
    w = ModelWriter()
    x = w.input((4,), dtype=DType.BOOL)
    where = w.op("WHERE", [x], [((1, 1), DType.INT64)])
    shape = w.op("SHAPE", [where], [((2,), INT)], ShapeAttributes(INT))
    filled = w.op("FILL", [shape, w.const(np.float32(0))], [(1, 1)])
    w.output(filled)
    assert dynamic(w, filled) == [True]


def test_graph_without_any_is_left_alone():
    w = ModelWriter()
    w.output(w.op("NEG", [w.input((4,))], [(4,)]))
    graph = read_model(w.build()).subgraphs[0]
    assert not any(t.is_dynamic for t in graph.tensors.values())


def test_both_frontends_mark_what_depends_on_values():
    """The reader of files does it as the reader of a TfLiteContext does (tests/delegate)."""
    w = ModelWriter()
    x, shape = w.input((2, 3)), w.input((2,), dtype=DType.INT32)
    y = w.op("RESHAPE", [x, shape], [TensorSpec((3, 2), shape_signature=(-1, -1))])
    w.output(w.op("NEG", [y], [TensorSpec((3, 2), shape_signature=(-1, -1))]))
    graph = read_model(w.build()).subgraphs[0]
    assert [graph.tensors[n.outputs[0]].is_dynamic for n in graph.nodes] == [True, True]
    assert "known only while running" in str(registry.unsupported_reason(graph.nodes[1], graph))


def test_what_folding_finds_out_is_known_after_all():
    """A shape computed with an operator that the rule by names does not know."""
    w = ModelWriter()
    x = w.input((2, 3))
    dims = w.op("SHAPE", [x], [((2,), DType.INT32)], ShapeAttributes())
    axes = w.const(np.array([0], np.int32))
    size = w.op("REDUCE_MIN", [dims, axes], [((1,), DType.INT32)], ReducerAttributes(True))
    rest = w.const(np.array([3], np.int32))
    shape = w.op("CONCATENATION", [size, rest], [((2,), DType.INT32)], ConcatenationAttributes())
    w.output(w.op("RESHAPE", [x, shape], [(2, 3)]))
    graph = read_model(w.build()).subgraphs[0]
    assert graph.tensors[graph.outputs[0]].is_dynamic
    inferred = infer_shapes(graph, registry.infer_shapes, None, fold_shape_node)
    assert [n.op for n in inferred.nodes] == ["RESHAPE"]
    assert not inferred.tensors[graph.outputs[0]].is_dynamic
