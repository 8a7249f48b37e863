"""Both frontends read the same graph: the file's own reader against TFLite's structures."""

import ctypes
import dataclasses

import numpy as np
import pytest

from fetch_models import CACHE, SHARED
from tests.delegate.fake import Capture
from tests.ops.cases import quantized_lstm
from tests.support.case import Case
from tflite_vk import tflite_abi as abi
from tflite_vk.dtypes import DType
from tflite_vk.errors import ModelError
from tflite_vk.frontend import context
from tflite_vk.frontend.flatbuffer import read_model
from tflite_vk.ir import attributes as a
from tflite_vk.ir.graph import Quantization
from tflite_vk.testing.model_writer import ModelWriter, TensorSpec

litert = pytest.importorskip("ai_edge_litert.interpreter")


def capture(data):
    delegate = Capture()
    litert.Interpreter(model_content=data, experimental_delegates=[delegate])
    return delegate.subgraphs


def attributes_match(file, memory, op):
    """TFLite's structures lack a few things that the file has."""
    if op == "RESHAPE":
        return (memory.new_shape or None) == (file.new_shape or None)
    for f in dataclasses.fields(file):
        x, y = getattr(file, f.name), getattr(memory, f.name)
        if isinstance(x, float):
            if not np.isclose(x, y, rtol=1e-6):
                return False
        elif x != y:
            return False
    return type(file) is type(memory)


def assert_same(data):
    model = read_model(data)
    subgraphs = capture(data)
    assert len(subgraphs) == len(model.subgraphs)
    for file, read in zip(model.subgraphs, subgraphs, strict=True):
        memory = read.graph
        assert read.unread == {}
        assert [n.op for n in memory.nodes] == [n.op for n in file.nodes]
        for f, m in zip(file.nodes, memory.nodes, strict=True):
            same = (f.index, f.inputs, f.outputs, f.version, f.is_custom)
            assert same == (m.index, m.inputs, m.outputs, m.version, m.is_custom)
            assert attributes_match(f.attributes, m.attributes, f.op), (f, m)
        for i, m in memory.tensors.items():
            f = file.tensors[i]
            assert (f.name, f.shape, f.dtype) == (m.name, m.shape, m.dtype)
            assert (f.is_variable, f.is_sparse) == (m.is_variable, m.is_sparse)
            assert f.shape_signature == m.shape_signature
            assert f.quantization == m.quantization or (
                f.quantization is not None
                and np.allclose(f.quantization.scale, m.quantization.scale)
                and f.quantization.zero_point == m.quantization.zero_point
            )
            if f.data is None or f.dtype is DType.STRING:
                assert m.data is None
            else:
                assert m.data.dtype == f.data.dtype
                np.testing.assert_array_equal(m.data, f.data)
        run_time = {i for i in file.inputs if not file.tensors[i].is_const}
        read_by_nodes = {t for n in file.nodes for t in n.reads}
        assert set(memory.inputs) == run_time & read_by_nodes
        written = {t for n in file.nodes for t in n.outputs}
        assert set(memory.outputs) == set(file.outputs) & written


MODELS = {p.name: p for folder in (SHARED, CACHE) for p in sorted(folder.glob("*.tflite"))}


@pytest.mark.parametrize("path", MODELS.values(), ids=lambda p: p.stem)
def test_model_files(path):
    assert_same(path.read_bytes())


F4 = (1, 8, 8, 4)

