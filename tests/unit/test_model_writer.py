"""Files of the model writer load in LiteRT and read back as they were written."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from tflite_vk.dtypes import DType
from tflite_vk.frontend import builtin_options
from tflite_vk.frontend.flatbuffer import read_model
from tflite_vk.ir import attributes as ir
from tflite_vk.ir.graph import Quantization
from tflite_vk.testing import ModelWriter, TensorSpec


def litert(data):
    interpreter = Interpreter(
        model_content=data, experimental_op_resolver_type=OpResolverType.BUILTIN_REF
    )
    interpreter.allocate_tensors()
    return interpreter


def run(data, *inputs):
    interpreter = litert(data)
    for detail, value in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


def unusual(table):
    """Attributes of a table that all differ from their defaults, where its schema has the field."""
    import tflite

    if table.subgraph_fields:
        return ir.SubgraphAttributes(tuple(0 for _ in table.subgraph_fields))
    values = {}
    for field in dataclasses.fields(table.attributes):
        name = field.name
        if not hasattr(tflite, f"{table.name}Add{builtin_options.accessor(name)}"):
            continue
        if name == "decomposition_subgraph_index":
            values[name] = 0
        elif name in builtin_options.ENUMS:
            values[name] = builtin_options.ENUMS[name][-1]
        elif name in builtin_options.DTYPES:
            values[name] = DType.INT16
        elif name in builtin_options.VECTORS:
            values[name] = (3, -1)
        elif name in builtin_options.STRINGS:
            values[name] = "naïve"
        elif name in builtin_options.BYTES:
            values[name] = b"\x01\x00\x02"
        else:
            default = field.default
            values[name] = (
                not default if isinstance(default, bool) else type(default)(default + 2.5)
            )
    return table.attributes(**values)


@pytest.mark.parametrize("op", sorted(builtin_options.OPTIONS))
def test_attributes_read_back_as_written(op):
    attributes = unusual(builtin_options.OPTIONS[op])
    w = ModelWriter()
    x = w.input((2, 3))
    w.output(w.op(op, [x, None], [(2, 3)], attributes, version=3))
    node = read_model(w.build()).subgraphs[0].nodes[0]
    assert node.op == op
    assert node.attributes == attributes
    assert node.version == 3
    assert node.inputs == (x, -1)


@pytest.mark.parametrize(
    "op", sorted(op for op, t in builtin_options.OPTIONS.items() if not t.subgraph_fields)
)
def test_default_attributes_read_back_as_written(op):
    table = builtin_options.OPTIONS[op]
    values = {"decomposition_subgraph_index": 0} if op == "STABLEHLO_COMPOSITE" else {}
    attributes = table.attributes(**values)
    w = ModelWriter()
    w.output(w.op(op, [w.input((2, 3))], [(2, 3)], attributes))
    got = read_model(w.build()).subgraphs[0].nodes[0].attributes
    if op == "CAST":  # the file has no way to leave a type open
        attributes = ir.CastAttributes(DType.FLOAT32, DType.FLOAT32)
    assert got == attributes


@pytest.mark.parametrize("op", sorted(builtin_options.WITHOUT_OPTIONS))
def test_operators_without_options(op):
    w = ModelWriter()
    w.output(w.op(op, [w.input((2, 3))], [(2, 3)]))
    assert read_model(w.build()).subgraphs[0].nodes[0].attributes == ir.NoAttributes()


def conv(w):
    x = w.input((1, 8, 7, 3))
    k = w.const(np.ones((4, 3, 3, 3), np.float32))
    b = w.const(np.zeros(4, np.float32))
    attributes = ir.Conv2DAttributes(stride_w=2, fused_activation_function="RELU6")
    w.output(w.op("CONV_2D", [x, k, b], [(1, 8, 4, 4)], attributes))


def strided_slice(w):
    x = w.input((4, 5))
    ends = [w.const(v) for v in ([0, 1], [4, 5], [1, 2])]
    w.output(w.op("STRIDED_SLICE", [x, *ends], [(4, 2)], ir.StridedSliceAttributes()))


def split(w):
    w.output(
        *w.multi_op("SPLIT", [w.const(1), w.input((2, 6))], [(2, 3)] * 2, ir.SplitAttributes(2))
    )


def lstm(w):
    x = w.input((1, 3, 2))
    gates = [w.const(np.full((4, 2), 0.1, np.float32)) for _ in range(4)]
    recurrent = [w.const(np.full((4, 4), 0.1, np.float32)) for _ in range(4)]
    biases = [w.const(np.zeros(4, np.float32)) for _ in range(4)]
    states = [w.variable((1, 4)), w.variable((1, 4))]
    inputs = [x, *gates, *recurrent, None, None, None, *biases, None, None, *states]
    attributes = ir.LstmAttributes(fused_activation_function="TANH", cell_clip=10.0)
    w.output(
        w.op(
            "UNIDIRECTIONAL_SEQUENCE_LSTM",
            [*inputs, None, None, None, None],
            [(1, 3, 4)],
            attributes,
        )
    )


def quantized_fully_connected(w):
    x = w.input((1, 8), dtype=DType.INT8, quantization=Quantization((0.5,), (-3,)))
    k = w.const(np.ones((2, 8), np.int8), quantization=Quantization((0.25, 0.5), (0, 0), axis=0))
    b = w.const(np.zeros(2, np.int32), quantization=Quantization((0.125, 0.25), (0, 0)))
    out = TensorSpec((1, 2), DType.INT8, Quantization((1.0,), (0,)))
    w.output(w.op("FULLY_CONNECTED", [x, k, b], [out], ir.FullyConnectedAttributes(), version=5))


def half_weights(w):
    x = w.input((1, 4))
    w.output(w.op("ADD", [x, w.half_const(np.ones(4))], [(1, 4)], ir.BinaryAttributes()))


def control_flow(w):
    condition = w.input((), dtype=DType.BOOL)
    x = w.input((2,))
    branches = []
    for op, attributes in (("NEG", None), ("ABS", None)):
        g = w.subgraph(op.lower())
        y = g.input((2,))
        g.output(g.op(op, [y], [(2,)], attributes))
        branches.append(g.index)
    w.output(w.op("IF", [condition, x], [(2,)], ir.SubgraphAttributes(tuple(branches))))


def cast(w):
    attributes = ir.CastAttributes(DType.FLOAT32, DType.INT32)
    w.output(w.op("CAST", [w.input((3,))], [((3,), DType.INT32)], attributes))


@pytest.mark.parametrize(
    "build",
    [conv, strided_slice, split, lstm, quantized_fully_connected, half_weights, control_flow, cast],
)
@pytest.mark.parametrize("resolver", [OpResolverType.BUILTIN_REF, OpResolverType.AUTO])
def test_litert_runs_it(build, resolver):
    w = ModelWriter()
    build(w)
    data = w.build()
    interpreter = Interpreter(model_content=data, experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    interpreter.invoke()
    graph = read_model(data).subgraphs[0]
    for detail, tensor in zip(interpreter.get_output_details(), graph.outputs, strict=True):
        assert tuple(detail["shape"]) == graph.tensors[tensor].shape


@pytest.mark.parametrize("attributes", [ir.GeluAttributes(approximate=True), ir.GeluAttributes()])
def test_litert_reads_an_option_as_written(attributes):
    w = ModelWriter()
    w.output(w.op("GELU", [w.input((3,))], [(3,)], attributes))
    (got,) = run(w.build(), np.array([-1.0, 0.5, 2.0], np.float32))
    exact = np.array([-0.15865526, 0.34573123, 1.9544997])
    approximate = np.array([-0.15880801, 0.34571401, 1.9545977])
    assert np.allclose(got, approximate if attributes.approximate else exact, atol=1e-6)


def test_multi_output_needs_multi_op():
    w = ModelWriter()
    with pytest.raises(ValueError, match="SPLIT has 2 outputs: use multi_op"):
        w.op("SPLIT", [w.const(0), w.input((2,))], [(1,), (1,)], ir.SplitAttributes(2))


def test_wrong_attributes_are_refused():
    w = ModelWriter()
    with pytest.raises(TypeError, match="CONV_2D takes Conv2DAttributes, not Pool2DAttributes"):
        w.op("CONV_2D", [w.input((2,))], [(2,)], ir.Pool2DAttributes())
    with pytest.raises(TypeError, match="RELU takes NoAttributes"):
        w.op("RELU", [w.input((2,))], [(2,)], ir.Pool2DAttributes())
    w.op("MUL", [0, 0], [(2,)], ir.BinaryAttributes(pot_scale_int16=True))
    with pytest.raises(TypeError, match="MUL has no option pot_scale_int16"):
        w.build()


def test_constants_take_the_types_that_models_use():
    w = ModelWriter()
    kinds = [
        (w.const([1.0, 2.0]), DType.FLOAT32),
        (w.const(np.zeros(2)), DType.FLOAT32),
        (w.const([1, 2]), DType.INT32),
        (w.const(np.zeros(2, np.int64)), DType.INT64),
        (w.const(np.zeros(2), dtype=DType.FLOAT64), DType.FLOAT64),
        (w.const(np.zeros(2, np.float16)), DType.FLOAT16),
        (w.const(True), DType.BOOL),
        (w.const(["a", "bc"]), DType.STRING),
    ]
    assert [w.tensors[i].spec.dtype for i, _ in kinds] == [kind for _, kind in kinds]


def test_buffers_are_aligned_and_equal_ones_shared():
    w = ModelWriter()
    x = w.input((5,))
    for _ in range(2):
        x = w.op("ADD", [x, w.const(np.arange(5, dtype=np.float32))], [(5,)], ir.BinaryAttributes())
    w.const(np.int8(3))
    w.output(x)
    data = w.build()
    assert len(w.pool.buffers) == 3
    needle = np.arange(5, dtype="<f4").tobytes()
    assert data.count(needle) == 1
    assert data.index(needle) % 16 == 0


def test_outputs_twice_inputs_as_outputs_and_constant_inputs():
    w = ModelWriter()
    x = w.input((2,))
    c = w.const([1.0, 2.0])
    w.mark_input(c)
    y = w.op("ADD", [x, c], [(2,)], ir.BinaryAttributes())
    w.output(y, x, y)
    graph = read_model(w.build()).subgraphs[0]
    assert graph.inputs == (x, c)
    assert graph.outputs == (y, x, y)
    interpreter = litert(w.build())
    assert [d["index"] for d in interpreter.get_output_details()] == [y, x, y]


def test_signatures():
    w = ModelWriter()
    x = w.input((2,), "x")
    w.output(w.op("NEG", [x], [(2,)]))
    g = w.subgraph("other")
    z = g.input((2,))
    g.output(g.op("ABS", [z], [(2,)]))
    w.signature("negate", {"a": x}, {"b": 1})
    w.signature("absolute", {"c": z}, {"d": 1}, g)
    interpreter = litert(w.build())
    got = interpreter.get_signature_runner("absolute")(c=np.array([-1, 2], np.float32))
    assert got["d"].tolist() == [1, 2]
    assert interpreter.get_signature_list() == {
        "negate": {"inputs": ["a"], "outputs": ["b"]},
        "absolute": {"inputs": ["c"], "outputs": ["d"]},
    }


@pytest.mark.parametrize("block", [{}, {1: 4}, {0: 2, 1: 2}])
def test_sparse_weights_mean_the_same_to_litert(block):
    rng = np.random.default_rng(7)
    dense = rng.standard_normal((8, 12)).astype(np.float32)
    dense[rng.random((8, 12)) < 0.7] = 0
    w = ModelWriter()
    x = w.input((1, 12))
    dense_again = w.op("DENSIFY", [w.sparse_const(dense, block)], [(8, 12)])
    w.output(
        w.op("FULLY_CONNECTED", [x, dense_again, None], [(1, 8)], ir.FullyConnectedAttributes())
    )
    data = w.build()
    value = rng.standard_normal((1, 12)).astype(np.float32)
    (got,) = run(data, value)
    assert np.allclose(got, value @ dense.T, atol=1e-5)
    tensor = read_model(data).subgraphs[0].tensors[1]
    assert tensor.is_sparse
    assert np.array_equal(tensor.data, dense)
