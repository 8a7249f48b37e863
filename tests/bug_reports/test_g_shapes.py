"""Section G: batches, resized inputs, empty tensors, several subgraphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.bug_reports.doors import DOORS, check, load, oracle, random, run
from tests.support.compare import assert_close
from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import (
    BinaryAttributes,
    Conv2DAttributes,
    Pool2DAttributes,
    SubgraphAttributes,
)
from tflite_vk.testing import ModelWriter, TensorSpec

pytestmark = [pytest.mark.usefixtures("device"), pytest.mark.parametrize("door", DOORS)]


def convolutional(batch: int = 1) -> bytes:
    """Two CONV_2D 3x3, ADD, MAX_POOL_2D: any height, width and batch."""
    w = ModelWriter()

    def spec(h: int, width: int, c: int) -> TensorSpec:
        return TensorSpec((batch, h, width, c), shape_signature=(-1, -1, -1, c))

    x = w.input((batch, 32, 32, 3), shape_signature=(-1, -1, -1, 3))
    y = w.op(
        "CONV_2D", [x, w.const(random(6, 3, 3, 3)), w.const(random(6))], [spec(32, 32, 6)],
        Conv2DAttributes("RELU6"),
    )  # fmt: skip
    kernel = w.const(random(6, 3, 3, 6, low=-0.3, high=0.3))
    z = w.op("CONV_2D", [y, kernel, w.const(random(6))], [spec(32, 32, 6)], Conv2DAttributes())
    y = w.op("ADD", [y, z], [spec(32, 32, 6)], BinaryAttributes())
    a = Pool2DAttributes(stride_w=2, stride_h=2, filter_width=3, filter_height=3)
    w.output(w.op("MAX_POOL_2D", [y], [spec(16, 16, 6)], a))
    return w.build()


def test_g1_rows_of_a_batch_are_independent(door: str) -> None:
    x = random(4, 32, 32, 3)
    whole = run(load(convolutional(4), door)[0], [x])[0]
    alone = load(convolutional(1), door)[0]
    for i in range(4):
        assert_close(whole[i : i + 1], run(alone, [x[i : i + 1]])[0], 1e-6, 1e-6, f"row {i}")


def test_g2_g3_resized_and_back(door: str) -> None:
    shapes = (1, 32, 32, 3), (1, 48, 40, 3), (1, 32, 32, 3), (2, 7, 5, 3), (1, 48, 40, 3)
    report = check(convolutional(), door, *([random(*s)] for s in shapes))
    assert report.is_fully_delegated


def dynamic_tail() -> bytes:
    """CONV_2D and RELU, then WHERE, whose size depends on values, and what follows it."""
    w = ModelWriter()
    x = w.input((1, 4, 5, 3))
    y = w.op(
        "CONV_2D",
        [x, w.const(random(2, 1, 1, 3)), w.const(random(2))],
        [(1, 4, 5, 2)],
        Conv2DAttributes(),
    )
    y = w.op("RELU", [y], [(1, 4, 5, 2)])
    zero = w.const(np.float32(0.5))
    flags = w.op("GREATER", [y, zero], [((1, 4, 5, 2), DType.BOOL)])
    at = w.op("WHERE", [flags], [TensorSpec((0, 4), DType.INT64, shape_signature=(-1, 4))])
    w.output(y, at)
    return w.build()


def test_g4_a_tail_of_unknown_size_runs_on_the_cpu(door: str) -> None:
    report = check(dynamic_tail(), door, [random(1, 4, 5, 3, seed=3)], [random(1, 4, 5, 3, seed=4)])
    assert {n.op for n in report.nodes if n.delegated} >= {"CONV_2D", "RELU"}
    assert {n.op for n in report.nodes if not n.delegated} == {"WHERE"}


def test_g5_a_signature_is_called_with_nothing(door: str) -> None:
    w = ModelWriter()
    x = w.input((4,), "x", shape_signature=(-1,))
    two = w.const(np.float32(2))
    y = w.op("MUL", [x, two], [TensorSpec((4,), shape_signature=(-1,))], BinaryAttributes())
    w.output(y)
    w.signature("run", {"x": x}, {"y": y})
    interpreter, _ = load(w.build(), door)
    runner = interpreter.get_signature_runner("run")
    for size in (3, 0, 5, 0):
        value = random(size)
        got = runner(x=value)["y"]
        assert got.shape == (size,)
        assert np.array_equal(got, 2 * value)


def test_g6_an_output_without_elements_is_read(door: str) -> None:
    w = ModelWriter()
    x = w.input((3, 2))
    begin, size = (w.const(np.array(v, np.int32)) for v in ((1, 0), (0, 2)))
    w.output(w.op("SLICE", [x, begin, size], [(0, 2)]), w.op("NEG", [x], [(3, 2)]))
    interpreter, _ = load(w.build(), door)
    x0 = random(3, 2)
    empty, negative = run(interpreter, [x0])
    assert empty.shape == (0, 2)
    assert empty.dtype == np.float32
    assert np.array_equal(negative, -x0)


@pytest.mark.parametrize("shape", [(4, 8, 8, 3), (4, 10)])
def test_g9_a_batch_at_the_input(door: str, shape: tuple[int, ...]) -> None:
    w = ModelWriter()
    y = w.op("MUL", [w.input(shape), w.const(random(shape[-1]))], [shape], BinaryAttributes())
    w.output(w.op("TANH", [y], [shape]))
    assert check(w.build(), door, [random(*shape)]).is_fully_delegated


def two_signatures() -> bytes:
    """`a` runs wholly on the device; `b` has the same weights and a WHERE."""
    w = ModelWriter()
    kernel = random(4, 3, 3, 3, low=-0.5, high=0.5)
    for g, name in ((w, "a"), (w.subgraph("second"), "b")):
        x = g.input((1, 5, 4, 3), f"x_{name}")
        y = g.op(
            "CONV_2D", [x, g.const(kernel), g.const(random(4))], [(1, 5, 4, 4)], Conv2DAttributes()
        )
        outputs = {"y": y}
        if name == "b":
            one = g.const(np.float32(1))
            flags = g.op("GREATER", [y, one], [((1, 5, 4, 4), DType.BOOL)])
            spec = TensorSpec((0, 4), DType.INT64, shape_signature=(-1, 4))
            outputs["at"] = g.op("WHERE", [flags], [spec])
        g.output(*outputs.values())
        w.signature(name, {"x": x}, outputs, g)
    return w.build()


def test_g10_signatures_in_turn(door: str) -> None:
    interpreter, report = load(two_signatures(), door)
    right = oracle(two_signatures())
    for turn, key in enumerate(("a", "b", "a")):
        x = random(1, 5, 4, 3, seed=turn)
        got = interpreter.get_signature_runner(key)(x=x)
        want = right.get_signature_runner(key)(x=x)
        assert got.keys() == want.keys()
        for name in want:
            assert_close(got[name], want[name], 1e-4, 1e-5, f"{key} {name}")
    assert [n.delegated for n in report.nodes if n.op == "CONV_2D"] == [True, True]


def conditional() -> bytes:
    """CONV_2D, IF on a run-time flag, RELU; a further subgraph that nothing calls."""
    w = ModelWriter()
    shape = (1, 4, 5, 3)
    then, other, unused = w.subgraph("then"), w.subgraph("else"), w.subgraph("unused")
    for g, op in ((then, "NEG"), (other, "ABS"), (unused, "EXP")):
        g.output(g.op(op, [g.input(shape)], [shape]))
    x, flag = w.input(shape), w.input((), dtype=DType.BOOL)
    y = w.op(
        "CONV_2D", [x, w.const(random(3, 1, 1, 3)), w.const(random(3))], [shape], Conv2DAttributes()
    )
    y = w.op("IF", [flag, y], [shape], SubgraphAttributes((then.index, other.index)))
    w.output(w.op("RELU", [y], [shape]))
    return w.build()


def loop() -> bytes:
    """WHILE i < 3: i + 1, x * 2 + CONV_2D in front."""
    w = ModelWriter()
    shape = (1, 4, 5, 3)
    condition, body = w.subgraph("condition"), w.subgraph("body")
    i, _ = condition.input((), dtype=DType.INT32), condition.input(shape)
    three = condition.const(np.int32(3))
    condition.output(condition.op("LESS", [i, three], [((), DType.BOOL)]))
    i, x = body.input((), dtype=DType.INT32), body.input(shape)
    one, two = body.const(np.int32(1)), body.const(np.float32(2))
    body.output(
        body.op("ADD", [i, one], [((), DType.INT32)], BinaryAttributes()),
        body.op("MUL", [x, two], [shape], BinaryAttributes()),
    )
    x = w.input(shape)
    y = w.op(
        "CONV_2D", [x, w.const(random(3, 1, 1, 3)), w.const(random(3))], [shape], Conv2DAttributes()
    )
    zero = w.const(np.int32(0))
    attributes = SubgraphAttributes((condition.index, body.index))
    _, y = w.multi_op("WHILE", [zero, y], [((), DType.INT32), shape], attributes)
    w.output(w.op("RELU", [y], [shape]))
    return w.build()


@pytest.mark.parametrize("flag", [True, False])
def test_g11_h1_if_runs_its_branches(door: str, flag: bool) -> None:
    inputs: list[Any] = [random(1, 4, 5, 3), np.array(flag)]
    report = check(conditional(), door, inputs, inputs)
    assert [n.op for n in report.nodes if n.op in ("CONV_2D", "RELU") and n.delegated] == [
        "CONV_2D",
        "RELU",
    ]


def test_g11_h1_while_runs_its_body(door: str) -> None:
    report = check(loop(), door, [random(1, 4, 5, 3)], [random(1, 4, 5, 3, seed=1)])
    assert next(n for n in report.nodes if n.op == "CONV_2D").delegated
    assert not next(n for n in report.nodes if n.op == "WHILE").delegated
