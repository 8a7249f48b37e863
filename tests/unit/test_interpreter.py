"""The interpreter's methods, on a device that runs nothing; `tests/models` compares results."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import tflite_vk.interpreter.interpreter as module
from tflite_vk.dtypes import DType
from tflite_vk.errors import DeviceError, ModelError, OptionError, UnsupportedOpError
from tflite_vk.interpreter import Interpreter, opening
from tflite_vk.interpreter.subgraph_runner import MAX_SESSIONS
from tflite_vk.ir import attributes as ir
from tflite_vk.ir.graph import Quantization
from tflite_vk.options import DelegateOptions
from tflite_vk.runtime.null import NullDevice
from tflite_vk.testing import ModelWriter, TensorSpec


@pytest.fixture(autouse=True)
def _null_device(monkeypatch):
    monkeypatch.setattr(opening, "open_device", lambda *_, **__: NullDevice())


def no_litert(monkeypatch):
    """As on a machine without LiteRT."""
    for name in list(sys.modules):
        if name.partition(".")[0] == "ai_edge_litert":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "ai_edge_litert", None)


def two_adds():
    """x[-1,4] + k = mid, mid + k = y, outputs y twice and x."""
    w = ModelWriter()
    x = w.input((1, 4), "x", shape_signature=(-1, 4))
    k = w.const(np.arange(4), "k", DType.FLOAT32)
    mid = w.op("ADD", [x, k], [TensorSpec((1, 4), name="mid")], ir.BinaryAttributes())
    y = w.op("ADD", [mid, k], [TensorSpec((1, 4), name="y")], ir.BinaryAttributes())
    w.output(y, y, x)
    w.signature("run", {"a": x}, {"b": y, "c": x})
    return w


X, K, MID, Y = range(4)


@pytest.fixture
def interpreter():
    return Interpreter(model_content=two_adds().build())


@pytest.fixture
def allocated(interpreter):
    interpreter.allocate_tensors()
    return interpreter


def litert(data):
    from ai_edge_litert.interpreter import Interpreter as LiteRt
    from ai_edge_litert.interpreter import OpResolverType

    return LiteRt(model_content=data, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)


# Making one


def test_from_a_path(tmp_path):
    path = tmp_path / "m.tflite"
    path.write_bytes(two_adds().build())
    for given in (path, str(path)):
        assert Interpreter(model_path=given).num_subgraphs() == 1
    with pytest.raises(ModelError, match="can't read the model file"):
        Interpreter(model_path=tmp_path / "other.tflite")


def test_path_or_content():
    with pytest.raises(ValueError, match="must be specified"):
        Interpreter()
    with pytest.raises(ValueError, match="Can't both provide"):
        Interpreter(model_path="x", model_content=b"y")
    with pytest.raises(ModelError, match="model_content: 0 bytes"):
        Interpreter(model_content=b"")


def test_options():
    data = two_adds().build()
    with pytest.raises(OptionError, match="unknown option 'devices'"):
        Interpreter(model_content=data, devices=1)
    with pytest.raises(OptionError):
        Interpreter(model_content=data, options=DelegateOptions(), precision="fp16")
    assert not Interpreter(model_content=data, options=DelegateOptions(fusion=False)).uses_litert


def test_no_device(monkeypatch):
    def fail(*_, **__):
        raise DeviceError("no Vulkan device on this machine")

    monkeypatch.setattr(opening, "open_device", fail)
    with pytest.raises(DeviceError, match="no Vulkan device"):
        Interpreter(model_content=two_adds().build())


def test_litert_is_not_needed(monkeypatch):
    no_litert(monkeypatch)
    interpreter = Interpreter(model_content=two_adds().build())
    interpreter.allocate_tensors()
    interpreter.invoke()
    assert not interpreter.uses_litert


def test_litert_is_missing(monkeypatch):
    no_litert(monkeypatch)
    w = two_adds()
    w.output(w.op("WHERE", [Y], [((1, 2), DType.INT64)]))
    w.output(w.op("MyOperator", [Y], [(1, 4)]))
    with pytest.raises(UnsupportedOpError) as caught:
        Interpreter(model_content=w.build())
    text = str(caught.value)
    assert text.startswith("2 of 4 operators do not run on the device, and LiteRT")
    assert "  WHERE #2: " in text
    assert "  MyOperator #3: custom operator without a kernel" in text
    assert text.endswith("Install it with: pip install 'tflite_vk[litert]'")
    with pytest.raises(UnsupportedOpError, match="ADD #1: Excluded by option excluded_nodes"):
        Interpreter(model_content=two_adds().build(), excluded_nodes=[1])


def test_report(interpreter):
    report = interpreter.report
    assert [n.op for n in report.nodes] == ["ADD", "ADD"]
    assert report.is_fully_delegated
    assert report.num_partitions == 1
    assert report.device == "null"


def test_report_counts_folded_constants_even_if_they_are_outputs(monkeypatch):
    no_litert(monkeypatch)
    w = ModelWriter()
    half = w.half_const(np.arange(4))
    w.output(w.op("ADD", [w.input((4,)), half], [(4,)], ir.BinaryAttributes()), half)
    interpreter = Interpreter(model_content=w.build())
    assert interpreter.report.is_fully_delegated
    interpreter.allocate_tensors()
    interpreter.invoke()
    got = interpreter.get_tensor(half)
    assert got.dtype == np.float32
    assert got.tolist() == [0, 1, 2, 3]


def test_a_model_without_operators():
    w = ModelWriter()
    x = w.input((2, 3))
    c = w.const([1, 2])
    w.output(x, c)
    interpreter = Interpreter(model_content=w.build())
    interpreter.allocate_tensors()
    value = np.arange(6, dtype=np.float32).reshape(2, 3)
    interpreter.set_tensor(x, value)
    interpreter.invoke()
    assert np.array_equal(interpreter.get_tensor(x), value)
    assert interpreter.get_tensor(c).tolist() == [1, 2]


def flatten():
    """What converters write for Flatten and then a dense layer, with an open batch."""
    w = ModelWriter()
    x = w.input((1, 2, 3), "x", shape_signature=(-1, 2, 3))
    shape = w.op("SHAPE", [x], [((3,), DType.INT32)], ir.ShapeAttributes())
    batch = w.op(
        "STRIDED_SLICE",
        [shape, w.const([0]), w.const([1]), w.const([1])],
        [((), DType.INT32)],
        ir.StridedSliceAttributes(shrink_axis_mask=1),
    )
    wanted = w.op("PACK", [batch, w.const(6)], [((2,), DType.INT32)], ir.PackAttributes(2))
    y = w.op("RESHAPE", [x, wanted], [(1, 6)], ir.ReshapeAttributes())
    w.output(w.op("NEG", [y], [(1, 6)]), wanted)
    return w.build()


def test_shapes_are_computed_before_running(monkeypatch):
    no_litert(monkeypatch)
    interpreter = Interpreter(model_content=flatten())
    assert interpreter.report.is_fully_delegated
    assert [n.op for n in interpreter.report.nodes] == [
        "SHAPE", "STRIDED_SLICE", "PACK", "RESHAPE", "NEG",
    ]  # fmt: skip
    for batch in (1, 4, 1):
        interpreter.resize_tensor_input(0, [batch, 2, 3])
        interpreter.allocate_tensors()
        interpreter.invoke()
        y, wanted = (interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details())
        assert y.shape == (batch, 6)
        assert wanted.tolist() == [batch, 6]
        assert wanted.dtype == np.int32


def test_an_excluded_shape_operator_goes_to_litert(monkeypatch):
    no_litert(monkeypatch)
    with pytest.raises(UnsupportedOpError, match="SHAPE #0: Excluded by option excluded_ops"):
        Interpreter(model_content=flatten(), excluded_ops=["SHAPE"])


# Details


def detailed():
    w = ModelWriter()
    q = Quantization((0.5,), (3,))
    x = w.input((1, 4), "x", DType.INT8, q, (-1, 4))
    w.const(np.ones((2, 4), np.int8), "k", quantization=Quantization((0.5, 0.25), (0, 0)))
    w.const(np.ones((3,)), "k4", DType.INT4)
    w.const(["ab"], "s")
    w.const([True], "b")
    w.variable((2,), "v")
    w.tensor(TensorSpec((3,), DType.RESOURCE, name="r"))
    w.output(x)
    return w.build()


def plain(value):
    """A details dictionary as values that compare."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, np.ndarray):
        return (value.dtype, value.tolist())
    return value


