"""What is kept in cache_dir: plans and programs. Anything that doesn't fit is a miss, never an error."""

from __future__ import annotations

import dataclasses
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tflite_vk.cache import compile_cache, digest
from tflite_vk.cache.compile_cache import CompileCache, open_cache
from tflite_vk.cache.digest import graph_digest
from tflite_vk.cache.plans import Plan, changed_shapes
from tflite_vk.cache.programs import encode
from tflite_vk.compiler import CompileSettings, compile_graph
from tflite_vk.frontend.flatbuffer import read_model
from tflite_vk.ir.attributes import Conv2DAttributes, NoAttributes
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.lowering import Lowered, lower
from tflite_vk.memory import plan_memory
from tflite_vk.options import DelegateOptions
from tflite_vk.passes.infer_shapes import with_shape
from tflite_vk.program import MemoryPlan
from tflite_vk.program_printer import format_program
from tflite_vk.runtime import cache as cache_files
from tflite_vk.runtime.null import NULL_DEVICE, NullDevice
from tflite_vk.testing.model_writer import ModelWriter

ROOT = Path(__file__).resolve().parent.parent.parent


def _graph(scale: float = 1.0) -> Graph:
    """A convolution with a residual, of two outputs."""
    w = ModelWriter()
    x = w.input((1, 5, 5, 3), name="x")
    rng = np.random.default_rng(0)
    weights = w.const((scale * rng.standard_normal((3, 3, 3, 3))).astype(np.float32))
    bias = w.const(np.arange(3, dtype=np.float32))
    attributes = Conv2DAttributes(fused_activation_function="RELU6", stride_h=1, stride_w=1)
    y = w.op("CONV_2D", [x, weights, bias], [(1, 5, 5, 3)], attributes)
    w.output(w.op("ABS", [y], [(1, 5, 5, 3)], NoAttributes()))
    w.output(y)
    return read_model(w.build()).subgraphs[0]


def _lowered(graph: Graph) -> tuple[Lowered, MemoryPlan]:
    lowered = lower(graph, NULL_DEVICE)
    return lowered, plan_memory(lowered.program)


def _cache(folder: Path, token: str | None = "model") -> CompileCache:
    return CompileCache(folder, token, NULL_DEVICE)


@pytest.fixture(autouse=True)
def _forget_warnings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_files, "_warned", set())


@pytest.fixture
def saved(tmp_path: Path) -> Iterator[tuple[Path, Graph]]:
    """A folder with one program."""
    graph = _graph()
    _cache(tmp_path).save_program(graph, "fp32", *_lowered(graph))
    yield tmp_path, graph


def _the_file(folder: Path) -> Path:
    (path,) = folder.iterdir()
    return path


# Programs


def test_a_program_comes_back_as_it_was(saved: tuple[Path, Graph]) -> None:
    folder, graph = saved
    lowered, plan = _lowered(graph)
    found = _cache(folder).load_program(graph, "fp32")
    assert found is not None
    got, got_plan = found
    assert got_plan == plan
    assert format_program(got.program) == format_program(lowered.program)
    assert got.program.dispatches == lowered.program.dispatches
    assert (got.buffer, got.flat) == (lowered.buffer, lowered.flat)
    assert (got.graph.inputs, got.graph.outputs) == (lowered.graph.inputs, lowered.graph.outputs)
    for a, b in zip(got.program.buffers, lowered.program.buffers, strict=True):
        assert (a.name, a.words, a.kind) == (b.name, b.words, b.kind)
        assert (a.data is None) == (b.data is None)
        if a.data is not None and b.data is not None:
            assert np.array_equal(a.data, b.data)
            assert a.data.ctypes.data % 16 == 0, "the data is not aligned"


def test_compiling_twice_lowers_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, device, settings = _graph(), NullDevice(), CompileSettings()
    first = compile_graph(graph, device, settings, _cache(tmp_path))
    monkeypatch.setattr("tflite_vk.compiler.lower", None)
    second = compile_graph(graph, device, settings, _cache(tmp_path))
    assert format_program(second[0].program) == format_program(first[0].program)
    with pytest.raises(TypeError):
        compile_graph(graph, device, CompileSettings(fusion=False), _cache(tmp_path))


def test_a_program_that_returns_a_constant_is_not_kept(tmp_path: Path) -> None:
    w = ModelWriter()
    x = w.input((4,), name="x")
    w.output(w.op("ABS", [x], [(4,)], NoAttributes()))
    w.output(w.const(np.ones(4, np.float32)))
    graph = read_model(w.build()).subgraphs[0]
    assert encode(*_lowered(graph)) is None
    _cache(tmp_path).save_program(graph, "", *_lowered(graph))
    assert not list(tmp_path.iterdir())


# Misses


