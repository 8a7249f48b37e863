"""Any order of destruction, threads, forks and exits: no crash, nothing left behind."""

import gc
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.delegate.fake import Log, fake_delegate, random, run
from tflite_vk.delegate.callbacks import live_kernels
from tflite_vk.testing.model_writer import ModelWriter

litert = pytest.importorskip("ai_edge_litert.interpreter")


def model():
    w = ModelWriter()
    x = w.op("ABS", [w.op("NEG", [w.input((4,))], [(4,)])], [(4,)])
    w.output(w.op("NEG", [x], [(4,)]))
    return w.build()


MODEL = model()


def load(delegate):
    i = litert.Interpreter(model_content=MODEL, experimental_delegates=[delegate])
    i.allocate_tensors()
    return i


def expected(x):
    return -np.abs(x)


def test_dropping_the_delegate_first():
    log = Log()
    delegate = fake_delegate(log)
    i = load(delegate)
    del delegate
    gc.collect()
    x = random(4)
    np.testing.assert_array_equal(run(i, x)[0], expected(x))
    before = live_kernels()
    del i
    gc.collect()
    assert live_kernels() == before - 2
    assert log.closed == 2


def test_views_outlive_the_interpreter():
    # A view holds the native interpreter, which frees its kernels when the view goes.
    log = Log()
    i = load(fake_delegate(log))
    run(i, random(4))
    view = i.tensor(i.get_output_details()[0]["index"])()
    del i
    gc.collect()
    assert log.closed == 0
    assert view.shape == (4,)
    del view
    gc.collect()
    assert log.closed == 2


def test_in_a_reference_cycle():
    log = Log()
    delegate = fake_delegate(log)
    i = load(delegate)
    delegate.friend, i.friend = i, delegate
    del i, delegate
    gc.collect()
    assert log.closed == 2


def test_many_are_made_and_dropped():
    log = Log()
    before = live_kernels()
    for _ in range(50):
        run(load(fake_delegate(log)), random(4))
    gc.collect()
    assert live_kernels() == before
    assert log.closed == len(log.compiled) == 100


def test_made_on_one_thread_and_run_on_others():
    i = load(fake_delegate())
    with ThreadPoolExecutor(1) as pool:
        for seed in range(3):
            x = random(4, seed=seed)
            np.testing.assert_array_equal(pool.submit(run, i, x).result(30)[0], expected(x))


def test_interpreters_on_several_threads():
    delegate = fake_delegate()
    failures = []

    def work(seed):
        try:
            i = load(delegate)
            for n in range(50):
                x = random(4, seed=seed * 100 + n)
                np.testing.assert_array_equal(run(i, x)[0], expected(x))
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(s,)) for s in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not failures


PROGRAM = """
import gc, sys
sys.path.insert(0, {root!r})
from tests.delegate.fake import fake_delegate, random, run
from tests.delegate.test_delegate_lifetime import MODEL, load
import ai_edge_litert.interpreter as litert
d = fake_delegate()
i = load(d)
run(i, random(4))
{end}
print("end")
"""

ENDS = {
    "objects alive at exit": "",
    "delegate first": "del d; gc.collect(); run(i, random(4)); del i; gc.collect()",
    "interpreter first": "del i; gc.collect(); del d; gc.collect()",
    "interpreter first, then another": "del i; gc.collect(); i = load(d); run(i, random(4))",
    "view alive at exit": "v = i.tensor(i.get_output_details()[0]['index'])(); del i, d; gc.collect()",
    "alive in a module": "sys.modules['keep'] = (d, i)",
    "alive in builtins": "import builtins; builtins.keep = i",
    "cycle alive at exit": "i.me = i; d.i = i",
    "closed, then exit": "d.close()",
    "exit in a thread": "import threading; t = threading.Thread(target=sys.exit); t.start(); t.join()",
    "exception at the end": "sys.excepthook = lambda *a: print('end'); raise ValueError",
    "sys.exit": "print('end'); sys.exit(0)",
    "atexit still uses it": "import atexit; atexit.register(lambda: run(i, random(4)))",
    "registered at exit before": "import atexit; atexit.register(i.allocate_tensors)",
}


@pytest.mark.parametrize("end", ENDS)
def test_process_ends_well(end, request):
    program = PROGRAM.format(root=str(request.config.rootpath), end=ENDS[end])
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == (1 if "exception" in end else 0), done.stderr
    assert "end" in done.stdout
    assert "Exception ignored" not in done.stderr
    assert "Fatal" not in done.stderr


def test_fork_is_a_clean_error(request):
    end = """
import os
r, w = os.pipe()
pid = os.fork()
if pid == 0:
    try:
        run(i, random(4))
        text = 'ran'
    except RuntimeError as error:
        text = str(error)
    os.write(w, text.encode())
    os._exit(0)
os.waitpid(pid, 0)
assert 'forked' in os.read(r, 9999).decode(), 'no error'
run(i, random(4))
"""
    program = PROGRAM.format(root=str(request.config.rootpath), end=end)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