@pytest.mark.parametrize("data", [two_adds().build(), detailed()], ids=["two_adds", "detailed"])
def test_details_are_litert_s(data):
    ours, theirs = Interpreter(model_content=data), litert(data)
    for allocate in (False, True):
        if allocate:
            ours.allocate_tensors()
            theirs.allocate_tensors()
        for name in ("get_input_details", "get_output_details", "get_tensor_details"):
            got = [plain(d) for d in getattr(ours, name)()]
            assert got == [plain(d) for d in getattr(theirs, name)()]
    assert ours.get_signature_list() == theirs.get_signature_list()


def test_details_of_a_subgraph_out_of_range(interpreter):
    with pytest.raises(ValueError, match="subgraph_index is out of range: 1"):
        interpreter.get_tensor_details(1)
    with pytest.raises(ValueError, match="subgraph_index is out of range: -1"):
        interpreter.get_tensor(0, -1)


# Setting, running, reading


def test_a_round_trip(allocated):
    value = np.array([[1, 2, 3, 4]], np.float32)
    allocated.set_tensor(X, value)
    allocated.invoke()
    assert np.array_equal(allocated.get_tensor(X), value)
    assert allocated.get_tensor(Y).shape == (1, 4)
    assert allocated.get_tensor(K).tolist() == [0, 1, 2, 3]


