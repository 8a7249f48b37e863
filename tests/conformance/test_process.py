"""The end of a process, and forks of it: exit code 0 with anything left open, no hang, no crash."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance.conftest import open_runtime

ROOT = Path(__file__).parent.parent.parent

_SETUP = """
import gc, os, sys, threading
from tests.conformance.programs import chain, compile_program, floats
from tflite_vk.errors import DeviceError
from tflite_vk.runtime.open import open_device
device = open_device({index}, "{dispatcher}")
executable = compile_program(device, chain(3, 1024), profiling=True, guard_words=4)
def run(executable=executable):
    floats(executable.input_words(0))[:] = 1
    executable.run()
    assert (floats(executable.output_words(3)) == 4).all()
run()
"""


def _run(script: str, dispatcher: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a process of its own, with a device and an executable made."""
    setup = _SETUP.format(index=open_runtime(dispatcher).info.index, dispatcher=dispatcher)
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", setup + script],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("dispatcher", ["kompute", "vulkan"])
@pytest.mark.parametrize(
    "script",
    [
        "",
        "sys.exit(0)",
        "executable.close()",
        "del executable",
        "del device; gc.collect(); run(executable)",
        "view = executable.output_words(3); del executable, run",
        "loop = [executable]; loop.append(loop); del executable, run",
        "threading.Thread(target=sys.exit).start()",
        "t = threading.Thread(target=run); t.start()",
        "import atexit; atexit.register(run)",
    ],
)
def test_exit_with_live_objects(dispatcher: str, script: str) -> None:
    done = _run(script, dispatcher)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "script",
    [
        "device.close(); executable.close()",
        "executable.close(); device.close(); del device, executable",
        "view = executable.output_words(3); device.close(); assert (floats(view) == 4).all()",
        "view = executable.output_words(3); device.close(); del device, executable, run; gc.collect(); view.sum()",
    ],
)
def test_exit_of_the_vulkan_dispatcher(script: str) -> None:
    done = _run(script, "vulkan")
    assert (done.returncode, done.stderr) == (0, "")


def test_exit_while_daemon_threads_run() -> None:
    script = """
for _ in range(2):
    other = compile_program(device, chain(3, 1024))
    work = lambda e=other: [run(e) for _ in iter(int, 1)]
    threading.Thread(target=work, daemon=True).start()
"""
    done = _run(script, "vulkan")
    # The threads are told that their executable is closed, if they get to run at all.
    assert done.returncode == 0, done.stderr
    assert "Fatal" not in done.stderr


def test_forked_processes_open_devices_where_the_parent_has_none() -> None:
    script = """
import os, sys
from tflite_vk.runtime.open import devices, open_device
from tests.conformance.programs import chain, compile_program
assert devices()
for _ in range(2):
    pid = os.fork()
    if pid == 0:
        compile_program(open_device(None, "vulkan"), chain(3, 64)).run()
        sys.exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


_FORK = """
import time
before = executable.input_words(0)
pid = os.fork()
if pid == 0:
    for call in (
        executable.run,
        lambda: executable.input_words(0),
        executable.check_guards,
        executable.dispatch_us,
        executable.reset_states,
        lambda: compile_program(device, chain(1, 64)),
        lambda: open_device(None, "vulkan"),
        lambda: open_device(None, "auto"),
    ):
        try:
            call()
        except DeviceError as error:
            assert "fork" in str(error) and "spawn" in str(error), error
        else:
            os._exit(3)
    {child}
    sys.exit(0)
_, status = os.waitpid(pid, 0)
assert os.waitstatus_to_exitcode(status) == 0, status
run()
"""


@pytest.mark.parametrize(
    "child",
    [
        "pass",
        "executable.close(); device.close()",
        "del executable, run; gc.collect()",
    ],
)
def test_a_fork_may_use_no_device(child: str) -> None:
    done = _run(_FORK.format(child=child), "vulkan")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_fork_while_another_thread_runs() -> None:
    script = """
stop = threading.Event()
def work():
    while not stop.is_set():
        run()
threads = [threading.Thread(target=work)]
[t.start() for t in threads]
for _ in range(20):
    pid = os.fork()
    if pid == 0:
        try:
            executable.run()
        except DeviceError:
            os._exit(0)
        os._exit(3)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, status
stop.set()
[t.join() for t in threads]
run()
"""
    done = _run(script, "vulkan")
    assert (done.returncode, done.stderr) == (0, "")


def test_importing_needs_no_vulkan() -> None:
    script = (
        "import sys, tflite_vk.runtime.open\n"
        "assert 'vulkan' not in sys.modules and 'kp' not in sys.modules\n"
        "assert not any('vulkan.device' in m for m in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_machine_without_a_driver() -> None:
    script = (
        "from tflite_vk.runtime.open import devices, open_device\n"
        "from tflite_vk.errors import DeviceError\n"
        "assert devices() == []\n"
        "try: open_device(None, 'vulkan')\n"
        "except DeviceError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env=os.environ
        | dict.fromkeys(("VK_DRIVER_FILES", "VK_ICD_FILENAMES"), "/nonexistent.json"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "no driver could be loaded" in done.stdout or "no Vulkan device" in done.stdout
    assert "apt-get install" in done.stdout
