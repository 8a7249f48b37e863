"""Section H: partitions, fallback to the CPU, messages, policy."""

from __future__ import annotations

import logging

import numpy as np
import pytest

import tflite_vk
from tests.bug_reports.doors import DOORS, check, load, oracle, random, run
from tests.support.compare import assert_close
from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import (
    ArgAttributes,
    BinaryAttributes,
    Conv2DAttributes,
    GatherAttributes,
)
from tflite_vk.testing import ModelWriter, TensorSpec

pytestmark = pytest.mark.usefixtures("device")

both_doors = pytest.mark.parametrize("door", DOORS)
SHAPE = (1, 6, 5, 4)


def conv(w: ModelWriter, x: int, seed: int = 0) -> int:
    kernel = w.const(random(4, 3, 3, 4, seed=seed, low=-0.4, high=0.4))
    return w.op("CONV_2D", [x, kernel, w.const(random(4, seed=seed))], [SHAPE], Conv2DAttributes())


def islands(count: int) -> bytes:
    """CONV_2D and TANH, with CEIL between them, which the tests leave to the CPU; CEIL of large steps."""
    w = ModelWriter()
    x = w.input(SHAPE)
    for i in range(count):
        x = w.op("TANH", [conv(w, x, i)], [SHAPE])
        if i + 1 < count:
            x = w.op("ELU", [x], [SHAPE])
    w.output(x)
    return w.build()


@both_doors
@pytest.mark.parametrize(("limit", "partitions"), [(0, 7), (1, 1), (4, 4)])
def test_h3_seven_islands(door: str, limit: int, partitions: int) -> None:
    report = check(
        islands(7), door, [random(*SHAPE)], excluded_ops=("ELU",), max_delegated_partitions=limit
    )
    assert report.num_partitions == partitions


@both_doors
def test_h3_small_islands_stay_on_the_cpu(door: str) -> None:
    report = check(
        islands(3), door, [random(*SHAPE)], excluded_ops=("ELU",), min_nodes_per_partition=3
    )
    assert report.num_delegated == 0


@both_doors
def test_h3_order_in_a_diamond(door: str) -> None:
    """One arm on the CPU: what joins the arms must wait for it, and what forks must not."""
    w = ModelWriter()
    trunk = conv(w, w.input(SHAPE))
    left = w.op("ELU", [trunk], [SHAPE])
    right = w.op("TANH", [trunk], [SHAPE])
    joined = w.op("ADD", [left, right], [SHAPE], BinaryAttributes())
    w.output(conv(w, joined, 1), w.op("ABS", [left], [SHAPE]))
    report = check(w.build(), door, [random(*SHAPE)], excluded_ops=("ELU",))
    assert report.num_delegated == 5


@both_doors
def test_h2_operators_are_forced_to_the_cpu(door: str) -> None:
    w = ModelWriter()
    y = w.op("FLOOR", [conv(w, w.input(SHAPE))], [SHAPE])
    w.output(w.op("RELU", [y], [SHAPE]))
    x = np.zeros(SHAPE, np.float32)
    for options in ({"excluded_ops": ("FLOOR",)}, {"excluded_nodes": (1,)}):
        report = check(w.build(), door, [x], **options)
        assert [n.delegated for n in report.nodes] == [True, False, True]


@both_doors
def test_h4_no_operator_is_supported(door: str) -> None:
    w = ModelWriter()
    x = w.input((2, 3))
    flags = w.op("GREATER", [x, w.const(np.float32(0))], [((2, 3), DType.BOOL)])
    spec = TensorSpec((0, 2), DType.INT64, shape_signature=(-1, 2))
    w.output(w.op("WHERE", [flags], [spec]))
    report = check(w.build(), door, [random(2, 3)], excluded_ops=("GREATER",))
    assert report.num_delegated == 0
    assert "will run on the CPU" in str(report)


@both_doors
def test_h4_only_a_reshape(door: str) -> None:
    w = ModelWriter()
    x = w.input((2, 6))
    w.output(w.op("RESHAPE", [x, w.const(np.array([3, 4], np.int32))], [(3, 4)]))
    check(w.build(), door, [random(2, 6)])


