"""The delegate inside LiteRT's interpreter, with NumPy for a device: what users see of a run."""

import numpy as np
import pytest

from tests.delegate.fake import Log, fake_delegate, random, run
from tflite_vk.delegate import callbacks
from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import BinaryAttributes, ReshapeAttributes, SubgraphAttributes
from tflite_vk.testing.model_writer import ModelWriter, TensorSpec

litert = pytest.importorskip("ai_edge_litert.interpreter")

NONE = BinaryAttributes()


def interpreters(model, delegate):
    """One with the delegate and one of TFLite's own."""
    both = (
        litert.Interpreter(model_content=model, experimental_delegates=[delegate]),
        litert.Interpreter(model_content=model),
    )
    for i in both:
        i.allocate_tensors()
    return both


def assert_same(pair, *inputs):
    for got, expected in zip(*(run(i, *inputs) for i in pair), strict=True):
        assert got.shape == expected.shape
        np.testing.assert_array_equal(got, expected)


def spec(*shape, signature=None, dtype=DType.FLOAT32):
    return TensorSpec(shape, dtype, shape_signature=signature)


def test_all_nodes_on_the_device():
    w = ModelWriter()
    x, c = w.input((2, 3)), w.const(random(3))
    w.output(
        w.op(
            "RELU",
            [w.op("MUL", [w.op("ADD", [x, c], [(2, 3)], NONE), c], [(2, 3)], NONE)],
            [(2, 3)],
        )
    )
    log = Log()
    delegate = fake_delegate(log)
    pair = interpreters(w.build(), delegate)
    for seed in range(3):
        assert_same(pair, random(2, 3, seed=seed))
    assert (len(log.compiled), log.runs) == (1, 3)
    assert delegate.report.is_fully_delegated
    assert str(delegate.report) == "All 3 operations will run on the GPU (fake), in 1 partition."


def test_cpu_in_the_middle():
    w = ModelWriter()
    y = w.op("NEG", [w.input((4,))], [(4,)])
    w.output(w.op("NEG", [w.op("ABS", [y], [(4,)])], [(4,)]))
    delegate = fake_delegate()
    assert_same(interpreters(w.build(), delegate), random(4))
    assert [n.partition for n in delegate.report.nodes] == [0, None, 1]
    assert delegate.report.nodes[1].reason == "not in the fake"


def test_outputs_of_every_kind():
    # Chain 0 -> 1 -> 2 with outputs in reverse order, an input and a constant among the outputs,
    # and one output twice.
    w = ModelWriter()
    x, c = w.input((4,)), w.const(random(4))
    a = w.op("NEG", [x], [(4,)])
    b = w.op("RELU", [a], [(4,)])
    d = w.op("ADD", [b, b], [(4,)], NONE)
    w.output(d, b, x, c, a)
    delegate = fake_delegate()
    pair = interpreters(w.build(), delegate)
    assert_same(pair, random(4))
    assert_same(pair, random(4, seed=1))
    assert delegate.report.is_fully_delegated


def test_the_callers_array_is_untouched():
    w = ModelWriter()
    w.output(w.op("NEG", [w.op("RELU", [w.input((4,))], [(4,)])], [(4,)]))
    value = random(4)
    before = value.copy()
    assert_same(interpreters(w.build(), fake_delegate()), value)
    np.testing.assert_array_equal(value, before)


def test_no_node_is_taken():
    w = ModelWriter()
    w.output(w.op("ABS", [w.input((4,))], [(4,)]))
    delegate = fake_delegate()
    assert_same(interpreters(w.build(), delegate), random(4))
    assert (delegate.report.num_delegated, delegate.report.num_partitions) == (0, 0)


def test_graph_without_nodes():
    w = ModelWriter()
    w.output(w.input((4,)))
    delegate = fake_delegate()
    assert_same(interpreters(w.build(), delegate), random(4))
    assert delegate.report.num_nodes == 0


