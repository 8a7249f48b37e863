"""Several executables on several threads, which share one queue."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from tests.conformance.programs import chain, compile_program, floats, random_program
from tflite_vk.errors import DeviceError
from tflite_vk.runtime.device import Device


def _in_threads(count: int, work: Callable[[int], None]) -> None:
    with ThreadPoolExecutor(count) as pool:
        for done in [pool.submit(work, i) for i in range(count)]:
            done.result(timeout=120)


def test_made_on_one_thread_run_on_another(computing: Device) -> None:
    executable = compile_program(computing, chain(4, 256))

    def work(_: int) -> None:
        floats(executable.input_words(0))[:] = 3
        executable.run()
        assert (floats(executable.output_words(4)) == 7).all()

    for _ in range(3):
        _in_threads(1, work)
    executable.close()


def test_two_threads_run_an_executable_each(vulkan: Device) -> None:
    lengths = (3, 5, 7)

    def work(index: int) -> None:
        executable = compile_program(vulkan, chain(lengths[index], 1024))
        for value in range(100):
            floats(executable.input_words(0))[:] = value
            executable.run()
            got = floats(executable.output_words(lengths[index]))
            assert (got == value + lengths[index]).all(), (index, value)
        executable.close()

    _in_threads(3, work)


def test_threads_compile_and_close_at_once(vulkan: Device) -> None:
    def work(index: int) -> None:
        for i in range(15):
            made = chain(1 + (index + i) % 4, 64 + 4 * index)
            executable = compile_program(vulkan, made, guard_words=4 * (i % 2))
            floats(executable.input_words(0))[:] = i
            executable.run()
            got = floats(executable.output_words(len(made.dispatches)))
            assert (got == i + len(made.dispatches)).all()
            if i % 3:
                executable.close()

    _in_threads(4, work)


def test_one_executable_from_two_threads_stays_whole(vulkan: Device) -> None:
    # The protocol asks owners to lock; who forgets must get old or new values, and no crash.
    executable = compile_program(vulkan, chain(4, 256))
    floats(executable.input_words(0))[:] = 1

    def work(_: int) -> None:
        for _ in range(100):
            executable.run()
            assert (floats(executable.output_words(4)) == 5).all()

    _in_threads(3, work)
    executable.close()


def test_closing_during_a_run_waits(vulkan: Device) -> None:
    executable = compile_program(vulkan, random_program(1, 1 << 12))
    started = threading.Event()
    errors: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(1000):
                executable.run()
                started.set()
        except DeviceError as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    assert started.wait(60)
    executable.close()
    thread.join(60)
    assert not thread.is_alive()
    assert len(errors) == 1
    assert "closed" in str(errors[0])


def test_results_do_not_depend_on_other_threads(vulkan: Device) -> None:
    made = random_program(21, 1024)
    memory = {x: (np.arange(1024) % 13).astype(np.float32) for x in (0, 1)}
    want = dict(memory)
    made.compute(want)

    def work(_: int) -> None:
        executable = compile_program(vulkan, made)
        for x in (0, 1):
            floats(executable.input_words(x))[:] = memory[x]
        for _ in range(50):
            executable.run()
            for b in made.buffers:
                if b.kind == "output":
                    assert np.array_equal(floats(executable.output_words(b.id)), want[b.id])
        executable.close()

    _in_threads(4, work)
