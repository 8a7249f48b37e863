"""What is delegated: options, and our partitioner against TFLite's own."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.delegate.fake import Log, fake_delegate, random, run
from tflite_vk.ir.attributes import BinaryAttributes
from tflite_vk.testing.model_writer import ModelWriter

litert = pytest.importorskip("ai_edge_litert.interpreter")

NONE = BinaryAttributes()


def chain(*ops):
    w = ModelWriter()
    x = w.input((4,))
    for op in ops:
        x = w.op(op, [x], [(4,)])
    w.output(x)
    return w.build()


def load(model, delegate, **keywords):
    i = litert.Interpreter(model_content=model, experimental_delegates=[delegate], **keywords)
    i.allocate_tensors()
    return i


SEVEN = chain("NEG", "ABS", "NEG", "RELU", "ABS", "RELU", "NEG", "RELU")


@pytest.mark.parametrize(
    ("options", "delegated"),
    [
        ({}, [0, 2, 3, 5, 6, 7]),
        ({"max_delegated_partitions": 1}, [5, 6, 7]),
        ({"max_delegated_partitions": 2}, [2, 3, 5, 6, 7]),
        ({"min_nodes_per_partition": 2}, [2, 3, 5, 6, 7]),
        ({"min_nodes_per_partition": 4}, []),
        ({"excluded_ops": ("RELU",)}, [0, 2, 6]),
        ({"excluded_nodes": (2, 6)}, [0, 3, 5, 7]),
    ],
)
def test_options(options, delegated):
    delegate = fake_delegate(**options)
    i = load(SEVEN, delegate)
    assert [n.index for n in delegate.report.nodes if n.delegated] == delegated
    np.testing.assert_array_equal(
        run(i, random(4))[0], run(load(SEVEN, fake_delegate()), random(4))[0]
    )
    kernels = [d for d in i._get_ops_details() if d["op_name"] == "DELEGATE"]
    assert len(kernels) >= delegate.report.num_partitions


def test_exclusions_that_exclude_nothing_are_said(caplog):
    load(SEVEN, fake_delegate(excluded_ops=("CONV2D", "relu"), excluded_nodes=(1, 9)))
    assert "relu" not in caplog.text
    assert "excluded_nodes names node 9, the model has 8" in caplog.text
    assert "names node 1" not in caplog.text
    assert "excluded_ops names CONV2D, which the model does not have" in caplog.text


def test_report_is_printed_once_where_something_stays(caplog):
    delegate = fake_delegate()
    i = load(SEVEN, delegate)
    i.resize_tensor_input(0, [5])
    i.allocate_tensors()
    warnings = [r for r in caplog.records if r.levelname == "WARNING"]
    assert [r.getMessage() for r in warnings] == [str(delegate.report)]
    assert "6 operations will run on the GPU (fake), in 3 partitions" in caplog.text
    caplog.clear()
    load(chain("NEG"), fake_delegate())
    assert [r for r in caplog.records if r.levelname == "WARNING"] == []


def test_without_clustering_tflite_groups_otherwise():
    delegate = fake_delegate()
    i = load(SEVEN, delegate, experimental_disable_delegate_node_fusion=True)
    np.testing.assert_array_equal(run(i, random(4)), run(load(SEVEN, fake_delegate()), random(4)))
    assert delegate.report.num_delegated == 6
    assert delegate.report.num_partitions == 6


def test_what_is_left_still_goes_to_xnnpack():
    w = ModelWriter()
    x = w.op("NEG", [w.input((1, 8))], [(1, 8)])
    w.output(w.op("NEG", [w.op("TANH", [x], [(1, 8)])], [(1, 8)]))
    delegate = fake_delegate()
    i = load(w.build(), delegate)
    kernels = [d for d in i._get_ops_details() if d["op_name"] == "DELEGATE"]
    assert delegate.report.num_partitions == 2
    assert len(kernels) == 3  # XNNPACK's for TANH


def test_two_delegates_share_a_model():
    first, second = fake_delegate(excluded_ops=("RELU",)), fake_delegate()
    i = litert.Interpreter(model_content=SEVEN, experimental_delegates=[first, second])
    i.allocate_tensors()
    x = random(4)
    np.testing.assert_array_equal(run(i, x), run(load(SEVEN, fake_delegate()), x))
    assert first.report.num_delegated == 3
    taken = [n for n in second.report.nodes if n.op == "DELEGATE"]
    assert all(not n.delegated for n in taken)
    assert "another delegate" in taken[0].reason or "not in the fake" in taken[0].reason


@st.composite
def models(draw):
    """Random graphs of one- and two-input operators, some of which only TFLite has."""
    w = ModelWriter()
    tensors = [w.input((3,)), w.input((3,))]
    for _ in range(draw(st.integers(1, 12))):
        op = draw(st.sampled_from(["NEG", "ABS", "ADD", "MAXIMUM"]))
        count = 2 if op in ("ADD", "MAXIMUM") else 1
        reads = [draw(st.sampled_from(tensors)) for _ in range(count)]
        if draw(st.integers(0, 5)) == 0:
            reads[0] = w.half_const(np.arange(3, dtype=np.float32))
        tensors.append(w.op(op, reads, [(3,)], NONE if op == "ADD" else None))
        if draw(st.integers(0, 4)) == 0:
            w.output(tensors[-1])
    if not w.outputs:
        w.output(tensors[-1])
    return w.build()


@given(models(), st.integers(0, 2))
@settings(max_examples=80, deadline=None)
def test_our_partitions_are_tflites(model, limit):
    planned = []
    from tflite_vk.delegate import subgraph

    real = subgraph._actual

    def spy(plan, groups):
        planned.append((plan, list(groups.values())))
        return real(plan, groups)

    subgraph._actual = spy
    try:
        log = Log()
        delegate = fake_delegate(log, max_delegated_partitions=limit)
        i = load(model, delegate)
    finally:
        subgraph._actual = real
    plan, groups = planned[0]
    made = tuple(tuple(n.index for n in g.graph.nodes) for g in groups if g.graph.nodes)
    assert made == plan.partitions
    reference = litert.Interpreter(model_content=model)
    reference.allocate_tensors()
    values = [random(*d["shape"]) for d in reference.get_input_details()]
    for got, expected in zip(run(i, *values), run(reference, *values), strict=True):
        np.testing.assert_array_equal(got, expected)