BUILTINS = [
    ("CONV_2D", [F4, (4, 3, 3, 4)], F4, a.Conv2DAttributes("RELU6", "SAME", 1, 1, 1, 1)),
    ("CONV_2D", [F4, (4, 3, 3, 4)], (1, 4, 2, 4), a.Conv2DAttributes("NONE", "VALID", 3, 1, 1, 2)),
    ("CONV_2D", [F4, (4, 3, 3, 4)], F4, a.Conv2DAttributes(quantized_bias_type=DType.INT32)),
    (
        "DEPTHWISE_CONV_2D",
        [F4, (1, 3, 3, 8)],
        (1, 4, 3, 8),
        a.DepthwiseConv2DAttributes("RELU", "SAME", 3, 2, 1, 1, depth_multiplier=2),
    ),
    ("AVERAGE_POOL_2D", [F4], (1, 4, 4, 4), a.Pool2DAttributes("NONE", "SAME", 2, 2, 3, 2)),
    ("MAX_POOL_2D", [F4], (1, 3, 4, 4), a.Pool2DAttributes("RELU", "VALID", 2, 3, 2, 2)),
    (
        "FULLY_CONNECTED",
        [(2, 8), (3, 8)],
        (2, 3),
        a.FullyConnectedAttributes("RELU", "DEFAULT", True, False, DType.INT64),
    ),
    ("ADD", [F4, F4], F4, a.BinaryAttributes("RELU_N1_TO_1", False)),
    ("MUL", [F4, F4], F4, a.BinaryAttributes("RELU")),
    ("SUB", [F4, F4], F4, a.BinaryAttributes("TANH")),
    ("L2_NORMALIZATION", [F4], F4, a.BinaryAttributes()),
    ("CONCATENATION", [F4, F4], (1, 8, 16, 4), a.ConcatenationAttributes("NONE", 2)),
    ("SOFTMAX", [F4], F4, a.SoftmaxAttributes(0.5)),
    ("BATCH_MATMUL", [(2, 3, 4), (2, 5, 4)], (2, 3, 5), a.BatchMatMulAttributes(False, True, True)),
    ("LEAKY_RELU", [F4], F4, a.LeakyReluAttributes(0.25)),
    ("GELU", [F4], F4, a.GeluAttributes(True)),
    ("DEPTH_TO_SPACE", [F4], (1, 16, 16, 1), a.BlockSizeAttributes(2)),
    ("SPACE_TO_DEPTH", [F4], (1, 2, 2, 64), a.BlockSizeAttributes(4)),
    ("CAST", [F4], (F4, DType.INT32), a.CastAttributes(DType.FLOAT32, DType.INT32)),
    ("PACK", [(2, 3), (2, 3)], (2, 2, 3), a.PackAttributes(2, 1)),
    ("SHAPE", [F4], ((4,), DType.INT64), a.ShapeAttributes(DType.INT64)),
    ("SQUEEZE", [(1, 1, 4, 1)], (4, 1), a.SqueezeAttributes((0, 1))),
    ("RESHAPE", [F4], (16, 16), a.ReshapeAttributes((16, -1))),
    (
        "LOCAL_RESPONSE_NORMALIZATION",
        [F4],
        F4,
        a.LocalResponseNormAttributes(2, 1.0, 0.5, 0.75),
    ),
    ("RELU6", [F4], F4, None),
    ("FAKE_QUANT", [F4], F4, a.FakeQuantAttributes(-1.0, 2.0, 8, True)),
]


@pytest.mark.parametrize(("op", "shapes", "out", "attributes"), BUILTINS, ids=lambda v: str(v)[:24])
def test_builtin_options(op, shapes, out, attributes):
    w = ModelWriter()
    inputs = [w.input(s) for s in shapes]
    w.output(w.op(op, inputs, [out], attributes))
    assert_same(w.build())


