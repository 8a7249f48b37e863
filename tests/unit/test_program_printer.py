from __future__ import annotations

import dataclasses

import numpy as np

from tflite_vk.memory import plan_memory
from tflite_vk.program import Binding, Buffer, Dispatch, Kernel, Program, float_word
from tflite_vk.program_printer import format_program


def make_program() -> Program:
    buffers = (
        Buffer(0, "x", 64, "input"),
        Buffer(1, "weights", 4, "constant", np.array([1, 2, 3, 4], np.uint32)),
        Buffer(2, "", 64, "temporary"),
        Buffer(3, "y", 64, "output"),
        Buffer(4, "state", 4, "state", np.zeros(4, np.uint32)),
    )
    conv = Kernel("conv_2d", (8, 8, 1, 0x3F800000))
    return Program(
        "main",
        buffers,
        (
            Dispatch(
                conv,
                (Binding(0, "r"), Binding(1, "r"), Binding(2, "w")),
                (16, float_word(0.5), 0xFFFFFFFF),
                (2, 1, 1),
                "CONV_2D+RELU #0",
                0,
                flops=1152,
            ),
            Dispatch(
                Kernel("softmax", (64, 1, 1)),
                (Binding(2, "r"), Binding(3, "w")),
                (),
                (1, 1, 1),
                "SOFTMAX #1",
                1,
            ),
            Dispatch(conv, (Binding(4, "rw"),), (), (1, 1, 1), "CONV_2D #2", 2),
        ),
    )


GOLDEN = """\
program main
  b0 input words=64 'x'
  b1 constant words=4 crc=af05d4ef 'weights'
  b2 temporary words=64 ''
  b3 output words=64 'y'
  b4 state words=4 crc=ecbb4b55 'state'
  p0 conv_2d spec=[8,8,1,0x3f800000]
  p1 softmax spec=[64,1,1]
  d0 p0 groups=[2,1,1] r b0, r b1, w b2 push=[16,0x3f000000,0xffffffff] flops=1152 'CONV_2D+RELU #0'
  d1 p1 groups=[1,1,1] r b2, w b3 push=[] 'SOFTMAX #1'
  d2 p0 groups=[1,1,1] rw b4 push=[] 'CONV_2D #2'"""


def test_text_of_a_program() -> None:
    assert format_program(make_program()) == GOLDEN


def test_text_with_a_plan_says_where_buffers_lie() -> None:
    program = make_program()
    lines = format_program(program, plan_memory(program)).splitlines()
    assert lines[3] == "  b2 temporary words=64 '' at s0 offset=0"
    assert lines[1] == "  b0 input words=64 'x' at s1"
    assert lines[-1] == "  arena words=64 lower_bound=64 allocations=5 words=200"
    assert [line.partition(" at ")[0] for line in lines[:-1]] == GOLDEN.splitlines()


def test_another_constant_gives_another_text() -> None:
    program = make_program()
    changed = dataclasses.replace(program.buffers[1], data=np.array([1, 2, 3, 5], np.uint32))
    buffers = (program.buffers[0], changed, *program.buffers[2:])
    assert format_program(dataclasses.replace(program, buffers=buffers)) != GOLDEN


def test_a_program_without_a_name_or_dispatches() -> None:
    assert format_program(Program("", (), ())) == "program (unnamed)"
