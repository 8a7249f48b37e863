from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Run
from tflite_vk.analysis.benchmarking import Engine, Schedule, benchmark
from tflite_vk.analysis.ceilings import (
    Ceilings,
    arithmetic_program,
    copy_program,
    launch_program,
    measure_ceilings,
)
from tflite_vk.analysis.profiling import DispatchTime, bytes_of, operators_of, profile
from tflite_vk.analysis.statistics import Statistics
from tflite_vk.device_info import DeviceLimits
from tflite_vk.frontend.flatbuffer import read_model
from tflite_vk.memory import plan_memory
from tflite_vk.options import DelegateOptions
from tflite_vk.program import verify_program
from tflite_vk.runtime.device import Device
from tflite_vk.runtime.null import NullDevice


def test_statistics() -> None:
    s = Statistics.of([4.0, 1.0, 2.0, 3.0, 10.0])
    assert (s.count, s.median, s.mean, s.min, s.max) == (5, 3.0, 4.0, 1.0, 10.0)
    assert s.p90 == pytest.approx(7.6)
    assert s.std == pytest.approx(np.std([4, 1, 2, 3, 10]))


class FakeInterpreter:
    """Counts what is asked of it."""

    def __init__(self, log: list[str], name: str) -> None:
        self.log, self.name = log, name

    def get_input_details(self) -> list[dict[str, object]]:
        return [{"index": 0, "shape": np.array([2])}]

    def get_output_details(self) -> list[dict[str, object]]:
        return [{"index": 1}]

    def allocate_tensors(self) -> None:
        self.log.append(f"{self.name} allocate")

    def set_tensor(self, index: int, value: object) -> None:
        pass

    def invoke(self) -> None:
        self.log.append(self.name)

    def get_tensor(self, index: int) -> np.ndarray:
        return np.zeros(2)


def test_engines_take_turns() -> None:
    log: list[str] = []
    engines = [
        Engine(name, lambda name=name: (FakeInterpreter(log, name), None)) for name in ("a", "b")
    ]
    results = benchmark(
        engines, {0: np.zeros(2)}, Schedule(num_runs=3, warmup_runs=1), lambda *_: None
    )
    start = ["a allocate", "a", "b allocate", "b"]
    assert log == start + ["a", "b"] * 4
    assert [r.warm.count for r in results] == [3, 3]
    assert all(r.report is None for r in results)


def test_max_secs_ends_the_runs() -> None:
    log: list[str] = []
    engine = Engine("a", lambda: (FakeInterpreter(log, "a"), None))
    (result,) = benchmark([engine], {0: np.zeros(2)}, Schedule(num_runs=1000, max_secs=0.0))
    assert result.warm.count == 1


@pytest.mark.usefixtures("device")
def test_benchmark_json(cli: Run, model: Path) -> None:
    result = cli(
        "benchmark",
        f"--graph={model}",
        "--num_runs=4",
        "--compare_cpu",
        "--num_threads=1",
        "--json",
    )
    assert result.status == 0
    gpu, cpu = result.json["engines"]
    assert (gpu["name"], cpu["name"]) == ("GPU fp32", "LiteRT CPU, 1 thread")
    assert gpu["warm_ms"]["count"] == cpu["warm_ms"]["count"] == 4
    assert gpu["init_ms"] > 0 < gpu["first_ms"]
    assert gpu["invoke_ms"]["median"] <= gpu["warm_ms"]["median"]
    assert gpu["report"]["num_delegated"] == 3
    assert cpu["report"] is None
    ratio = cpu["warm_ms"]["median"] / gpu["warm_ms"]["median"]
    assert result.json["speedup"] == pytest.approx(ratio)


@pytest.mark.usefixtures("device")
def test_benchmark_text_through_the_delegate(cli: Run, model: Path) -> None:
    result = cli("benchmark", model, "--num_runs", 2, "--front_door", "delegate")
    assert result.status == 0
    assert "\nGPU fp32, delegate" in result.out
    assert "runs       2 each\n" in result.out


@pytest.mark.usefixtures("device")
def test_benchmark_of_fp16_quotes_its_error(cli: Run, model: Path) -> None:
    result = cli("benchmark", model, "--num_runs=1", "--gpu_precision_loss_allowed=true", "--json")
    assert result.json["precision"] == "fp16"
    (difference,) = result.json["fp16_difference"]
    assert 0 < difference["max_rel"] < 1e-2


@pytest.mark.usefixtures("device")
def test_benchmark_node_range(cli: Run, model: Path) -> None:
    result = cli(
        "benchmark", model, "--num_runs=1", "--first_delegate_node_index=1",
        "--last_delegate_node_index=1", "--json",
    )  # fmt: skip
    nodes = result.json["engines"][0]["report"]["nodes"]
    assert [n["delegated"] for n in nodes] == [False, True, False]
    required = cli(
        "benchmark", model, "--num_runs=1", "--first_delegate_node_index=1",
        "--require_full_delegation",
    )  # fmt: skip
    assert required.status == 1
    assert required.out.endswith("\nFull delegation was required.\n")


