"""What goes in comes out: inputs, constants, outputs, and views of them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conformance.programs import ProgramBuilder, chain, compile_program, floats
from tflite_vk.runtime.device import Device


@pytest.mark.parametrize("words", [4, 100, 4096, 1 << 20])
def test_values_pass_through(computing: Device, words: int) -> None:
    executable = compile_program(computing, chain(1, words))
    given = np.random.default_rng(words).standard_normal(words).astype(np.float32)
    floats(executable.input_words(0))[:] = given
    executable.run()
    assert np.array_equal(floats(executable.output_words(1)), given + np.float32(1))
    executable.close()


def test_views_have_the_size_of_their_buffer(runtime: Device) -> None:
    executable = compile_program(runtime, chain(2, 100), guard_words=8)
    assert executable.input_words(0).shape == (100,)
    assert executable.input_words(0).dtype == np.uint32
    assert executable.input_words(0).flags.writeable
    assert executable.output_words(2).shape == (100,)
    executable.close()


def test_inputs_stay_until_they_are_written(computing: Device) -> None:
    executable = compile_program(computing, chain(1, 64))
    floats(executable.input_words(0))[:] = 7
    for _ in range(3):
        executable.run()
        assert (floats(executable.output_words(1)) == 8).all()
    floats(executable.input_words(0))[3] = 1
    executable.run()
    assert floats(executable.output_words(1))[:5].tolist() == [8, 8, 8, 2, 8]
    executable.close()


def test_outputs_follow_each_run(computing: Device) -> None:
    executable = compile_program(computing, chain(3, 64))
    for value in range(20):
        floats(executable.input_words(0))[:] = value
        executable.run()
        assert (floats(executable.output_words(3)) == value + 3).all()
    executable.close()


def test_constants_of_many_sizes(computing: Device) -> None:
    rng = np.random.default_rng(1)
    made = ProgramBuilder()
    outputs = []
    x = made.buffer("input", 4000)
    for words in [4, 8, 12, 100, 1000, 4000, 4, 20] * 3:
        data = rng.standard_normal(words).astype(np.float32)
        constant, y = made.buffer("constant", words, data), made.buffer("output", words)
        made.add(x, constant, y)
        outputs.append((y, data))
    executable = compile_program(computing, made)
    given = rng.standard_normal(4000).astype(np.float32)
    floats(executable.input_words(x))[:] = given
    for _ in range(2):
        executable.run()
        for y, data in outputs:
            assert np.array_equal(floats(executable.output_words(y)), given[: data.size] + data)
    executable.close()


def test_a_large_constant(computing: Device) -> None:
    words = 20 << 20  # 80 MiB: more than one staging buffer
    data = np.arange(words, dtype=np.float32)
    made = ProgramBuilder(local=128)
    x = made.buffer("constant", words, data)
    y = made.buffer("output", words)
    made.add_number(x, y, 0.0)
    executable = compile_program(computing, made)
    executable.run()
    assert np.array_equal(floats(executable.output_words(y)), data)
    executable.close()


def test_an_output_is_read_by_later_dispatches(computing: Device) -> None:
    made = ProgramBuilder()
    x, first, second = (made.buffer(k, 64) for k in ("input", "output", "output"))
    made.add_number(x, first, 1.0)
    made.multiply_number(first, second, 10.0)
    executable = compile_program(computing, made)
    floats(executable.input_words(x))[:] = 2
    executable.run()
    assert (floats(executable.output_words(first)) == 3).all()
    assert (floats(executable.output_words(second)) == 30).all()
    executable.close()


def test_a_program_without_dispatches(runtime: Device) -> None:
    made = ProgramBuilder()
    x = made.buffer("input", 16)
    executable = compile_program(runtime, made)
    executable.input_words(x)[:] = 5
    executable.run()
    executable.run()
    assert (executable.input_words(x) == 5).all()
    assert executable.check_guards() == []
    executable.close()


def test_a_program_without_anything(runtime: Device) -> None:
    executable = compile_program(runtime, ProgramBuilder(), guard_words=4)
    executable.run()
    executable.reset_states()
    assert executable.check_guards() == []
    executable.close()


def test_buffers_nobody_uses(runtime: Device) -> None:
    made = chain(1, 16)
    made.buffer("temporary", 1 << 20)
    made.buffer("constant", 8, np.ones(8, np.float32))
    unused = made.buffer("input", 16)
    executable = compile_program(runtime, made)
    executable.input_words(unused)[:] = 3
    executable.run()
    assert (executable.input_words(unused) == 3).all()
    executable.close()