def test_half_constants_are_folded():
    w = ModelWriter()
    x = w.input((4,))
    shared, own = w.half_const(random(4)), w.half_const(random(4, seed=1))
    y = w.op("ADD", [w.op("MUL", [x, own], [(4,)], NONE), shared], [(4,)], NONE)
    w.output(w.op("MAXIMUM", [y, shared], [(4,)]))
    log = Log()
    delegate = fake_delegate(log)
    assert_same(interpreters(w.build(), delegate), random(4))
    nodes = {n.index: n for n in delegate.report.nodes}
    assert [n.op for n in delegate.report.nodes].count("DEQUANTIZE") == 2
    # The one that only the device reads counts to it; the other is there for the CPU too.
    assert nodes[1].delegated
    assert nodes[1].partition == 0
    assert nodes[0].reason == "A constant, also read by CPU node 4."
    assert "DEQUANTIZE" not in str(delegate.report).split("supported but")[0]
    assert [n.op for g in log.compiled for n in g.nodes] == ["MUL", "ADD"]


def test_folded_nodes_alone_are_a_kernel_that_does_nothing():
    # TFLite runs constants first: its first group is the DEQUANTIZE alone.
    w = ModelWriter()
    half = w.half_const(random(4))
    y = w.op("ABS", [w.input((4,))], [(4,)])
    w.output(w.op("ADD", [y, half], [(4,)], NONE))
    log = Log()
    delegate = fake_delegate(log)
    assert_same(interpreters(w.build(), delegate), random(4))
    assert delegate.report.num_partitions == 1
    assert delegate.report.num_delegated == 2
    assert log.runs == 1


class TestResize:
    def model(self):
        w = ModelWriter()
        x = w.input((1, 4), shape_signature=(-1, 4))
        y = w.op("MUL", [x, w.const(np.float32(2))], [spec(1, 4, signature=(-1, 4))], NONE)
        z = w.op("RELU", [y], [spec(1, 4, signature=(-1, 4))])
        w.output(w.op("ABS", [z], [spec(1, 4, signature=(-1, 4))]), z)
        return w.build()

    def resize(self, pair, *shape):
        for i in pair:
            i.resize_tensor_input(i.get_input_details()[0]["index"], shape)
            i.allocate_tensors()

    def test_compiles_once_for_each_shape(self):
        log = Log()
        pair = interpreters(self.model(), fake_delegate(log))
        for rows in (1, 3, 1, 3, 2):
            self.resize(pair, rows, 4)
            assert_same(pair, random(rows, 4))
        assert [g.tensors[g.inputs[0]].shape[0] for g in log.compiled] == [1, 3, 2]

    def test_where_tflite_undoes_the_delegate(self):
        # So do runtimes whose XNNPACK allows no dynamic tensors, such as tflite_runtime 2.14.
        log = Log()
        delegate = fake_delegate(log)
        callbacks._structures[delegate._address].flags = 0
        pair = interpreters(self.model(), delegate)
        for rows in (3, 1, 2):
            self.resize(pair, rows, 4)
            assert_same(pair, random(rows, 4))
            assert delegate.report.num_delegated == 2
        assert delegate.report.num_nodes == 3
        assert len(log.compiled) - log.closed == 1

    def test_old_shapes_are_let_go(self):
        log = Log()
        pair = interpreters(self.model(), fake_delegate(log))
        for rows in range(1, 10):
            self.resize(pair, rows, 4)
            assert_same(pair, random(rows, 4))
        assert len(log.compiled) - log.closed == 4

    def test_before_the_first_allocation(self):
        i = litert.Interpreter(model_content=self.model(), experimental_delegates=[fake_delegate()])
        i.resize_tensor_input(i.get_input_details()[0]["index"], (5, 4))
        i.allocate_tensors()
        x = random(5, 4)
        np.testing.assert_array_equal(run(i, x)[1], np.maximum(x * 2, 0))

    def test_to_nothing_and_back(self):
        pair = interpreters(self.model(), fake_delegate())
        i = pair[0]
        i.resize_tensor_input(i.get_input_details()[0]["index"], (0, 4))
        i.allocate_tensors()
        i.invoke()
        assert tuple(i.get_output_details()[1]["shape"]) == (0, 4)
        self.resize(pair, 2, 4)
        assert_same(pair, random(2, 4))

    def test_a_shape_that_cannot_run_is_a_clean_error(self):
        def unsupported(node, graph):
            return "too long" if graph.output(node).shape[0] > 4 else None

        def fail(graph):
            from tflite_vk.errors import UnsupportedOpError

            for node in graph.nodes:
                if unsupported(node, graph):
                    raise UnsupportedOpError(f"{node.op} #{node.index}: too long")

        pair = interpreters(self.model(), fake_delegate(fail=fail))
        i = pair[0]
        i.resize_tensor_input(i.get_input_details()[0]["index"], (5, 4))
        with pytest.raises(RuntimeError, match=r"MUL #0: too long.*\[5, 4\].*excluded_nodes"):
            i.allocate_tensors()
        self.resize(pair, 2, 4)
        assert_same(pair, random(2, 4))

    def test_shapes_that_do_not_fit(self):
        w = ModelWriter()
        x, y = w.input((4,)), w.input((4,))
        w.output(w.op("ADD", [x, y], [(4,)], NONE))
        i = litert.Interpreter(model_content=w.build(), experimental_delegates=[fake_delegate()])
        i.resize_tensor_input(x, (3,))
        with pytest.raises(RuntimeError):
            i.allocate_tensors()

    def test_reshape_to_a_computed_shape(self):
        # TFLite's own kernels propagate what the delegate does not run.
        w = ModelWriter()
        x = w.input((1, 2, 2), shape_signature=(-1, 2, 2))
        y = w.op("RELU", [x], [spec(1, 2, 2, signature=(-1, 2, 2))])
        shape = w.const([-1, 4])
        z = w.op("RESHAPE", [y, shape], [spec(1, 4, signature=(-1, 4))], ReshapeAttributes((-1, 4)))
        w.output(w.op("NEG", [z], [spec(1, 4, signature=(-1, 4))]))
        pair = interpreters(w.build(), fake_delegate())
        assert_same(pair, random(1, 2, 2))
        self.resize(pair, 3, 2, 2)
        assert_same(pair, random(3, 2, 2))