@pytest.mark.usefixtures("device", "no_litert")
def test_benchmark_without_litert(cli: Run, model: Path) -> None:
    assert cli("benchmark", model, "--num_runs=1").status == 0
    compared = cli("benchmark", model, "--num_runs=1", "--compare_cpu")
    assert compared.status == 2
    assert compared.err.endswith("; pip install 'tflite_vk[litert]'\n")


def test_benchmark_of_the_cpu_alone(cli: Run, model: Path) -> None:
    result = cli("benchmark", model, "--use_gpu=false", "--num_runs=2", "--json")
    assert result.status == 0
    (engine,) = result.json["engines"]
    assert engine["name"] == "LiteRT CPU, default threads"
    assert result.json["speedup"] is None


@pytest.mark.usefixtures("device")
def test_benchmark_inputs(cli: Run, model: Path, tmp_path: Path) -> None:
    raw = tmp_path / "x.raw"
    raw.write_bytes(np.zeros((1, 6, 5, 3), np.float32).tobytes())
    run = ("benchmark", model, "--num_runs=1")
    assert cli(*run, f"--input_layer_value_files=x:{raw}").status == 0
    assert cli(*run, "--input_layer_value_range=x,0,1").status == 0
    assert cli(*run, "--input_layer=x", "--input_layer_shape=1,6,5,3").status == 0
    assert cli(*run, "--input_layer=x", "--input_layer_shape=2,6,5,3").status == 0
    raw.write_bytes(b"short")
    assert cli(*run, f"--input_layer_value_files=x:{raw}").err == (
        f"tflite-vk: error: {raw}: 5 bytes, input 'x' takes 360\n"
    )


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--num_runs=0"], "--num_runs is 0 (allowed: 1 and up)"),
        (["--num_threads=0"], "--num_threads is 0 (allowed: 1 and up)"),
        (["--graph=y"], "give the model once: MODEL, or --graph=MODEL"),
        (
            ["--input_layer_value_range=y,0,1"],
            "the model has no input 'y'; it has 'x' FLOAT32[1, 6, 5, 3]",
        ),
        (["--input_layer_value_range=x,0"], "--input_layer_value_range 'x,0' is not NAME,LOW,HIGH"),
        (
            ["--input_layer=x", "--input_layer_shape=1,a"],
            "--input_layer_shape '1,a' is no shape, such as 1,224,224,3",
        ),
        (
            ["--input_layer_shape=1,2"],
            "--input_layer names 0 inputs, --input_layer_shape 1 shapes",
        ),
        (["--input_layer_value_files=x"], "--input_layer_value_files 'x' is not NAME:FILE"),
    ],
)
def test_benchmark_flags_that_mean_nothing(
    cli: Run, model: Path, flags: list[str], message: str
) -> None:
    result = cli("benchmark", model, *flags)
    assert (result.status, result.err) == (2, f"tflite-vk: error: {message}\n")


@pytest.mark.usefixtures("device")
def test_op_profile_as_csv(cli: Run, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "profile.csv"
    result = cli(
        "benchmark", model, "--num_runs=1", "--enable_op_profiling=true",
        "--op_profiling_output_mode=csv", f"--op_profiling_output_file={path}",
    )  # fmt: skip
    assert result.status == 0
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["operators"] for row in rows] == ["CONV_2D+RELU", "SOFTMAX"]
    assert [row["node"] for row in rows] == ["0", "2"]
    assert all(float(row["us"]) > 0 for row in rows)
    refused = cli("benchmark", model, "--op_profiling_output_mode=proto")
    assert refused.status == 2


