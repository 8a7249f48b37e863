"""STABLEHLO_COMPOSITE: its decomposition runs in its place, or TFLite calls it."""

from __future__ import annotations

import numpy as np
import pytest

import tflite_vk
from tests.support.oracle import reference
from tflite_vk.dtypes import DType
from tflite_vk.frontend.flatbuffer import read_model
from tflite_vk.interpreter.plan import plan_subgraph
from tflite_vk.ir.attributes import (
    BinaryAttributes,
    GatherAttributes,
    PackAttributes,
    ReducerAttributes,
    ShapeAttributes,
    StablehloCompositeAttributes,
    StridedSliceAttributes,
)
from tflite_vk.ir.verify import verify_graph
from tflite_vk.passes.inline_composites import inline_composites
from tflite_vk.testing.model_writer import ModelWriter, SubgraphWriter, TensorSpec

NONE = BinaryAttributes()
S = (2, 3, 5)


def composite(w: SubgraphWriter, body: SubgraphWriter, inputs, outputs, name="odml.any"):
    a = StablehloCompositeAttributes(name, body.index)
    return w.multi_op("STABLEHLO_COMPOSITE", inputs, outputs, a)


def rms_norm(w: ModelWriter) -> SubgraphWriter:
    """What converters make of a normalization: x / sqrt(mean(x * x) + eps) * scale."""
    s = w.subgraph("rms_norm")
    scale, x = s.input((5,)), s.input(S)
    square = s.op("MUL", [x, x], [S], NONE)
    mean = s.op("MEAN", [square, s.const(np.array([-1], np.int32))], [(2, 3, 1)], ReducerAttributes(True))  # fmt: skip
    root = s.op("RSQRT", [s.op("ADD", [mean, s.const(np.float32(1e-3))], [(2, 3, 1)], NONE)], [(2, 3, 1)])  # fmt: skip
    normal = s.op("MUL", [x, root], [S], NONE)
    weights = s.half_const(np.full((5,), 0.5, np.float16))
    scaled = s.op("MUL", [normal, s.op("MUL", [scale, weights], [(5,)], NONE)], [S], NONE)
    s.output(scaled, root)
    return s


def two_norms(*, unknown: bool = False) -> bytes:
    """Two calls of one body, the second one's input the first one's output."""
    w = ModelWriter()
    body = rms_norm(w)
    if unknown:
        flags = body.op("LESS", [body.inputs[1], body.const(np.float32(0))], [(S, DType.BOOL)])
        body.op("WHERE", [flags], [TensorSpec((0, 3), DType.INT64, shape_signature=(-1, 3))])
    x, scale = w.input(S), w.input((5,))
    y, _ = composite(w, body, [scale, w.op("NEG", [x], [S])], [S, (2, 3, 1)])
    z, root = composite(w, body, [scale, y], [S, (2, 3, 1)])
    w.output(w.op("RELU", [z], [S]), root)
    return w.build()


def values(*shapes):
    rng = np.random.default_rng(3)
    return [rng.uniform(-2, 2, s).astype(np.float32) for s in shapes]


def run(interpreter, inputs):
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


def inlined(data: bytes):
    model = read_model(data)
    graph = inline_composites(model.subgraphs[0], model.subgraphs.__getitem__)
    verify_graph(graph)
    return graph