def test_options_with_constant_operands():
    w = ModelWriter()
    x = w.input(F4)
    axes = w.const([1, 2])
    w.output(w.op("MEAN", [x, axes], [(1, 1, 1, 4)], a.ReducerAttributes(True)))
    pads = w.const([[0, 0], [1, 2], [0, 1], [0, 0]])
    w.output(w.op("MIRROR_PAD", [x, pads], [(1, 11, 9, 4)], a.MirrorPadAttributes("SYMMETRIC")))
    size = w.const([16, 16])
    w.output(
        w.op("RESIZE_BILINEAR", [x, size], [(1, 16, 16, 4)], a.ResizeAttributes(False, True), 3)
    )
    begin, end, strides = w.const([0, 1, 0, 0]), w.const([1, 7, 8, 4]), w.const([1, 2, 1, 1])
    attributes = a.StridedSliceAttributes(1, 4, 0, 0, 1)
    w.output(w.op("STRIDED_SLICE", [x, begin, end, strides], [(3, 8, 4)], attributes))
    indices = w.const([3, 1])
    w.output(w.op("GATHER", [x, indices], [(1, 8, 8, 2)], a.GatherAttributes(-1, 0)))
    axis = w.const(np.int32(3))
    attributes = a.CumsumAttributes(True, False)
    w.output(w.op("CUMSUM", [x, axis], [F4], attributes))
    w.output(w.op("ARG_MAX", [x, axis], [((1, 8, 8), DType.INT32)], a.ArgAttributes(DType.INT32)))
    w.output(*w.multi_op("SPLIT", [axis, x], [(1, 8, 8, 2)] * 2, a.SplitAttributes(2)))
    w.output(*w.multi_op("UNPACK", [x], [(8, 8, 4)], a.UnpackAttributes(1, 0)))
    shape = w.const([1, 17, 17, 3])
    weights = w.const(np.ones((3, 3, 3, 4), np.float32))
    attributes = a.TransposeConvAttributes("NONE", "VALID", 2, 2)
    w.output(w.op("TRANSPOSE_CONV", [shape, weights, x], [(1, 17, 17, 3)], attributes))
    assert_same(w.build())


def test_quantization_per_channel_and_kinds_of_constants():
    w = ModelWriter()
    q = Quantization((0.5,), (3,))
    x = w.input(F4, dtype=DType.INT8, quantization=q)
    kernel = np.arange(4 * 9 * 4, dtype=np.int8).reshape(4, 3, 3, 4)
    per_channel = Quantization((0.1, 0.2, 0.3, 0.4), (0, 0, 0, 0), 0)
    k = w.const(kernel, quantization=per_channel)
    bias = w.const(np.arange(4, dtype=np.int32), quantization=per_channel)
    out = TensorSpec(F4, DType.INT8, q)
    w.output(w.op("CONV_2D", [x, k, bias], [out], a.Conv2DAttributes(), 3))
    assert_same(w.build())
    read = capture(w.build())[0].graph
    assert read.tensors[k].quantization.zero_point == (0, 0, 0, 0)


