"""Section F: float16 weights beside operators of the CPU."""

from __future__ import annotations

import pytest

from tests.bug_reports.doors import DOORS, check, random
from tflite_vk.ir.attributes import BinaryAttributes, Conv2DAttributes
from tflite_vk.testing import ModelWriter

pytestmark = [pytest.mark.usefixtures("device"), pytest.mark.parametrize("door", DOORS)]


def half_weights() -> bytes:
    """CONV_2D, ABS, CONV_2D: one DEQUANTIZE feeds both, and a bias of another one."""
    w = ModelWriter()
    shape = (1, 6, 5, 4)
    kernel = w.half_const(random(4, 3, 3, 4, low=-0.5, high=0.5))
    bias = w.half_const(random(4))
    y = w.op("CONV_2D", [w.input(shape), kernel, bias], [shape], Conv2DAttributes("RELU"))
    y = w.op("ABS", [y], [shape])
    y = w.op("CONV_2D", [y, kernel, bias], [shape], Conv2DAttributes("RELU"))
    w.output(w.op("MUL", [y, bias], [shape], BinaryAttributes()))
    return w.build()


def test_f6_weights_of_float16_are_folded(door: str) -> None:
    report = check(half_weights(), door, [random(1, 6, 5, 4)])
    assert report.is_fully_delegated
    assert report.num_partitions == 1


@pytest.mark.parametrize("cpu", ["ABS", "MUL", "CONV_2D"])
def test_f7_the_cpu_s_part_sees_float32_weights(door: str, cpu: str) -> None:
    report = check(half_weights(), door, [random(1, 6, 5, 4)], excluded_ops=(cpu,))
    assert 0 < report.num_delegated < report.num_nodes
    assert "not supported" not in str(report)