def test_values_are_copied_both_ways(allocated):
    value = np.ones((1, 4), np.float32)
    allocated.set_tensor(X, value)
    value[:] = 7
    got = allocated.get_tensor(X)
    got[:] = 8
    assert allocated.get_tensor(X).tolist() == [[1, 1, 1, 1]]


def test_odd_strides_and_integers_of_numpy(allocated):
    allocated.set_tensor(np.int64(X), np.arange(8, dtype=np.float32).reshape(4, 2)[:, :1].T)
    assert allocated.get_tensor(np.int32(X)).tolist() == [[0, 2, 4, 6]]


ZEROS = np.zeros((1, 4), np.float32)


@pytest.mark.parametrize(
    ("index", "value", "error", "match"),
    [
        (X, np.zeros((1, 4)), ValueError, "type FLOAT64 but expected type FLOAT32 for input 0"),
        (X, [[1, 2, 3, 4]], ValueError, "Got value of type INT64"),
        (X, np.zeros(4, np.float32), ValueError, "Got 1 but expected 2 for input 0"),
        (X, np.zeros((1, 5), np.float32), ValueError, "Got 5 but expected 4 for dimension 1"),
        (99, ZEROS, ValueError, "Invalid tensor index 99 exceeds max tensor index 3"),
        (-1, ZEROS, ValueError, "Invalid tensor index -1"),
        (K, np.zeros(4, np.float32), ValueError, "Tensor 1 'k' is a constant"),
        (MID, ZEROS, ValueError, "Tensor 2 'mid' is no input of the model"),
        ("x", ZEROS, TypeError, "integer"),
        (1.0, ZEROS, TypeError, "integer"),
    ],
)
def test_what_can_not_be_set(allocated, index, value, error, match):
    with pytest.raises(error, match=match):
        allocated.set_tensor(index, value)


@pytest.mark.parametrize(
    "value", [np.zeros((1, 4)), np.zeros(4, np.float32), np.zeros((2, 4), "f4")]
)
def test_litert_raises_the_same(allocated, value):
    theirs = litert(two_adds().build())
    theirs.allocate_tensors()
    with pytest.raises(ValueError) as ours:
        allocated.set_tensor(X, value)
    with pytest.raises(ValueError) as expected:
        theirs.set_tensor(X, value)
    assert str(ours.value).strip() == str(expected.value).strip()


def test_before_allocation(interpreter):
    with pytest.raises(ValueError, match="Tensor is unallocated"):
        interpreter.set_tensor(X, ZEROS)
    with pytest.raises(ValueError, match="Tensor data is null"):
        interpreter.get_tensor(Y)
    with pytest.raises(RuntimeError, match="Invoke called on model that is not ready"):
        interpreter.invoke()
    assert interpreter.get_tensor(K).tolist() == [0, 1, 2, 3]


def test_intermediate_tensors_are_not_read(allocated):
    with pytest.raises(ValueError, match=r"Tensor 2 'mid' is intermediate.*Add it to the outputs"):
        allocated.get_tensor(MID)
    with pytest.raises(ValueError, match="Invalid tensor index 4"):
        allocated.get_tensor(4)


def test_views(allocated):
    view = allocated.tensor(X)
    view()[:] = 5
    assert allocated.get_tensor(X).tolist() == [[5, 5, 5, 5]]
    kept = view()
    allocated.invoke()  # LiteRT refuses while `kept` lives; here it does no harm
    assert kept.tolist() == [[5, 5, 5, 5]]
    with pytest.raises(ValueError):
        allocated.tensor(K)()[:] = 1
    with pytest.raises(ValueError, match="Invalid tensor index 9"):
        allocated.tensor(9)()


