"""Section B: outputs that are read again, aliasing, constants, state between runs."""

from __future__ import annotations

import numpy as np
import pytest

from tests.bug_reports.doors import DOORS, check, load, random, run
from tflite_vk.ir.attributes import (
    BatchMatMulAttributes,
    BinaryAttributes,
    Conv2DAttributes,
    SoftmaxAttributes,
)
from tflite_vk.testing import ModelWriter

pytestmark = [pytest.mark.usefixtures("device"), pytest.mark.parametrize("door", DOORS)]

KERNEL = random(5, 3, 3, 3, seed=1, low=-0.5, high=0.5)


def middle_and_final() -> bytes:
    """CONV_2D, ADD that is an output, MUL, SOFTMAX."""
    w = ModelWriter()
    shape = (1, 6, 7, 5)
    y = w.op(
        "CONV_2D",
        [w.input((1, 6, 7, 3)), w.const(KERNEL), w.const(random(5))],
        [shape],
        Conv2DAttributes(),
    )
    middle = w.op("ADD", [y, w.const(random(5))], [shape], BinaryAttributes("RELU"))
    y = w.op("MUL", [middle, w.const(np.float32(0.5))], [shape], BinaryAttributes())
    w.output(middle, w.op("SOFTMAX", [y], [shape], SoftmaxAttributes(1.0)))
    return w.build()


def test_b5_input_array_is_untouched(door: str) -> None:
    interpreter, _ = load(middle_and_final(), door)
    x = random(1, 6, 7, 3)
    kept = x.copy()
    run(interpreter, [x])
    run(interpreter, [x])
    assert np.array_equal(x, kept)


def test_b7_an_intermediate_output_follows_the_input(door: str) -> None:
    inputs = [[random(1, 6, 7, 3, seed=i)] for i in (1, 2, 1)]
    check(middle_and_final(), door, *inputs)
    interpreter, _ = load(middle_and_final(), door)
    first, second, third = (run(interpreter, x) for x in inputs)
    for a, b, c in zip(first, second, third, strict=True):
        assert not np.array_equal(a, b)
        assert a.tobytes() == c.tobytes()


def test_b11_a_constant_of_a_cpu_and_a_gpu_node(door: str) -> None:
    w = ModelWriter()
    k = w.const(random(1, 4, 5, 3, low=0.5))
    x = w.input((1, 4, 5, 3))
    a = w.op("MUL", [k, x], [(1, 4, 5, 3)], BinaryAttributes())
    b = w.op("ADD", [a, k], [(1, 4, 5, 3)], BinaryAttributes())
    w.output(w.op("MUL", [b, k], [(1, 4, 5, 3)], BinaryAttributes()), k)
    report = check(w.build(), door, [random(1, 4, 5, 3)], excluded_ops=("ADD",))
    assert report.num_delegated == 2


def attention() -> bytes:
    w = ModelWriter()
    shape, scores = (2, 7, 6), (2, 7, 7)
    x = w.input(shape)
    y = w.op("BATCH_MATMUL", [x, x], [scores], BatchMatMulAttributes(adj_y=True))
    y = w.op("MUL", [y, w.const(np.float32(0.3))], [scores], BinaryAttributes())
    y = w.op("SOFTMAX", [y], [scores], SoftmaxAttributes(1.0))
    y = w.op("BATCH_MATMUL", [y, x], [shape], BatchMatMulAttributes())
    y = w.op("ADD", [y, x], [shape], BinaryAttributes())
    w.output(w.op("MUL", [y, w.const(random(6))], [shape], BinaryAttributes()))
    return w.build()


def test_b12_runs_leave_nothing_behind(door: str) -> None:
    """100 runs of one input give the same bits, then five other inputs their own values."""
    interpreter, _ = load(attention(), door)
    x = [random(2, 7, 6)]
    first = run(interpreter, x)[0].tobytes()
    assert all(run(interpreter, x)[0].tobytes() == first for _ in range(99))
    check(attention(), door, x, x, *([random(2, 7, 6, seed=i)] for i in range(1, 6)))


def test_b13_odd_widths_again_and_again(door: str) -> None:
    w = ModelWriter()
    x = w.input((1, 9, 7, 3))
    w.output(
        w.op(
            "CONV_2D", [x, w.const(KERNEL), w.const(random(5))], [(1, 9, 7, 5)], Conv2DAttributes()
        )
    )
    check(w.build(), door, *([random(1, 9, 7, 3, seed=i)] for i in range(3)))