def test_other_weights_are_a_miss_and_take_the_place(saved: tuple[Path, Graph]) -> None:
    folder, graph = saved
    other = _graph(scale=2.0)
    cache = _cache(folder)
    assert cache.load_program(other, "fp32") is None
    cache.save_program(other, "fp32", *_lowered(other))
    assert len(list(folder.iterdir())) == 1, "a token names one model"
    assert cache.load_program(other, "fp32") is not None
    assert cache.load_program(graph, "fp32") is None


def test_without_a_token_models_lie_side_by_side(tmp_path: Path) -> None:
    cache = _cache(tmp_path, None)
    for graph in (_graph(), _graph(scale=2.0)):
        cache.save_program(graph, "fp32", *_lowered(graph))
    assert len(list(tmp_path.iterdir())) == 2
    assert cache.load_program(_graph(), "fp32") is not None


def test_other_settings_and_shapes_are_other_programs(saved: tuple[Path, Graph]) -> None:
    folder, graph = saved
    cache = _cache(folder)
    assert cache.load_program(graph, "fp16") is None
    x = graph.inputs[0]
    larger = graph.with_(tensors=[with_shape(graph.tensors[x], (1, 7, 7, 3))])
    assert cache.load_program(larger, "fp32") is None
    assert cache.load_program(graph, "fp32") is not None


@pytest.mark.parametrize(
    "change",
    [
        {"driver_version": 9},
        {"uuid": "ff" * 16},
        {"vendor_id": 1},
        {"device_id": 7},
        {"name": "another"},
        {"features": frozenset({"shaderFloat16"})},
        {"limits": dataclasses.replace(NULL_DEVICE.limits, shared_memory_bytes=1 << 20)},
    ],
)
def test_another_device_is_a_miss(saved: tuple[Path, Graph], change: dict[str, Any]) -> None:
    folder, graph = saved
    other = CompileCache(folder, "model", dataclasses.replace(NULL_DEVICE, **change))
    assert other.load_program(graph, "fp32") is None


@pytest.mark.parametrize("name", ["code_digest", "CacheKey"])
def test_another_package_is_a_miss(
    saved: tuple[Path, Graph], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    folder, graph = saved
    if name == "code_digest":
        monkeypatch.setattr(compile_cache, name, lambda: "edited")
    else:
        monkeypatch.setattr(cache_files, "library_hash", lambda: "other shaders")
    assert _cache(folder).load_program(graph, "fp32") is None


def test_every_truncation_is_a_miss(saved: tuple[Path, Graph]) -> None:
    folder, graph = saved
    path = _the_file(folder)
    good = path.read_bytes()
    for length in (*range(0, len(good), 61), len(good) - 1):
        path.write_bytes(good[:length])
        assert _cache(folder).load_program(graph, "fp32") is None, length


def test_every_damaged_byte_is_a_miss(saved: tuple[Path, Graph]) -> None:
    folder, graph = saved
    path = _the_file(folder)
    good = path.read_bytes()
    for position in range(0, len(good), 37):
        path.write_bytes(good[:position] + bytes([good[position] ^ 16]) + good[position + 1 :])
        assert _cache(folder).load_program(graph, "fp32") is None, position
    path.write_bytes(good)
    assert _cache(folder).load_program(graph, "fp32") is not None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"\xff" * 300,
        (2).to_bytes(8, "little") + b"{}",
        (5).to_bytes(8, "little") + b"[1,2]",
        (1 << 60).to_bytes(8, "little") + b"{}",
    ],
)
def test_content_that_was_never_written_by_us_is_a_miss(
    saved: tuple[Path, Graph], content: bytes
) -> None:
    """A file that is good by its hash and still makes no sense."""
    folder, graph = saved
    _cache(folder)._file("program", graph, "fp32").write(content)
    assert _cache(folder).load_program(graph, "fp32") is None


def test_a_program_against_the_shaders_manifest_is_a_miss(saved: tuple[Path, Graph]) -> None:
    folder, graph = saved
    lowered, plan = _lowered(graph)
    first = dataclasses.replace(lowered.program.dispatches[0], push=(1,))
    dispatches = (first, *lowered.program.dispatches[1:])
    program = dataclasses.replace(lowered.program, dispatches=dispatches)
    _cache(folder).save_program(graph, "fp32", dataclasses.replace(lowered, program=program), plan)
    assert _cache(folder).load_program(graph, "fp32") is None


def test_a_folder_that_cannot_be_written_warns_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way")
    cache, graph = _cache(tmp_path / "file" / "folder"), _graph()
    with caplog.at_level(logging.WARNING, "tflite_vk"):
        for _ in range(2):
            cache.save_program(graph, "fp32", *_lowered(graph))
            cache.save_plan(graph, "door", Plan({0: None}))
            assert cache.load_program(graph, "fp32") is None
            assert cache.load_plan(graph, "door") is None
    assert len(caplog.records) == 1