# Resizing


def test_resize(allocated):
    allocated.resize_tensor_input(X, [3, 4])
    assert allocated.get_input_details()[0]["shape"].tolist() == [3, 4]
    assert allocated.get_output_details()[0]["shape"].tolist() == [1, 4]
    with pytest.raises(RuntimeError, match="not ready"):
        allocated.invoke()
    with pytest.raises(ValueError, match="unallocated"):
        allocated.set_tensor(X, np.zeros((3, 4), np.float32))
    allocated.allocate_tensors()
    assert allocated.get_output_details()[0]["shape"].tolist() == [3, 4]
    allocated.set_tensor(X, np.zeros((3, 4), np.float32))
    allocated.invoke()
    assert allocated.get_tensor(Y).shape == (3, 4)


def test_resize_to_the_same_shape_needs_no_allocation(allocated):
    allocated.resize_tensor_input(X, np.array([1, 4]))
    allocated.invoke()


def test_resize_to_another_rank(allocated):
    allocated.resize_tensor_input(X, [2, 3, 4])
    allocated.allocate_tensors()
    assert allocated.get_output_details()[0]["shape"].tolist() == [2, 3, 4]


def test_resize_to_nothing(allocated):
    allocated.resize_tensor_input(X, [0, 4])
    allocated.allocate_tensors()
    allocated.set_tensor(X, np.zeros((0, 4), np.float32))
    allocated.invoke()
    assert allocated.get_tensor(Y).shape == (0, 4)


def test_strict(allocated):
    allocated.resize_tensor_input(X, [5, 4], strict=True)
    with pytest.raises(RuntimeError, match="dimension 1 of tensor 0 with value 4 to 5"):
        allocated.resize_tensor_input(X, [5, 5], strict=True)
    with pytest.raises(RuntimeError, match="rank 1, its own is 2"):
        allocated.resize_tensor_input(X, [5], strict=True)


@pytest.mark.parametrize(
    ("index", "shape", "match"),
    [
        (99, [1], "tensor 99: it is no input"),
        (K, [1], "tensor 1: it is no input"),
        (MID, [1], "tensor 2: it is no input"),
        (X, [-1, 4], "has a negative size"),
    ],
)
def test_what_can_not_be_resized(allocated, index, shape, match):
    with pytest.raises(RuntimeError, match=match):
        allocated.resize_tensor_input(index, shape)


def test_shapes_that_do_not_fit(allocated):
    allocated.resize_tensor_input(X, [3, 5])
    with pytest.raises(RuntimeError, match=r"Cannot allocate tensors: ADD #0: .*\[3, 5\]"):
        allocated.allocate_tensors()
    with pytest.raises(RuntimeError, match="not ready"):
        allocated.invoke()
    allocated.resize_tensor_input(X, [2, 4])
    allocated.allocate_tensors()
    allocated.invoke()


class Compiled:
    """Counts what the interpreter compiles and closes."""

    def __init__(self, monkeypatch):
        self.made = self.closed = 0
        original = module.Session.of

        def make(*args, **keywords):
            self.made += 1
            session = original(*args, **keywords)
            close = session.close

            def count():
                self.closed += 1
                close()

            session.close = count
            return session

        monkeypatch.setattr(module.Session, "of", make)


def test_a_shape_is_compiled_once(monkeypatch):
    compiled = Compiled(monkeypatch)
    interpreter = Interpreter(model_content=two_adds().build())
    assert compiled.made == 0
    for batch in (1, 2, 1, 2, 1):
        interpreter.resize_tensor_input(X, [batch, 4])
        interpreter.allocate_tensors()
        interpreter.allocate_tensors()
        interpreter.invoke()
        assert interpreter.get_tensor(Y).shape == (batch, 4)
    assert compiled.made == 2


def test_compiled_shapes_are_bounded_and_freed(monkeypatch):
    compiled = Compiled(monkeypatch)
    interpreter = Interpreter(model_content=two_adds().build())
    for batch in range(1, MAX_SESSIONS + 3):
        interpreter.resize_tensor_input(X, [batch, 4])
        interpreter.allocate_tensors()
        interpreter.invoke()
    assert (compiled.made, compiled.closed) == (MAX_SESSIONS + 2, 2)
    interpreter.close()
    assert compiled.closed == compiled.made


# Signatures