@pytest.mark.parametrize(
    ("filter_dtype", "bias_dtype"), [(DType.INT4, DType.INT32), (DType.INT8, DType.INT64)]
)
def test_narrow_filters_and_wide_biases(filter_dtype, bias_dtype):
    w = ModelWriter()
    dtype = DType.INT16 if bias_dtype is DType.INT64 else DType.INT8
    q = Quantization((0.5,), (0,))
    x = w.input((2, 5), dtype=dtype, quantization=q)
    # An odd number of elements leaves half a byte of INT4.
    k = w.const(np.arange(-7, 8).reshape(3, 5) // 2, dtype=filter_dtype, quantization=q)
    bias = w.const(
        np.array([1, -2, 1 << 30]), dtype=bias_dtype, quantization=Quantization((0.25,), (0,))
    )
    out = TensorSpec((2, 3), dtype, q)
    w.output(w.op("FULLY_CONNECTED", [x, k, bias], [out], a.FullyConnectedAttributes(), 11))
    assert_same(w.build())


def test_intermediate_tensors():
    data = Case("", quantized_lstm.Lstm(coupled=True)).model()
    assert_same(data)
    node = capture(data)[0].graph.nodes[0]
    assert [q.scale for q in node.intermediates[:4]] == [(2.0**-12,)] * 4
    assert node.intermediates[4].zero_point == (9,)


def test_half_and_sparse_constants():
    w = ModelWriter()
    x = w.input((2, 8))
    half = w.half_const(np.arange(24, dtype=np.float32).reshape(3, 8))
    y = w.op("FULLY_CONNECTED", [x, half, None], [(2, 3)], a.FullyConnectedAttributes())
    dense = np.where(np.arange(24).reshape(3, 8) % 3 == 0, 1.5, 0).astype(np.float32)
    sparse = w.sparse_const(dense)
    z = w.op("FULLY_CONNECTED", [x, sparse, None], [(2, 3)], a.FullyConnectedAttributes(), 8)
    w.output(y, z)
    assert_same(w.build())


def test_custom_options():
    w = ModelWriter()
    x = w.input(F4)
    shape_free = w.const(np.zeros((2, 2, 2, 4), np.float32))
    bias = w.const(np.zeros(2, np.float32))
    attributes = a.TransposeConvAttributes("RELU", "SAME", 2, 2)
    y = w.op("Convolution2DTransposeBias", [x, shape_free, bias], [(1, 16, 16, 2)], attributes)
    z = w.op("SomebodysOwn", [y], [F4], b"\x01\x02\x00\x03")
    w.output(z)
    read = capture(w.build())[0]
    assert [n.op for n in read.graph.nodes] == ["Convolution2DTransposeBias", "SomebodysOwn"]
    assert all(n.is_custom for n in read.graph.nodes)
    assert read.graph.nodes[0].attributes == attributes
    assert read.graph.nodes[1].attributes == a.CustomAttributes(b"\x01\x02\x00\x03")


def test_absent_input_and_variable():
    w = ModelWriter()
    x = w.input((1, 4))
    weights, recurrent = (w.const(np.eye(4, dtype=np.float32)) for _ in range(2))
    bias = w.const(np.zeros(4, np.float32))
    state = w.variable((1, 4))
    w.output(w.op("RNN", [x, weights, recurrent, bias, state], [(1, 4)], a.RnnAttributes("RELU")))
    assert_same(w.build())
    read = capture(w.build())[0].graph
    assert read.inputs == (x,)
    assert read.tensors[state].is_variable


def test_control_flow_reads_each_subgraph():
    w = ModelWriter()
    x, flag = w.input((4,)), w.input((), dtype=DType.BOOL)
    branches = []
    for op in ("NEG", "ABS"):
        s = w.subgraph(op)
        s.output(s.op(op, [s.input((4,))], [(4,)]))
        branches.append(s.index)
    w.output(w.op("IF", [flag, x], [(4,)], a.SubgraphAttributes(tuple(branches))))
    assert_same(w.build())


def test_an_odd_node_costs_itself_alone(monkeypatch):
    real = context.read_builtin_data

    def odd(op, address):
        if op == "ABS":
            raise ValueError("what is this")
        return real(op, address)

    monkeypatch.setattr(context, "read_builtin_data", odd)
    w = ModelWriter()
    w.output(w.op("ABS", [w.op("NEG", [w.input((4,))], [(4,)])], [(4,)]))
    read = capture(w.build())[0]
    assert [n.op for n in read.graph.nodes] == ["NEG", "ABS"]
    assert read.unread == {1: "its options can't be read: what is this"}
    assert isinstance(read.graph.nodes[1].attributes, a.UnreadAttributes)


def test_a_tensor_that_is_not_read_costs_its_nodes(monkeypatch):
    def odd(tensor, dtype, shape):
        raise context._UnreadableError("a kind of constant from the future")

    monkeypatch.setattr(context, "_read_constant", odd)
    w = ModelWriter()
    x, c = w.input((4,)), w.const(np.ones(4, np.float32), name="c")
    w.output(w.op("NEG", [w.op("ADD", [x, c], [(4,)], a.BinaryAttributes())], [(4,)]))
    read = capture(w.build())[0]
    assert read.unread == {0: "tensor 1 'c': a kind of constant from the future"}


def test_another_layout_is_a_clean_error():
    garbage = ctypes.create_string_buffer(b"\xff" * ctypes.sizeof(abi.Context))
    with pytest.raises(ModelError, match="unknown layout"):
        context.check_context(ctypes.addressof(garbage))
    zeros = ctypes.create_string_buffer(ctypes.sizeof(abi.Context))
    with pytest.raises(ModelError, match="unknown layout"):
        context.check_context(ctypes.addressof(zeros))