def test_a_folder_in_the_place_of_a_file_is_a_miss(saved: tuple[Path, Graph]) -> None:
    folder, graph = saved
    path = _the_file(folder)
    path.unlink()
    path.mkdir()
    assert _cache(folder).load_program(graph, "fp32") is None
    _cache(folder).save_program(graph, "fp32", *_lowered(graph))
    assert list(folder.iterdir()) == [path]


_WRITER = """
import sys
from pathlib import Path
from tests.unit.test_compile_cache import _cache, _graph, _lowered
graph = _graph()
for _ in range(40):
    _cache(Path(sys.argv[1])).save_program(graph, "fp32", *_lowered(graph))
    assert _cache(Path(sys.argv[1])).load_program(graph, "fp32") is not None
"""


def test_two_processes_write_at_once(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _WRITER, str(tmp_path)]
    processes = [subprocess.Popen(command, cwd=ROOT) for _ in range(2)]
    assert [p.wait(120) for p in processes] == [0, 0]
    assert len(list(tmp_path.iterdir())) == 1, "a temporary is left"


# Digests


def test_digest_sees_everything() -> None:
    graph = _graph()
    same = graph_digest(graph)
    assert graph_digest(_graph()) == same
    first = graph.nodes[0]
    node = dataclasses.replace(first, attributes=Conv2DAttributes(padding="VALID"))
    tensor = graph.tensors[graph.inputs[0]]
    changed = [
        _graph(scale=1.0000001),
        graph.with_(nodes=[node, *graph.nodes[1:]]),
        graph.with_(tensors=[with_shape(tensor, (1, 6, 5, 3))]),
        graph.with_(outputs=graph.outputs[::-1]),
        graph.with_(tensors=[dataclasses.replace(tensor, is_variable=True)]),
        graph.with_(nodes=[dataclasses.replace(first, version=2), *graph.nodes[1:]]),
    ]
    assert len({same, *map(graph_digest, changed)}) == 1 + len(changed)


def test_strings_are_hashed_by_what_they_say() -> None:
    graph = _graph()
    tensor = graph.tensors[graph.inputs[0]]

    def with_text(*texts: bytes) -> Graph:
        data = np.array(texts, object)
        return graph.with_(tensors=[dataclasses.replace(tensor, shape=data.shape, data=data)])

    assert graph_digest(with_text(b"a", b"b")) == graph_digest(with_text(b"a", b"b"))
    assert graph_digest(with_text(b"a", b"b")) != graph_digest(with_text(b"a", b"c"))


def test_code_digest_is_of_every_module() -> None:
    assert len(digest.code_digest()) == 64


# Plans


def _never(node: Node, graph: Graph) -> str | None:
    raise AssertionError(f"asked about {node.op} again")


def test_a_plan_answers_what_it_knows(tmp_path: Path) -> None:
    graph = _graph()
    plan = Plan({0: None, 1: "it can't"}, {graph.outputs[0]: (1, 2)})
    _cache(tmp_path).save_plan(graph, "door", plan)
    found = _cache(tmp_path).load_plan(graph, "door")
    assert found == plan
    assert _cache(tmp_path).load_plan(graph, "another door") is None
    check = found.unsupported(_never)
    assert [check(n, graph) for n in graph.nodes] == [None, "it can't"]
    assert found.with_shapes(graph).tensors[graph.outputs[0]].shape == (1, 2)
    other = Plan({0: None}).unsupported(lambda n, g: "asked")
    assert [other(n, graph) for n in graph.nodes] == [None, "asked"]


@pytest.mark.parametrize("content", [b"", b"[]", b'{"reasons": [[1]], "shapes": []}', b"\xff"])
def test_plans_that_make_no_sense_are_a_miss(tmp_path: Path, content: bytes) -> None:
    graph = _graph()
    _cache(tmp_path)._file("plan", graph, "door").write(content)
    assert _cache(tmp_path).load_plan(graph, "door") is None


def test_only_changes_of_shape_can_be_repeated() -> None:
    graph = _graph()
    tensor = graph.tensors[graph.inputs[0]]

    def change(**fields: Any) -> Graph:
        return graph.with_(tensors=[dataclasses.replace(tensor, **fields)])

    assert changed_shapes(graph, graph) == {}
    assert changed_shapes(graph, change(shape=(2, 2))) == {tensor.id: (2, 2)}
    assert changed_shapes(graph, change(data=np.zeros(3, np.float32))) is None
    assert changed_shapes(graph, change(is_dynamic=True)) is None
    assert changed_shapes(graph, graph.with_(nodes=graph.nodes[:1])) is None


def test_options_name_the_cache(tmp_path: Path) -> None:
    assert open_cache(DelegateOptions(), NULL_DEVICE) is None
    cache = open_cache(DelegateOptions(cache_dir=tmp_path, model_token="t"), NULL_DEVICE)
    assert cache is not None
    cache.save_plan(_graph(), "door", Plan({}))
    assert _the_file(tmp_path).name.startswith("t-")
    assert _the_file(tmp_path).suffix == ".plan"
