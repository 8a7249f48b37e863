"""tools/bench: parsing, choosing, tables, pictures, and one small run."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from bench import cli, invoke, measure, networks, starts
from bench.engines import KINDS, SkippedError, engines, input_for
from bench.networks import Network, ncnn_input_shape
from bench.plot import svg
from bench.process import Place, StartUp, WorkerProcess, because, environment
from bench.protocol import peak_memory_mib
from bench.results import Row, error_against, number, table
from bench.starts import Start
from tflite_vk.analysis.statistics import Statistics
from tflite_vk.errors import Error
from tflite_vk.ir.attributes import Conv2DAttributes, SoftmaxAttributes
from tflite_vk.testing.model_writer import ModelWriter

PARAM = """7767517
2 2
Input    data  0 1 data -23330=4,3,300,200,3 0=300 1=200 2=3
Softmax  prob  1 1 data output 0=0
"""


def _row(engine: str, *times_ms: float, network: str = "net") -> Row:
    wall = Statistics.of(times_ms)
    start = StartUp("engine 1", "device", 100.0, 20.0, 3.0, 90.0)
    return Row(network, engine, wall=wall, cpu=wall, ratio=2.0, error=1e-6, warm=start)


# Arguments


def test_ncnn_shapes_are_channels_first() -> None:
    assert ncnn_input_shape(PARAM) == (3, 200, 300)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "magic"),
        ("123\n0 0\n", "magic"),
        ("7767517\n1 1\nSoftmax a 1 1 b c 0=0\n", "no input"),
        ("7767517\n1 1\nInput data 0 1 data\n", "no input"),
    ],
)
def test_what_is_no_ncnn_graph_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ncnn_input_shape(text)


def test_pythons_by_engine() -> None:
    assert cli.pythons(["ncnn=/a/python", "onnxruntime=b=c"]) == {
        "ncnn": "/a/python",
        "onnxruntime": "b=c",
    }
    for bad in ("ncnn", "ncnn=", "unknown=/a/python"):
        with pytest.raises(ValueError, match="ENGINE=PATH"):
            cli.pythons([bad])


def test_engines_keep_the_order_of_the_table() -> None:
    assert [e.kind for e in engines(["ncnn", "vulkan"], [1])] == ["vulkan", "ncnn"]
    names = [e.name for e in engines(["litert-cpu"], [1, 16])]
    assert names == ["LiteRT CPU, 1 thread", "LiteRT CPU, 16 threads"]
    assert len({e.name for e in engines(KINDS, [1])}) == len(KINDS)
    with pytest.raises(ValueError, match="no engine 'tpu'"):
        engines(["tpu"], [1])


@pytest.mark.parametrize(
    "arguments", [["--engines", "tpu"], ["--threads", "0"], ["--rounds", "0"], ["nothing.tflite"]]
)
def test_bad_usage(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(arguments)
    assert stopped.value.code == 2


def test_drivers_keep_their_caches_in_the_folder_or_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MESA_SHADER_CACHE_DISABLE", "true")
    kept = environment(tmp_path, "worker")
    assert kept["MESA_SHADER_CACHE_DIR"].startswith(str(tmp_path))
    assert "MESA_SHADER_CACHE_DISABLE" not in kept
    off = environment(tmp_path, "off")
    assert (off["MESA_SHADER_CACHE_DISABLE"], off["__GL_SHADER_DISK_CACHE"]) == ("true", "0")


def test_an_engine_may_host_its_drivers_cache_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MESA_SHADER_CACHE_DIR", "/elsewhere")
    found = environment(tmp_path, "engine")
    assert not {"MESA_SHADER_CACHE_DIR", "MESA_SHADER_CACHE_DISABLE"} & found.keys()
    assert found["__GL_SHADER_DISK_CACHE"] == "0"
    assert found["XDG_CACHE_HOME"].startswith(str(tmp_path.parent))


def test_warm_starts_are_set_against_cold_ones_without_the_run() -> None:
    cold = Start.median([Start(9.0, 100.0, 1000.0 + x, 50.0, 1.0) for x in (0.0, 50.0, 900.0)])
    assert (cold.model_ms, cold.start_ms) == (1150.0, 1100.0)
    warm = Start(9.0, 60.0, 100.0, 50.0, 1.0)
    text = starts.table("net", "vulkan", {"cold": cold, "warm": warm, "no Mesa": cold})
    numbers = "".join(f"{n:8}" for n in (9, 60, 100, 50, 110))
    assert f"warm    {numbers}     10.0%" in text
    assert "warm is 13.9% of cold" in text


# Results


@pytest.mark.parametrize(
    ("value", "text"), [(1234.5, "1234"), (99.94, "99.9"), (9.994, "9.99"), (0.12345, "0.123")]
)
def test_numbers(value: float, text: str) -> None:
    assert number(value) == text


def test_table() -> None:
    rows = [_row("tflite_vk vulkan", 1.0, 2.0, 3.0), Row("net", "ncnn Vulkan", skipped="no graph")]
    lines = table(rows).splitlines()
    assert [cell.strip() for cell in lines[2].strip("|").split("|")] == [
        "net", "tflite_vk vulkan", "2.00", "2.80", "2.00", "2.00", "1.0e-06", "", "123", "",
    ]  # fmt: skip
    assert lines[-1] == "net, ncnn Vulkan: skipped: no graph"
    assert len({len(line) for line in lines[:3]}) == 1


def test_error_is_the_share_of_the_largest_value() -> None:
    want = [np.array([0.0, -4.0], np.float32), np.ones(3, np.float32)]
    got = [np.array([1.0, -4.0], np.float32), np.ones(3, np.float32)]
    assert error_against(got, want) == 0.25
    assert error_against(want, want) == 0.0
    assert error_against([], want) is None
    assert error_against(got[:1], want) == math.inf


def test_rows_are_plain_json() -> None:
    row = Row("net", "a", wall=Statistics.of([1.0]), error=math.inf)
    text = json.dumps(row.to_dict(), allow_nan=False)
    assert json.loads(text)["wall"]["median"] == 1.0


def test_picture_has_a_bar_for_each_row_that_ran() -> None:
    rows = [
        _row("tflite_vk vulkan", 1.0),
        _row("a < b & c", 4.0),
        Row("net", "skipped", skipped="it is"),
        _row("tflite_vk vulkan", 2.0, network="other"),
    ]
    root = ET.fromstring(svg(rows, "times"))
    name = "{http://www.w3.org/2000/svg}"
    bars = [r for r in root.iter(f"{name}rect") if r.get("x")]
    assert len(bars) == 3
    assert float(bars[1].get("width", 0)) == pytest.approx(4 * float(bars[0].get("width", 0)), 0.01)
    assert "a < b & c" in {t.text for t in root.iter(f"{name}text")}


def test_gpu_memory() -> None:
    text = "12, 300\n13, [N/A]\nnonsense\n12, 5\n"
    assert measure.parse_gpu_memory(text) == {12: 305.0}
    assert measure.parse_gpu_memory("") == {}


def test_peak_memory_is_more_than_a_python() -> None:
    peak = peak_memory_mib()
    assert peak is None or peak > 5


# Networks in other formats


def _network(folder: Path, op: str = "CONV_2D") -> Network:
    writer = ModelWriter()
    x = writer.input((1, 4, 4, 3), name="input")
    if op == "CONV_2D":
        rng = np.random.default_rng(0)
        weights = writer.const(rng.standard_normal((5, 3, 3, 3)).astype(np.float32))
        bias = writer.const(np.zeros(5, np.float32))
        attributes = Conv2DAttributes(fused_activation_function="RELU6", stride_h=2, stride_w=2)
        out = writer.op(op, [x, weights, bias], [(1, 2, 2, 5)], attributes)
    else:
        out = writer.op(op, [x], [(1, 4, 4, 3)], SoftmaxAttributes(beta=2.0))
    writer.output(out)
    path = folder / "net.tflite"
    path.write_bytes(writer.build())
    return networks.prepare(str(path), folder)


def test_skips_say_why(tmp_path: Path) -> None:
    network = _network(tmp_path, "SOFTMAX")
    ncnn, onnx = engines(["ncnn", "onnxruntime"], [1])
    with pytest.raises(SkippedError, match="no graph of this network"):
        input_for(ncnn, network, tmp_path, tmp_path)
    with pytest.raises(SkippedError, match="no ONNX form.*SOFTMAX"):
        input_for(onnx, network, tmp_path, tmp_path)
    known = Network("mobilenet_v1", network.model, network.graph, network.inputs)
    with pytest.raises(SkippedError, match="--ncnn-graphs"):
        input_for(ncnn, known, tmp_path, tmp_path / "nowhere")
    (tmp_path / "ncnn_mobilenet.param").write_text("nonsense", encoding="utf-8")
    with pytest.raises(SkippedError, match="magic"):
        input_for(ncnn, known, tmp_path, tmp_path)
    (tmp_path / "ncnn_mobilenet.param").write_text(PARAM, encoding="utf-8")
    settings = input_for(ncnn, known, tmp_path, tmp_path).settings
    assert settings == {"outputs": ["output"], "input_shape": [3, 200, 300]}


def test_a_network_as_onnx(tmp_path: Path) -> None:
    network = _network(tmp_path)
    given = input_for(engines(["onnxruntime"], [1])[0], network, tmp_path, tmp_path)
    data = given.model.read_bytes()
    assert data[:2] == bytes([0x08, 8]), "field 1, ir_version 8"
    assert b"Conv" in data
    assert b"Clip" in data
    weights = network.graph.tensors[network.graph.nodes[0].inputs[1]].data
    assert weights is not None
    assert weights.transpose(0, 3, 1, 2).astype("<f4").tobytes() in data


def test_unknown_networks_name_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(Error, match="mobilenet_v1"):
        networks.find("no such", tmp_path)


# Processes


def test_a_python_that_is_not_there_is_a_skip(tmp_path: Path) -> None:
    network = _network(tmp_path)
    engine = engines(["litert-cpu"], [1])[0]
    given = input_for(engine, network, tmp_path, tmp_path)
    place = Place({"litert-cpu": str(tmp_path / "python")}, "fp32")
    with pytest.raises(SkippedError, match="can't be started"):
        WorkerProcess(engine, given, network.inputs, tmp_path / "cache", place)


def test_a_process_that_dies_is_a_skip(tmp_path: Path) -> None:
    network = _network(tmp_path)
    engine = engines(["litert-cpu"], [1])[0]
    given = input_for(engine, network, tmp_path, tmp_path)
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'no engine here' >&2\nexit 3\n", encoding="utf-8")
    python.chmod(0o755)
    with pytest.raises(SkippedError, match="status 3, no engine here"):
        WorkerProcess(
            engine, given, network.inputs, tmp_path, Place({"litert-cpu": str(python)}, "fp32")
        )


def test_what_an_engine_prints_completes_the_reason() -> None:
    printed = ["starting", "ERROR: no adapters found", "ERROR: later"]
    assert because("it can't", printed) == "it can't (ERROR: no adapters found)"
    assert because("it can't", ["nothing to see"]) == "it can't"


def test_a_small_run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ai_edge_litert")
    network = _network(tmp_path)
    out = tmp_path / "out"
    arguments = ["--engines", "litert-cpu,ncnn", "--rounds", "2", "--seconds", "0.01"]
    assert cli.main([*arguments, "--out", str(out), str(network.model)]) == 0
    printed = capfd.readouterr().out
    assert "LiteRT CPU, 1 thread" in printed
    assert "ncnn Vulkan: skipped: ncnn has no graph" in printed
    found = json.loads((out / "results.json").read_text(encoding="utf-8"))["rows"]
    assert found[0]["ratio"] == 1.0
    assert found[0]["error"] == 0.0
    assert len(found[0]["samples_ms"]) >= 2
    assert found[0]["cold"]["load_ms"] > 0
    assert (out / "results.md").read_text(encoding="utf-8") == printed
    ET.fromstring((out / "results.svg").read_text(encoding="utf-8"))


def test_both_ways_to_call_it() -> None:
    root = Path(__file__).resolve().parent.parent.parent
    for call in (["-m", "tools.bench"], ["tools/bench"]):
        ran = subprocess.run(
            [sys.executable, *call, "--help"], cwd=root, capture_output=True, text=True, check=True
        )
        assert "--ncnn-graphs" in ran.stdout


def test_what_an_invoke_costs_is_measured_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    found = {name: lambda name=name: calls.append(name) for name in ("a", "b")}
    samples = invoke.measure(found, rounds=2, invokes=3)
    assert calls == [*"aaabbb"] * 3
    assert {name: len(us) for name, us in samples.items()} == {"a": 2, "b": 2}


def test_one_operator_runs_in_every_engine_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    found, _ = invoke.engines(invoke.one_operator())
    if not found:
        pytest.skip("nothing to run a model with")
    assert invoke.main(["--rounds", "1", "--invokes", "2", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed.keys() == found.keys()
    assert all(times["min"] > 0 for times in printed.values())
