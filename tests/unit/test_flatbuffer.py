"""What the reader makes of well-formed files."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from tests.support.models import MODELS, model_path
from tflite_vk.dtypes import DType
from tflite_vk.errors import ModelError
from tflite_vk.frontend.flatbuffer import load_model, read_model
from tflite_vk.ir import attributes as ir
from tflite_vk.ir.graph import Quantization
from tflite_vk.ir.verify import verify_graph
from tflite_vk.testing import ModelWriter, TensorSpec, serialize


def read(w):
    return read_model(w.build()).subgraphs[0]


def constant(value, **keywords):
    w = ModelWriter()
    index = w.const(value, **keywords)
    w.output(index)
    return read(w).tensors[index]


@pytest.mark.parametrize("name", MODELS)
def test_real_models(name):
    model = load_model(model_path(name))
    for graph in model.subgraphs:
        verify_graph(graph)
        assert graph.nodes
        assert not any(isinstance(n.attributes, ir.UnreadAttributes) for n in graph.nodes)
        for tensor in graph.tensors.values():
            if tensor.data is not None:
                assert not tensor.data.flags.writeable


# LiteRT has no kernel for the Convolution2DTransposeBias in selfie_segmentation.
@pytest.mark.parametrize("name", [m for m in MODELS if m != "selfie_segmentation"])
def test_real_models_agree_with_litert(name):
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    path = model_path(name)
    interpreter = Interpreter(
        model_path=str(path),
        experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    )
    graph = load_model(path).subgraphs[0]
    for ends, details in (
        (graph.inputs, interpreter.get_input_details()),
        (graph.outputs, interpreter.get_output_details()),
    ):
        assert list(ends) == [d["index"] for d in details]
    for detail in interpreter.get_tensor_details():
        tensor = graph.tensors[detail["index"]]
        assert tensor.name == detail["name"]
        assert tensor.shape == tuple(detail["shape"])
        scales = detail["quantization_parameters"]["scales"]
        assert (tensor.quantization.scale if tensor.quantization else ()) == tuple(scales.tolist())
        signature = tensor.shape_signature or tensor.shape
        assert signature == tuple(detail["shape_signature"])
        if tensor.is_const and not tensor.is_sparse:
            assert np.array_equal(interpreter.get_tensor(tensor.id), tensor.data)
    for detail, node in zip(interpreter._get_ops_details(), graph.nodes, strict=False):
        if not node.is_custom:
            assert detail["op_name"] == node.op
        assert tuple(detail["inputs"]) == node.inputs
        assert tuple(detail["outputs"]) == node.outputs


def test_known_numbers_of_a_real_model():
    graph = load_model(model_path("face_detection_short_range")).subgraphs[0]
    assert len(graph.nodes) == 164
    assert graph.nodes[0].op == "DEQUANTIZE"
    assert [graph.tensors[i].shape for i in graph.inputs] == [(1, 128, 128, 3)]
    assert [graph.tensors[i].shape for i in graph.outputs] == [(1, 896, 16), (1, 896, 1)]


def test_custom_options_of_a_real_model():
    graph = load_model(model_path("selfie_segmentation")).subgraphs[0]
    (node,) = [n for n in graph.nodes if n.is_custom]
    assert node.op == "Convolution2DTransposeBias"
    assert node.attributes == ir.TransposeConvAttributes(padding="SAME", stride_w=2, stride_h=2)


def test_weights_are_views_of_the_file():
    w = ModelWriter()
    w.output(w.const(np.arange(1000, dtype=np.float32)))
    data = w.build()
    tensor = read_model(data).subgraphs[0].tensors[0]
    assert np.shares_memory(tensor.data, np.frombuffer(data, np.uint8))


@pytest.mark.parametrize(
    ("dtype", "numpy"),
    [(t, t.numpy) for t in DType if t.value.numpy is not None and t is not DType.BOOL],
)
def test_every_numpy_type(dtype, numpy):
    value = np.array([[0, 1, 2], [3, 4, 5]]).astype(numpy)
    tensor = constant(value, dtype=dtype)
    assert tensor.dtype is dtype
    assert tensor.data.dtype == numpy
    assert np.array_equal(tensor.data, value)


@pytest.mark.parametrize(
    ("dtype", "values", "numpy"),
    [
        (DType.INT4, [-8, 7, -1, 0, 3], np.int8),
        (DType.UINT4, [0, 15, 8, 7, 1], np.uint8),
        (DType.INT2, [-2, 1, -1, 0, 1], np.int8),
    ],
)
def test_packed_types_have_one_element_each(dtype, values, numpy):
    tensor = constant(np.array(values), dtype=dtype)
    assert tensor.shape == (5,)
    assert tensor.data.dtype == numpy
    assert tensor.data.tolist() == values


def test_bool_is_zero_or_one_whatever_the_byte():
    w = ModelWriter()
    index = w.const(np.array([True, False, True]))
    w.output(index)
    data = w.build()
    where = data.index(b"\x01\x00\x01", 16)
    data = data[:where] + b"\x02\x00\xff" + data[where + 3 :]
    tensor = read_model(data).subgraphs[0].tensors[index]
    assert tensor.data.view(np.uint8).tolist() == [1, 0, 1]


def test_strings():
    tensor = constant([["a", ""], ["né", "d"]])
    assert tensor.dtype is DType.STRING
    assert tensor.data.tolist() == [[b"a", b""], ["né".encode(), b"d"]]


def test_bfloat16_is_its_bits():
    tensor = constant([1.0, -2.0], dtype=DType.BFLOAT16)
    assert tensor.data.tolist() == [0x3F80, 0xC000]


def test_scalars_and_empty_constants():
    assert constant(np.float32(2.5)).data.tolist() == 2.5
    assert constant(np.float32(2.5)).shape == ()
    empty = constant(np.zeros((0, 3), np.int32))
    assert empty.is_const
    assert empty.data.shape == (0, 3)


def test_an_empty_input_or_output_is_no_constant():
    w = ModelWriter()
    x = w.input((0, 2))
    y = w.op("NEG", [x], [(0, 2)])
    w.output(y)
    graph = read(w)
    assert not graph.tensors[x].is_const
    assert not graph.tensors[y].is_const


def test_quantization_signature_and_variable():
    w = ModelWriter()
    q = Quantization((0.5, 0.25), (1, -1), axis=1)
    x = w.input((3, 2), "x", DType.INT8, q, (-1, 2))
    fixed = w.input((3, 2), shape_signature=(3, 2))
    v = w.variable((4,), "state")
    w.output(x, fixed)
    graph = read(w)
    assert graph.tensors[x].quantization == q
    assert graph.tensors[x].shape_signature == (-1, 2)
    assert graph.tensors[fixed].shape_signature is None
    assert graph.tensors[v].is_variable
    assert graph.tensors[fixed].quantization is None


def test_operator_fields():
    w = ModelWriter()
    x = w.input((2,))
    outs = w.multi_op("SPLIT", [w.const(0), x], [(1,), (1,)], ir.SplitAttributes(2), version=4)
    y = w.op("MyOperator", [outs[0], None, outs[1]], [(2,)], b"\x01\x02")
    w.output(y)
    split, custom = read(w).nodes
    assert (split.index, split.op, split.version, split.is_custom) == (0, "SPLIT", 4, False)
    assert split.outputs == outs
    assert (custom.op, custom.is_custom) == ("MyOperator", True)
    assert custom.attributes == ir.CustomAttributes(b"\x01\x02")
    assert custom.inputs == (outs[0], -1, outs[1])


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        (
            "Convolution2DTransposeBias",
            ir.TransposeConvAttributes("RELU", padding="VALID", stride_w=2, stride_h=3),
        ),
        ("MaxPoolingWithArgmax2D", ir.Pool2DAttributes("NONE", "SAME", 2, 3, 4, 5)),
        ("MaxUnpooling2D", ir.Pool2DAttributes("RELU6", "VALID", 2, 2, 2, 2)),
        (
            "TFLite_Detection_PostProcess",
            ir.DetectionPostProcessAttributes(
                10, 1, 50, True, 0.25, 0.5, 90, y_scale=10.0, x_scale=10.0, h_scale=5.0, w_scale=5.0
            ),
        ),
    ],
)
def test_custom_options(op, attributes):
    w = ModelWriter()
    w.output(w.op(op, [w.input((2,))], [(2,)], attributes))
    assert read(w).nodes[0].attributes == attributes


def test_detection_options_that_are_optional():
    from flatbuffers import flexbuffers

    names = (
        "max_detections max_classes_per_detection nms_score_threshold nms_iou_threshold num_classes"
        " y_scale x_scale h_scale w_scale"
    )
    w = ModelWriter()
    options = bytes(flexbuffers.Dumps(dict.fromkeys(names.split(), 2)))
    w.output(w.op("TFLite_Detection_PostProcess", [w.input((2,))], [(2,)], options))
    attributes = read(w).nodes[0].attributes
    assert attributes.detections_per_class == 100
    assert attributes.use_regular_nms is False
    assert attributes.y_scale == 2.0


@pytest.mark.parametrize(
    ("op", "options", "why"),
    [
        ("Convolution2DTransposeBias", b"", "0 bytes, at least 12"),
        ("Convolution2DTransposeBias", struct.pack("<3i", 0, 1, 1), "padding 0"),
        ("MaxUnpooling2D", struct.pack("<6i", 1, 1, 1, 1, 1, 99), "activation 99"),
        ("TFLite_Detection_PostProcess", b"", "no flexbuffer map"),
        ("TFLite_Detection_PostProcess", bytes(range(40)), "no flexbuffer map"),
    ],
)
def test_custom_options_without_sense_leave_the_node_to_the_cpu(op, options, why):
    w = ModelWriter()
    w.output(w.op(op, [w.input((2,))], [(2,)], options))
    attributes = read(w).nodes[0].attributes
    assert isinstance(attributes, ir.UnreadAttributes)
    assert why in attributes.reason


def test_missing_options_are_zeros_as_in_tflite():
    w = ModelWriter()
    x = w.input((2, 3))
    y = w.op("SOFTMAX", [x], [(2, 3)])
    w.output(y, w.op("CONV_2D", [x, y], [(2, 3)]))
    softmax, conv = read(w).nodes
    assert softmax.attributes == ir.SoftmaxAttributes(beta=0.0)
    assert conv.attributes == ir.Conv2DAttributes(
        stride_w=0, stride_h=0, dilation_w_factor=0, dilation_h_factor=0
    )


def test_options_that_are_not_read_are_no_error():
    w = ModelWriter()
    w.output(w.op("UNIQUE", [w.input((2,))], [(2,)]))
    (node,) = read(w).nodes
    assert node.op == "UNIQUE"
    assert isinstance(node.attributes, ir.UnreadAttributes)


def test_an_operator_newer_than_our_tables_is_no_error(monkeypatch):
    from tflite_vk.testing import model_writer

    monkeypatch.setitem(model_writer._BUILTIN_CODES, "FUTURE_OP", 300)
    w = ModelWriter()
    w.output(w.op("FUTURE_OP", [w.input((2,))], [(2,)]))
    (node,) = read(w).nodes
    assert node.op == "BUILTIN_300"
    assert isinstance(node.attributes, ir.UnreadAttributes)


def test_several_subgraphs_and_signatures():
    w = ModelWriter(description="by hand")
    x = w.input((2,))
    w.output(w.op("NEG", [x], [(2,)]))
    body = w.subgraph("body")
    z = body.input((2,))
    body.output(body.op("WHILE", [z], [(2,)], ir.SubgraphAttributes((1, 1))))
    w.signature("run", {"x": x}, {"y": 1})
    w.add_metadata("min_runtime_version", b"1.2")
    model = read_model(w.build())
    assert [g.name for g in model.subgraphs] == ["main", "body"]
    assert model.subgraphs[1].nodes[0].attributes == ir.SubgraphAttributes((1, 1))
    assert model.signatures[0].key == "run"
    assert dict(model.signatures[0].inputs) == {"x": x}
    assert model.description == "by hand"
    assert model.metadata == ("min_runtime_version",)


@pytest.mark.parametrize("block", [{}, {0: 2}, {1: 4}, {0: 2, 1: 2}])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8])
def test_sparse_constants_are_expanded(block, dtype):
    rng = np.random.default_rng(3)
    dense = rng.integers(-5, 6, (6, 8)).astype(dtype)
    dense[rng.random((6, 8)) < 0.6] = 0
    w = ModelWriter()
    index = w.sparse_const(dense, block)
    w.output(index)
    tensor = read(w).tensors[index]
    assert tensor.is_sparse
    assert np.array_equal(tensor.data, dense)


def test_sparse_constant_of_rank_four_and_without_values():
    for dense in (np.zeros((2, 3), np.float32), np.ones((2, 1, 3, 4), np.float32)):
        w = ModelWriter()
        index = w.sparse_const(dense)
        w.output(index)
        if not dense.any():  # an empty buffer is no constant for TFLite either
            with pytest.raises(ValueError, match="nothing writes tensor 0"):
                read(w)
            continue
        assert np.array_equal(read(w).tensors[index].data, dense)


@pytest.mark.parametrize("offset", [4096, 4097])
def test_weights_past_two_gigabytes_stand_behind_the_flatbuffer(monkeypatch, offset):
    """Buffer.offset and Buffer.size, which files over 2 GB use, work in a small one as well."""
    w = ModelWriter()
    index = w.const(np.arange(4, dtype=np.float32))
    w.output(index)
    payload = w.pool.buffers[1]

    def external(b, data):
        if not data:
            return serialize._table(b, "Buffer")
        return serialize._table(b, "Buffer", Offset=offset, Size=len(data))

    monkeypatch.setattr(serialize, "_buffer", external)
    data = w.build().ljust(offset, b"\0") + payload
    tensor = read_model(data).subgraphs[0].tensors[index]
    assert tensor.data.tolist() == [0, 1, 2, 3]
    assert tensor.data.flags.aligned
    is_view = np.shares_memory(tensor.data, np.frombuffer(data, np.uint8))
    assert is_view == (offset % 4 == 0)
    with pytest.raises(ModelError, match=rf"buffers\[1\]\.offset: bytes {offset} to .* outside"):
        read_model(data[:-1])


def test_bytes_like_sources_are_copied():
    w = ModelWriter()
    index = w.const(np.arange(4, dtype=np.float32))
    w.output(index)
    data = bytearray(w.build())
    tensor = read_model(data).subgraphs[0].tensors[index]
    data[:] = bytes(len(data))
    assert tensor.data.tolist() == [0, 1, 2, 3]


def test_shape_signature_of_a_tensor_spec():
    w = ModelWriter()
    x = w.input((1, 2), shape_signature=(-1, 2))
    spec = TensorSpec((1, 2), name="y", shape_signature=(-1, 2))
    y = w.op("NEG", [x], [spec])
    w.output(y)
    tensor = read(w).tensors[y]
    assert (tensor.name, tensor.shape_signature) == ("y", (-1, 2))