class TestDynamic:
    def test_where_tail_stays_on_the_cpu(self):
        w = ModelWriter()
        x = w.input((8,))
        y = w.op("NEG", [w.op("RELU", [x], [(8,)])], [(8,)])
        flags = w.op("LESS", [y, w.const(np.float32(0))], [((8,), DType.BOOL)])
        where = w.op("WHERE", [flags], [spec(1, 1, signature=(-1, 1), dtype=DType.INT64)])
        picked = w.op("GATHER_ND", [y, where], [spec(1, signature=(-1,))])
        w.output(w.op("NEG", [picked], [spec(1, signature=(-1,))]), y)
        delegate = fake_delegate()
        pair = interpreters(w.build(), delegate)
        for seed in range(4):
            assert_same(pair, random(8, seed=seed))
        reasons = {n.index: n.reason for n in delegate.report.nodes}
        assert reasons[0] is None
        assert reasons[1] is None
        assert "only while running" in reasons[5]

    def test_a_kernel_behind_a_dynamic_tensor_resizes_its_outputs(self, monkeypatch):
        # What happens where the rule for dynamic tensors misses one.
        monkeypatch.setattr("tflite_vk.frontend.context.mark_dynamic", lambda graph: graph)
        w = ModelWriter()
        x = w.input((8,))
        flags = w.op("LESS", [x, w.const(np.float32(0))], [((8,), DType.BOOL)])
        where = w.op("WHERE", [flags], [spec(1, 1, dtype=DType.INT64)])
        picked = w.op("GATHER_ND", [x, where], [(1,)])
        w.output(w.op("ADD", [w.op("NEG", [picked], [(1,)]), picked], [(1,)], NONE))
        delegate = fake_delegate()
        pair = interpreters(w.build(), delegate)
        for seed in range(6):
            assert_same(pair, random(8, seed=seed))
        assert delegate.report.num_delegated == 2