def check(data: bytes, inputs, **options):
    with tflite_vk.Interpreter(model_content=data, **options) as interpreter:
        for got, want in zip(run(interpreter, inputs), reference(data, inputs), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
        return interpreter.report, interpreter.uses_litert


def test_operators_keep_the_index_of_their_composite():
    graph = inlined(two_norms())
    assert [n.op for n in graph.nodes if n.index == 1] == [
        "MUL",
        "MEAN",
        "ADD",
        "RSQRT",
        "MUL",
        "MUL",
        "MUL",
    ]
    assert [n.index for n in graph.nodes] == [0, *[1] * 7, *[2] * 7, 3]
    assert {n.is_inlined for n in graph.nodes if n.index in (1, 2)} == {True}


def test_a_graph_without_composites_is_itself():
    w = ModelWriter()
    w.output(w.op("RELU", [w.input(S)], [S]))
    graph = read_model(w.build()).subgraphs[0]
    assert inline_composites(graph, lambda _: None) is graph


@pytest.mark.usefixtures("device")
class TestRun:
    def test_two_calls_of_one_body(self):
        report, uses_litert = check(two_norms(), values(S, (5,)))
        assert not uses_litert
        assert report.is_fully_delegated
        assert [n.op for n in report.nodes if n.subgraph == 0] == [
            "NEG", "STABLEHLO_COMPOSITE", "STABLEHLO_COMPOSITE", "RELU",
        ]  # fmt: skip
        assert report.num_partitions == 1

    def test_other_shapes(self):
        data = two_norms()
        with tflite_vk.Interpreter(model_content=data) as interpreter:
            interpreter.resize_tensor_input(0, (4, 3, 5))
            x, scale = values((4, 3, 5), (5,))
            got = run(interpreter, [x, scale])[0]
            assert got.shape == (4, 3, 5)
            np.testing.assert_array_equal(got[:1], run(interpreter, [x, scale])[0][:1])

    def test_one_operator_that_the_cpu_needs_keeps_the_whole_composite_there(self):
        report, uses_litert = check(two_norms(unknown=True), values(S, (5,)))
        assert uses_litert
        main = [n for n in report.nodes if n.subgraph == 0]
        assert [n.delegated for n in main] == [True, False, False, True]

    def test_the_reason_names_the_operator_inside(self, device):
        data = two_norms(unknown=True)
        options = tflite_vk.DelegateOptions()
        model = read_model(data)
        graph = inline_composites(model.subgraphs[0], model.subgraphs.__getitem__)
        plan = plan_subgraph(model.subgraphs[0], graph, options, device.info)
        assert not plan.is_taken
        reasons = {n.reason for n in plan.report.nodes if n.op == "STABLEHLO_COMPOSITE"}
        assert reasons == {"WHERE inside it: no kernel for this operator"}

    def test_a_composite_in_a_composite(self):
        w = ModelWriter()
        inner = w.subgraph("inner")
        inner.output(inner.op("EXP", [inner.input(S)], [S]))
        outer = w.subgraph("outer")
        x = outer.input(S)
        (y,) = composite(outer, inner, [outer.op("NEG", [x], [S])], [S])
        outer.output(outer.op("ADD", [y, x], [S], NONE))
        w.output(*composite(w, outer, [w.input(S)], [S]))
        report, uses_litert = check(w.build(), values(S))
        assert not uses_litert
        assert report.num_delegated == 1

    def test_shape_arithmetic_inside(self):
        """Of one composite a part is computed before running, another whole."""
        w = ModelWriter()
        size = w.subgraph("size")
        shape = size.op("SHAPE", [size.input(S)], [((3,), DType.INT32)], ShapeAttributes())
        size.output(size.op("GATHER", [shape, size.const(np.array([0, 1], np.int32))], [((2,), DType.INT32)], GatherAttributes(0)))  # fmt: skip
        flat = w.subgraph("flat")
        x = flat.input(S)
        dims = flat.op("SHAPE", [x], [((3,), DType.INT32)], ShapeAttributes())
        one = [flat.const(np.array([i], np.int32)) for i in (0, 1, 1)]
        batch = flat.op("STRIDED_SLICE", [dims, *one], [((), DType.INT32)], StridedSliceAttributes(shrink_axis_mask=1))  # fmt: skip
        target = flat.op(
            "PACK",
            [batch, flat.const(np.array(-1, np.int32))],
            [((2,), DType.INT32)],
            PackAttributes(2),
        )
        flat.output(flat.op("RESHAPE", [flat.op("NEG", [x], [S]), target], [(2, 15)]))
        x = w.input(S)
        (dims,) = composite(w, size, [x], [((2,), DType.INT32)])
        w.output(dims, *composite(w, flat, [x], [(2, 15)]))
        (value,) = values(S)
        # LiteRT itself ends the process at SHAPE inside a composite.
        with tflite_vk.Interpreter(model_content=w.build()) as interpreter:
            first, second = run(interpreter, [value])
            assert first.tolist() == [2, 3]
            np.testing.assert_array_equal(second, -value.reshape(2, 15))
            assert interpreter.report.is_fully_delegated


@pytest.mark.usefixtures("device")
class TestLeftToTheCpu:
    def left(self, data: bytes) -> None:
        graph = inlined(data)
        assert any(n.op == "STABLEHLO_COMPOSITE" for n in graph.nodes)
        report, uses_litert = check(data, values(S))
        assert uses_litert
        reasons = {n.reason for n in report.nodes if n.op == "STABLEHLO_COMPOSITE"}
        assert reasons == {"calls subgraphs from the CPU, their operators may run on the device"}

    def test_an_input_passed_on(self):
        w = ModelWriter()
        body = w.subgraph("body")
        x = body.input(S)
        body.output(x, body.op("NEG", [x], [S]))
        w.output(*composite(w, body, [w.op("ABS", [w.input(S)], [S])], [S, S]))
        self.left(w.build())

    def test_a_constant_passed_on(self):
        w = ModelWriter()
        body = w.subgraph("body")
        x = body.input(S)
        body.output(body.const(np.ones(S, np.float32)), body.op("NEG", [x], [S]))
        w.output(*composite(w, body, [w.input(S)], [S, S]))
        self.left(w.build())


def test_one_that_calls_itself_ends():
    w = ModelWriter()
    body = w.subgraph("body")
    y = composite(body, body, [body.input(S)], [S])
    body.output(body.op("NEG", list(y), [S]))
    w.output(*composite(w, body, [w.input(S)], [S]))
    graph = inlined(w.build())
    assert [n.op for n in graph.nodes] == ["STABLEHLO_COMPOSITE", "NEG"]


@pytest.mark.usefixtures("device")
def test_through_the_delegate_its_operators_are_delegated_by_themselves():
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    data, inputs = two_norms(), values(S, (5,))
    delegate = tflite_vk.VulkanDelegate()
    interpreter = litert.Interpreter(model_content=data, experimental_delegates=[delegate])
    for got, want in zip(run(interpreter, inputs), reference(data, inputs), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    inside = [n for n in delegate.report.nodes if n.subgraph == 1]
    assert [n.op for n in inside if n.delegated and n.op != "DEQUANTIZE"] == [
        "MUL", "MEAN", "ADD", "RSQRT", "MUL", "MUL", "MUL",
    ]  # fmt: skip
    assert {n.op for n in delegate.report.nodes if not n.delegated} == {"STABLEHLO_COMPOSITE"}