@both_doors
def test_h4_an_input_is_an_output(door: str) -> None:
    w = ModelWriter()
    x = w.input((2, 6))
    w.output(x)
    interpreter, report = load(w.build(), door)
    assert report.num_delegated == 0
    assert np.array_equal(run(interpreter, [random(2, 6)])[0], random(2, 6))


@both_doors
def test_h1_integers_around_a_convolution(door: str) -> None:
    """int32 and int64 beside it: what has no kernel runs on the CPU, nothing fails without words."""
    w = ModelWriter()
    x, n = w.input(SHAPE), w.input((3,), dtype=DType.INT64)
    y = conv(w, x)
    m = w.op("MATRIX_DIAG", [n], [((3, 3), DType.INT64)])
    w.output(w.op("RELU", [y], [SHAPE]), m)
    interpreter, report = load(w.build(), door)
    values = [random(*SHAPE), np.array([1, 2, 1 << 40], np.int64)]
    got, matrix = run(interpreter, values)
    want, _ = run(oracle(w.build()), values)
    assert_close(got, want, 1e-4, 1e-5, door)
    assert np.array_equal(matrix, np.diag(values[1]))
    assert {n.op: n.delegated for n in report.nodes} == {
        "CONV_2D": True, "MATRIX_DIAG": False, "RELU": True,
    }  # fmt: skip


@both_doors
def test_h1_int64_ids_and_positions(door: str) -> None:
    """64-bit ids in, 64-bit positions out, and what lies between: all of it on the device."""
    w = ModelWriter()
    ids = w.input((2, 3), dtype=DType.INT64)
    table = w.const(random(7, 5))
    rows = w.op("GATHER", [table, ids], [(2, 3, 5)], GatherAttributes(0))
    axis = w.const(np.array(-1, np.int32))
    best = w.op("ARG_MAX", [rows, axis], [((2, 3), DType.INT64)], ArgAttributes(DType.INT64))
    total = w.op("ADD", [best, ids], [((2, 3), DType.INT64)], BinaryAttributes())
    w.output(best, total)
    interpreter, report = load(w.build(), door)
    assert report.is_fully_delegated
    values = [np.array([[0, 6, 3], [1, 1, 5]], np.int64)]
    for got, want in zip(run(interpreter, values), run(oracle(w.build()), values), strict=True):
        assert got.dtype == np.int64
        assert np.array_equal(got, want)


def custom() -> bytes:
    w = ModelWriter()
    y = w.op("SomebodysOwn", [conv(w, w.input(SHAPE))], [SHAPE], b"options")
    w.output(conv(w, y, 1))
    return w.build()


def test_h6_a_custom_operator_is_declined_alone() -> None:
    _, report = load(custom(), "delegate")
    assert [(n.op, n.delegated) for n in report.nodes] == [
        ("CONV_2D", True),
        ("SomebodysOwn", False),
        ("CONV_2D", True),
    ]
    assert report.nodes[1].reason == "custom operator without a kernel"
    assert "SomebodysOwn: custom operator without a kernel" in str(report)


def test_h7_an_operator_nobody_has_is_named() -> None:
    with pytest.raises((ValueError, RuntimeError), match="SomebodysOwn") as caught:
        load(custom(), "interpreter")[0].allocate_tensors()
    assert str(caught.value)


def test_h10_one_line_says_what_runs_where(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "tflite_vk"):
        load(islands(1), "delegate")
        load(islands(2), "delegate", excluded_ops=("ELU",))
    whole, parts = (r.message for r in caplog.records if r.name == "tflite_vk")
    assert whole.startswith("All 2 operations will run on the GPU (")
    assert "\n" not in whole
    assert "4 operations will run on the GPU (" in parts
    assert "remaining 1 operations will run on the CPU" in parts


def test_h11_report_is_data() -> None:
    """L11, too: index, operator, reason and partition of each node, without parsing a text."""
    _, report = load(islands(2), "delegate", excluded_ops=("ELU",))
    left = next(n for n in report.nodes if not n.delegated)
    assert (left.index, left.op, left.partition) == (2, "ELU", None)
    assert left.reason == "Excluded by option excluded_ops."
    assert tflite_vk.SupportReport.to_dict(report)["num_delegated"] == 4