class TestSubgraphs:
    def test_branches_are_delegated_too(self):
        w = ModelWriter()
        x, flag = w.input((4,)), w.input((), dtype=DType.BOOL)
        branches = []
        for op in ("NEG", "ABS"):
            s = w.subgraph(op)
            s.output(s.op(op, [s.op("RELU", [s.input((4,))], [(4,)])], [(4,)]))
            branches.append(s.index)
        y = w.op("NEG", [x], [(4,)])
        w.output(w.op("IF", [flag, y], [(4,)], SubgraphAttributes(tuple(branches))))
        log = Log()
        delegate = fake_delegate(log)
        pair = interpreters(w.build(), delegate)
        for value in (True, False, True):
            assert_same(pair, random(4, seed=value), np.bool_(value))
        report = delegate.report
        assert [(n.subgraph, n.index, n.op) for n in report.nodes] == [
            (0, 0, "NEG"),
            (0, 1, "IF"),
            (1, 0, "RELU"),
            (1, 1, "NEG"),
            (2, 0, "RELU"),
            (2, 1, "ABS"),
        ]
        assert [n.partition for n in report.nodes] == [0, None, 1, 1, 2, None]

    def test_signatures_with_shared_weights(self):
        w = ModelWriter()
        s = w.subgraph("other")
        weights = random(4)
        for writer, op in ((w, "ADD"), (s, "MUL")):
            x = writer.input((4,))
            y = writer.op(op, [x, writer.const(weights)], [(4,)], NONE)
            z = writer.op("ABS", [y], [(4,)]) if op == "MUL" else y
            writer.output(z)
            w.signature(op.lower(), {"x": x}, {"y": z}, writer)
        delegate = fake_delegate()
        i = litert.Interpreter(model_content=w.build(), experimental_delegates=[delegate])
        x = random(4, seed=3)
        add, mul = i.get_signature_runner("add"), i.get_signature_runner("mul")
        for _ in range(2):
            np.testing.assert_array_equal(add(x=x)["y"], x + weights)
            np.testing.assert_array_equal(mul(x=x)["y"], np.abs(x * weights))
        assert (delegate.report.num_nodes, delegate.report.num_delegated) == (3, 2)


def test_one_delegate_for_two_interpreters():
    log = Log()
    delegate = fake_delegate(log)
    one, two = ModelWriter(), ModelWriter()
    one.output(one.op("NEG", [one.input((4,))], [(4,)]))
    two.output(two.op("ABS", [two.op("RELU", [two.input((3,))], [(3,)])], [(3,)]))
    first = interpreters(one.build(), delegate)
    assert delegate.report.num_nodes == 1
    second = interpreters(two.build(), delegate)
    assert [n.op for n in delegate.report.nodes] == ["RELU", "ABS"]
    for seed in range(2):
        assert_same(first, random(4, seed=seed))
        assert_same(second, random(3, seed=seed))
    del second
    assert log.closed == 1
    assert_same(first, random(4, seed=9))


def test_a_variable_that_is_only_read():
    w = ModelWriter()
    x = w.input((1, 4))
    state = w.variable((1, 4))
    w.output(w.op("ADD", [x, state], [(1, 4)], NONE))
    delegate = fake_delegate()
    pair = interpreters(w.build(), delegate)
    assert delegate.report.is_fully_delegated
    assert_same(pair, random(1, 4))
    for i in pair:
        i.set_tensor(state, random(1, 4, seed=7))
    assert_same(pair, random(1, 4))
    for i in pair:
        i.reset_all_variables()
    assert_same(pair, random(1, 4))


def test_a_variable_that_is_an_output_stays_on_the_cpu():
    w = ModelWriter()
    x = w.input((1, 4))
    state = w.variable((1, 4))
    w.op_into("NEG", [x], [state])
    w.output(w.op("RELU", [x], [(1, 4)]))
    delegate = fake_delegate()
    assert_same(interpreters(w.build(), delegate), random(1, 4))
    assert "is a variable (supported" in delegate.report.nodes[0].reason
    assert delegate.report.nodes[1].delegated


def test_shapes_that_the_converter_left_out():
    w = ModelWriter()
    x, c = w.input((2, 3)), w.const(random(3))
    y = w.op("MUL", [w.op("ADD", [x, c], [()], NONE), c], [()], NONE)
    w.output(w.op("NEG", [w.op("ABS", [y], [()])], [()]), y)
    delegate = fake_delegate()
    assert_same(interpreters(w.build(), delegate), random(2, 3))
    assert [n.delegated for n in delegate.report.nodes] == [True, True, False, True]
