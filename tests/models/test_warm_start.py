"""A second start from cache_dir: the same results, with nothing planned, lowered or packed again."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tflite_vk
from tests.conformance.conftest import open_runtime
from tflite_vk.delegate import delegate as delegate_module
from tflite_vk.ir.attributes import (
    Conv2DAttributes,
    DepthwiseConv2DAttributes,
    NoAttributes,
    SoftmaxAttributes,
)
from tflite_vk.ops import registry
from tflite_vk.testing.model_writer import ModelWriter

Array = npt.NDArray[Any]

ROOT = Path(__file__).resolve().parent.parent.parent
IMAGE = np.linspace(-1, 1, 5 * 5 * 3, dtype=np.float32).reshape(1, 5, 5, 3)


def _model(scale: float = 1.0) -> bytes:
    w, rng = ModelWriter(), np.random.default_rng(0)
    x = w.input((1, 5, 5, 3), name="x")
    weights = w.const((scale * rng.standard_normal((4, 3, 3, 3))).astype(np.float32))
    bias = w.const(np.arange(4, dtype=np.float32))
    x = w.op("CONV_2D", [x, weights, bias], [(1, 5, 5, 4)], Conv2DAttributes())
    w.output(w.op("ABS", [x], [(1, 5, 5, 4)], NoAttributes()))
    w.output(w.op("SOFTMAX", [x], [(1, 5, 5, 4)], SoftmaxAttributes(beta=1.0)))
    return w.build()


def _run(interpreter: Any) -> list[Array]:
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], IMAGE)
    interpreter.invoke()
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


def _own(model: bytes, **options: Any) -> list[Array]:
    interpreter = tflite_vk.Interpreter(model_content=model, **options)
    assert interpreter.report.is_fully_delegated
    assert not interpreter.uses_litert
    return _run(interpreter)


def _delegate(model: bytes, **options: Any) -> list[Array]:
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    delegate = tflite_vk.VulkanDelegate(**options)
    interpreter = litert.Interpreter(model_content=model, experimental_delegates=[delegate])
    assert delegate.report.is_fully_delegated
    return _run(interpreter)


Door = Callable[..., list[Array]]


@pytest.fixture(params=[_own, _delegate], ids=["interpreter", "delegate"])
def door(request: pytest.FixtureRequest) -> Door:
    """A front door: runs a model with options."""
    found: Door = request.param
    return found


@pytest.fixture(params=["vulkan", "kompute"])
def dispatcher(request: pytest.FixtureRequest) -> str:
    """Every dispatcher there is here."""
    open_runtime(request.param)
    return str(request.param)


def _forbid_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError("done again, though it is in the cache")

    for name in ("tflite_vk.compiler.lower", "tflite_vk.compiler.plan_memory"):
        monkeypatch.setattr(name, forbidden)
    for name in ("unsupported_reason", "infer_shapes", "operators"):
        monkeypatch.setattr(registry, name, forbidden)
    monkeypatch.setattr(delegate_module, "unsupported_reason", forbidden)


def _assert_same(got: list[Array], want: list[Array]) -> None:
    assert all(np.array_equal(a, b) for a, b in zip(got, want, strict=True))


def _files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.iterdir() if p.is_file())


def test_a_warm_start_compiles_nothing(
    door: Door, dispatcher: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"dispatcher": dispatcher, "cache_dir": tmp_path, "model_token": "m"}
    want = door(_model(), dispatcher=dispatcher)
    _assert_same(door(_model(), **options), want)
    files = _files(tmp_path)
    assert {f.suffix for f in files} >= {".plan", ".program"}
    _forbid_compiling(monkeypatch)
    _assert_same(door(_model(), **options), want)
    assert _files(tmp_path) == files


def test_another_model_under_the_same_token_is_itself(door: Door, tmp_path: Path) -> None:
    open_runtime("vulkan")
    options = {"dispatcher": "vulkan", "cache_dir": tmp_path, "model_token": "m"}
    door(_model(), **options)
    for scale in (2.0, 1.0, 2.0):
        want = door(_model(scale), dispatcher="vulkan")
        _assert_same(door(_model(scale), **options), want)


def test_options_have_programs_of_their_own(door: Door, tmp_path: Path) -> None:
    open_runtime("vulkan")
    base = {"dispatcher": "vulkan", "cache_dir": tmp_path, "model_token": "m"}
    full = door(_model(), **base)
    half = door(_model(), **base, precision="fp16")
    assert not np.array_equal(full[0], half[0])
    _assert_same(door(_model(), **base), full)
    _assert_same(door(_model(), **base, precision="fp16"), half)
    _assert_same(door(_model(), **base, fusion=False), full)


def test_damage_changes_no_result(
    door: Door, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    open_runtime("vulkan")
    options = {"dispatcher": "vulkan", "cache_dir": tmp_path, "model_token": "m"}
    want = door(_model(), **options)
    good = {p: p.read_bytes() for p in _files(tmp_path)}
    damages: list[Callable[[bytes], bytes]] = [
        lambda b: b"",
        lambda b: b[: len(b) // 2],
        lambda b: b[:-1] + bytes([b[-1] ^ 1]),
        lambda b: b[:20] + bytes([b[20] ^ 1]) + b[21:],
        lambda b: b"\xff" * len(b),
    ]
    with caplog.at_level(logging.WARNING, "tflite_vk"):
        for damage in damages:
            for path, content in good.items():
                path.write_bytes(damage(content))
            _assert_same(door(_model(), **options), want)
    assert not [r for r in caplog.records if r.levelno >= logging.WARNING]
    assert all(p.stat().st_size > 100 for p in good), "good files take the place of bad ones"


def test_a_folder_that_cannot_be_written_warns_once(
    door: Door, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    open_runtime("vulkan")
    (tmp_path / "file").write_text("in the way")
    folder = tmp_path / "file" / "folder"
    with caplog.at_level(logging.WARNING, "tflite_vk"):
        got = door(_model(), dispatcher="vulkan", cache_dir=folder)
    _assert_same(got, door(_model(), dispatcher="vulkan"))
    assert len([r for r in caplog.records if "can't be written" in r.getMessage()]) == 1


def test_shapes_have_programs_of_their_own(tmp_path: Path) -> None:
    open_runtime("vulkan")
    options: dict[str, Any] = {"dispatcher": "vulkan", "cache_dir": tmp_path, "model_token": "m"}
    big = np.linspace(-1, 1, 7 * 6 * 3, dtype=np.float32).reshape(1, 7, 6, 3)

    def run(**more: Any) -> list[Array]:
        interpreter = tflite_vk.Interpreter(model_content=_model(), **more)
        index = interpreter.get_input_details()[0]["index"]
        out = _run(interpreter)
        interpreter.resize_tensor_input(index, big.shape)
        interpreter.allocate_tensors()
        interpreter.set_tensor(index, big)
        interpreter.invoke()
        outputs = interpreter.get_output_details()
        assert outputs[0]["shape"].tolist() == [1, 7, 6, 4]
        return [*out, *(interpreter.get_tensor(d["index"]) for d in outputs)]

    want = run(dispatcher="vulkan")
    for _ in range(2):
        _assert_same(run(**options), want)


def test_tuned_kernels_give_the_same_results(dispatcher: str, tmp_path: Path) -> None:
    w, rng = ModelWriter(), np.random.default_rng(0)

    def weights(*shape: int) -> int:
        return w.const(rng.standard_normal(shape).astype(np.float32))

    x = w.input((1, 12, 12, 8), name="x")
    inputs = [x, weights(32, 1, 1, 8), weights(32)]
    x = w.op("CONV_2D", inputs, [(1, 12, 12, 32)], Conv2DAttributes())
    inputs = [x, weights(1, 3, 3, 32), weights(32)]
    attributes = DepthwiseConv2DAttributes(depth_multiplier=1)
    w.output(w.op("DEPTHWISE_CONV_2D", inputs, [(1, 12, 12, 32)], attributes))
    model = w.build()
    image = rng.uniform(-1, 1, (1, 12, 12, 8)).astype(np.float32)

    def run(**options: Any) -> Array:
        interpreter = tflite_vk.Interpreter(model_content=model, **options)
        interpreter.allocate_tensors()
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], image)
        interpreter.invoke()
        output: Array = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
        return output

    want = run(dispatcher=dispatcher)
    for _ in range(2):
        got = run(dispatcher=dispatcher, tuning="fast", cache_dir=tmp_path)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    assert len(list(tmp_path.glob("tuned-*.sizes"))) == 1


_START = """
import sys
import numpy as np
import tflite_vk
interpreter = tflite_vk.Interpreter(
    model_path=sys.argv[1], dispatcher="vulkan", cache_dir=sys.argv[2]
)
interpreter.allocate_tensors()
value = np.ones((1, 5, 5, 3), np.float32)
interpreter.set_tensor(interpreter.get_input_details()[0]["index"], value)
interpreter.invoke()
output = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
families = [m for m in sys.modules if m.startswith("tflite_vk.ops.quantized.")]
print(output.tobytes().hex(), len(families))
"""


def test_a_warm_process_does_not_even_import_the_operators(tmp_path: Path) -> None:
    open_runtime("vulkan")
    path = tmp_path / "model.tflite"
    path.write_bytes(_model())
    command = [sys.executable, "-c", _START, str(path), str(tmp_path / "cache")]
    printed = [
        subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
        for _ in range(2)
    ]
    assert printed[0][0] == printed[1][0]
    assert int(printed[0][1]) > 3
    assert int(printed[1][1]) == 0
