"""Section J: leaks, threads, destruction, first run."""

from __future__ import annotations

import gc
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import tflite_vk
from tests.bug_reports.doors import DOORS, load, oracle, random, run
from tflite_vk.ir.attributes import BinaryAttributes, Conv2DAttributes
from tflite_vk.testing import ModelWriter, TensorSpec

pytestmark = [pytest.mark.usefixtures("device"), pytest.mark.parametrize("door", DOORS)]


def tiny() -> bytes:
    w = ModelWriter()
    spec = TensorSpec((1, 5, 4, 3), shape_signature=(1, -1, -1, 3))
    x = w.input((1, 5, 4, 3), shape_signature=(1, -1, -1, 3))
    kernel, bias = w.const(random(3, 3, 3, 3)), w.const(random(3))
    y = w.op("CONV_2D", [x, kernel, bias], [spec], Conv2DAttributes())
    w.output(w.op("ADD", [y, x], [spec], BinaryAttributes()))
    return w.build()


def resident_kib() -> int:
    """Memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_j1_j3_runs_take_no_memory(door: str) -> None:
    """Less than 1 MB for 1,000 runs."""
    interpreter, _ = load(tiny(), door)
    x = [random(1, 5, 4, 3)]
    for _ in range(200):
        run(interpreter, x)
    gc.collect()
    before, files = resident_kib(), open_files()
    for _ in range(1500):
        run(interpreter, x)
    gc.collect()
    assert resident_kib() - before < 1500
    assert open_files() == files


def test_j2_interpreters_come_and_go(door: str) -> None:
    x = [random(1, 5, 4, 3)]

    def once() -> None:
        interpreter, _ = load(tiny(), door)
        run(interpreter, x)
        if door == "interpreter":
            interpreter.close()

    for _ in range(10):
        once()
    gc.collect()
    before, files, threads = resident_kib(), open_files(), threading.active_count()
    for _ in range(25):
        once()
    gc.collect()
    assert resident_kib() - before < 25 * 96
    assert open_files() <= files
    assert threading.active_count() <= threads


def test_j4_sizes_that_vary_are_bounded(door: str) -> None:
    interpreter, _ = load(tiny(), door)
    sizes = [(1, 3 + i % 17, 4 + i % 5, 3) for i in range(34)]
    for size in sizes[:12]:
        run(interpreter, [random(*size)])
    gc.collect()
    before = resident_kib()
    for size in sizes:
        run(interpreter, [random(*size)])
    gc.collect()
    assert resident_kib() - before < 20_000


def test_j5_two_interpreters_on_two_threads(door: str) -> None:
    inputs = [random(1, 5, 4, 3, seed=i) for i in range(2)]
    pairs = [load(tiny(), door)[0] for _ in inputs]
    want = [run(oracle(tiny()), [x])[0] for x in inputs]

    def many(i: int) -> float:
        return max(float(np.abs(run(pairs[i], [inputs[i]])[0] - want[i]).max()) for _ in range(150))

    with ThreadPoolExecutor(2) as pool:
        assert max(pool.map(many, range(2))) < 1e-5


def test_j6_j7_made_here_and_run_on_other_threads(door: str) -> None:
    interpreter, _ = load(tiny(), door)
    x = [random(1, 5, 4, 3)]
    here = run(interpreter, x)[0]
    for _ in range(3):
        with ThreadPoolExecutor(1) as pool:
            there = pool.submit(run, interpreter, x).result(timeout=60)[0]
        assert there.tobytes() == here.tobytes()


def test_j11_every_order_of_destruction(door: str) -> None:
    x = [random(1, 5, 4, 3)]
    interpreter, report = load(tiny(), door)
    run(interpreter, x)
    view = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    kept = view.copy()
    del interpreter, report
    gc.collect()
    assert np.array_equal(view, kept)
    if door == "delegate":
        interpreter, _ = load(tiny(), door)
        del interpreter.keep_delegate
        gc.collect()
        run(interpreter, x)


def test_j13_a_device_that_is_not_there_is_an_error_at_once(door: str) -> None:
    with pytest.raises(tflite_vk.Error, match="no such thing"):
        load(tiny(), door, device="no such thing")