def test_signature(interpreter):
    runner = interpreter.get_signature_runner()
    for batch in (1, 3):
        value = np.full((batch, 4), 2, np.float32)
        got = runner(a=value)
        assert list(got) == ["b", "c"]
        assert np.array_equal(got["c"], value)
        assert got["b"].shape == (batch, 4)
    assert runner.get_input_details()["a"]["shape"].tolist() == [3, 4]
    assert runner.get_output_details()["b"]["index"] == Y
    assert interpreter.get_signature_runner("run") is not runner


def test_signature_errors(interpreter):
    with pytest.raises(ValueError, match='Invalid signature_key provided: "no"'):
        interpreter.get_signature_runner("no")
    runner = interpreter.get_signature_runner()
    with pytest.raises(ValueError, match="expected 1 vs provided 0"):
        runner()
    with pytest.raises(ValueError, match=r"Invalid Input name \(b\)"):
        runner(b=ZEROS)
    with pytest.raises(ValueError, match="FLOAT64 but expected type FLOAT32"):
        runner(a=np.zeros((1, 4)))
    with pytest.raises(RuntimeError, match="ADD #0"):
        runner(a=np.zeros((1, 5), np.float32))
    assert runner(a=ZEROS)["b"].shape == (1, 4)


def test_a_key_is_needed_where_there_are_several():
    w = two_adds()
    w.signature("again", {"a": X}, {"b": Y})
    interpreter = Interpreter(model_content=w.build())
    with pytest.raises(ValueError, match="model has 2 Signatures"):
        interpreter.get_signature_runner()
    with pytest.raises(ValueError, match="model has 0 Signatures"):
        Interpreter(model_content=detailed()).get_signature_runner()


def test_signatures_on_different_subgraphs(monkeypatch):
    no_litert(monkeypatch)
    weights = np.arange(4, dtype=np.float32)
    w = two_adds()
    g = w.subgraph("other")
    x = g.input((2, 4))
    y = g.op("MUL", [x, g.const(weights)], [(2, 4)], ir.BinaryAttributes())
    g.output(y)
    w.signature("other", {"x": x}, {"y": y}, g)
    interpreter = Interpreter(model_content=w.build())
    one, other = (interpreter.get_signature_runner(k) for k in ("run", "other"))
    for _ in range(2):
        assert one(a=np.ones((3, 4), np.float32))["b"].shape == (3, 4)
        assert other(x=np.ones((2, 4), np.float32))["y"].shape == (2, 4)
    assert interpreter.report.num_nodes == 3
    assert [n.subgraph for n in interpreter.report.nodes] == [0, 0, 1]
    assert interpreter.get_tensor(x, 1).tolist() == [[1] * 4] * 2


def test_a_subgraph_without_signature_is_not_run(monkeypatch):
    no_litert(monkeypatch)
    w = two_adds()
    g = w.subgraph("unused")
    x = g.input((2,))
    g.output(g.op("WHERE", [x], [((1, 2), DType.INT64)]))
    interpreter = Interpreter(model_content=w.build())
    assert not interpreter.uses_litert
    assert len(interpreter.get_tensor_details(1)) == 2
    with pytest.raises(ValueError, match="Subgraph 1 is not run by itself"):
        interpreter.get_tensor(x, 1)


# Closing


def test_close(interpreter):
    runner = interpreter.get_signature_runner()
    with interpreter as same:
        assert same is interpreter
        same.allocate_tensors()
    interpreter.close()
    for call in (
        interpreter.invoke,
        interpreter.allocate_tensors,
        interpreter.reset_all_variables,
        lambda: interpreter.set_tensor(X, ZEROS),
        lambda: interpreter.get_tensor(K),
        lambda: interpreter.tensor(X),
        lambda: interpreter.resize_tensor_input(X, [2, 4]),
        lambda: runner(a=ZEROS),
    ):
        with pytest.raises(RuntimeError, match="The interpreter is closed"):
            call()


def test_reset_all_variables(allocated):
    allocated.reset_all_variables()
    allocated.invoke()


def test_a_bad_model_is_what_is_said_where_there_is_no_device_either(monkeypatch):
    def none(*_, **__):
        raise DeviceError("no Vulkan device on this machine")

    monkeypatch.setattr(opening, "open_device", none)
    with pytest.raises(ModelError, match="cut short"):
        Interpreter(model_content=b"TFL3")
    with pytest.raises(DeviceError, match="no Vulkan device"):
        Interpreter(model_content=two_adds().build())