@pytest.mark.usefixtures("device")
def test_profile_json_and_trace(cli: Run, model: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    result = cli("profile", model, "--runs", 2, "--trace", trace, "--json")
    assert result.status == 0
    data = result.json
    ceilings = Ceilings(**data["ceilings"])
    assert min(ceilings.to_dict().values()) > 0
    conv, softmax = data["dispatches"]
    assert (conv["node"], softmax["node"]) == (0, 2)
    assert conv["flops"] >= 2 * 6 * 5 * 4 * 27
    assert conv["gflops"] == pytest.approx(conv["flops"] / conv["us"] / 1e3)
    assert conv["of_copy"] == pytest.approx(conv["gbps"] / ceilings.copy_gbps)
    bounds = [d["bound_by"] for d in (conv, softmax)]
    assert set(bounds) <= {"memory", "arithmetic", "launch", "latency"}
    assert data["total"]["us"] == pytest.approx(conv["us"] + softmax["us"])
    assert {d["label"] for d in data["operators"]} == {"CONV_2D+RELU", "SOFTMAX"}
    events = json.loads(trace.read_text())["traceEvents"]
    assert [e["name"] for e in events] == ["CONV_2D+RELU #0", "SOFTMAX #2"]
    assert events[1]["ts"] == pytest.approx(events[0]["dur"])
    assert all(e["ph"] == "X" for e in events)
    assert [e["args"]["bound by"] for e in events] == bounds
    assert events[0]["args"]["of copy"] == pytest.approx(conv["of_copy"], abs=1e-4)


@pytest.mark.usefixtures("device")
def test_profile_text(cli: Run, model: Path) -> None:
    result = cli("profile", model, "--runs", 1, "--no-ceilings")
    assert result.status == 0
    assert "ms in 2 dispatches, medians of 1\n" in result.out
    assert "\nCONV_2D+RELU #0  conv_2d" in result.out
    assert "\ntotal " in result.out
    assert "of copy" not in result.out


@pytest.mark.usefixtures("device")
def test_profile_of_nothing(cli: Run, unknown_model: Path) -> None:
    result = cli("profile", unknown_model, "--no-ceilings")
    assert result.status == 0
    assert "\nNothing runs on the GPU: there is nothing to time.\n" in result.out


def test_profile_where_the_clock_stands_still(model: Path) -> None:
    found = profile(read_model(model.read_bytes()), DelegateOptions(), NullDevice(), runs=1)
    assert found.total.us == 0.0
    assert [d.gflops for d in found.dispatches] == [0.0, 0.0]


def test_operators_of_labels() -> None:
    assert operators_of("CONV_2D+RELU #12") == "CONV_2D+RELU"
    assert operators_of("copy") == "copy"


def test_ceiling_programs_fit_their_shaders() -> None:
    limits = DeviceLimits(max_workgroup_count=(64, 65535, 65535))
    for program in (
        copy_program(1 << 20, limits),
        arithmetic_program(1 << 13, 4, limits),
        launch_program(limits),
    ):
        verify_program(program)
        plan_memory(program)
    copy = copy_program(1 << 20, limits)
    assert bytes_of(copy.dispatches[0], copy) == 2 << 20


def test_copy_program_copies(device: Device) -> None:
    import dataclasses

    program = copy_program(4096 + 16, device.info.limits)
    source = np.arange(program.buffers[0].words, dtype=np.uint32)
    buffers = (
        dataclasses.replace(program.buffers[0], data=source),
        dataclasses.replace(program.buffers[1], kind="output"),
    )
    program = dataclasses.replace(program, buffers=buffers)
    executable = device.compile(program, plan_memory(program))
    executable.run()
    np.testing.assert_array_equal(executable.output_words(1), source)
    executable.close()


def test_ceilings_of_a_device(device: Device) -> None:
    ceilings = measure_ceilings(device)
    assert ceilings.copy_gbps > 0.001
    assert ceilings.arithmetic_gflops > 0.01


def test_shares_of_ceilings() -> None:
    d = DispatchTime("x", "conv_2d", 0, 0, 1, us=10.0, flops=20_000_000, bytes=1_000_000)
    assert (d.gflops, d.gbps) == (2000.0, 100.0)
    ceilings = Ceilings(copy_gbps=200.0, arithmetic_gflops=8000.0, launch_us=2.0)
    assert (d.of_copy(ceilings), d.of_arithmetic(ceilings)) == (0.5, 0.25)


@pytest.mark.parametrize(
    ("us", "flops", "num_bytes", "bound"),
    [
        (10.0, 20_000_000, 1_000_000, "memory"),
        (10.0, 60_000_000, 1_000_000, "arithmetic"),
        (3.0, 1000, 100, "launch"),
        # 10 us by bandwidth, 4 by arithmetic and 2 by its launch, and yet it took 100.
        (100.0, 32_000_000, 2_000_000, "latency"),
    ],
)
def test_what_bounds_a_dispatch(us: float, flops: int, num_bytes: int, bound: str) -> None:
    ceilings = Ceilings(copy_gbps=200.0, arithmetic_gflops=8000.0, launch_us=2.0)
    d = DispatchTime("x", "conv_2d", 0, 0, 1, us=us, flops=flops, bytes=num_bytes)
    assert d.bound_by(ceilings) == bound
    assert d.to_dict(ceilings)["bound_by"] == bound


def test_a_sum_is_bound_by_launches_where_its_parts_are() -> None:
    ceilings = Ceilings(copy_gbps=200.0, arithmetic_gflops=8000.0, launch_us=2.0)
    many = DispatchTime("x", "pad", 0, -1, 10, us=25.0, flops=0, bytes=1000)
    assert many.bound_by(ceilings) == "launch"
