"""A short run of the fuzzer, and that it would find and shrink a fault."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.fuzz import campaign
from tests.fuzz.__main__ import main
from tests.fuzz.campaign import Count, try_one
from tests.fuzz.corpus import load, paths
from tests.fuzz.draw import draw
from tests.fuzz.generators import entries
from tests.support.case import Array
from tests.support.oracle import reference
from tflite_vk.frontend.flatbuffer import read_model
from tflite_vk.runtime.device import Device
from tflite_vk.session import Session

SEED = 7
GRAPHS = 60
A_TEST = 10
"""Graphs in a test: enough for processes to share the work."""


@pytest.mark.parametrize("group", ["float", "quantized"])
@pytest.mark.parametrize("first", range(0, GRAPHS, A_TEST))
def test_random_graphs(first: int, group: str, device: Device) -> None:
    total = Count()
    for index in range(first, first + A_TEST):
        total.add(try_one(SEED, index, group, device, folder=None))
    assert total.faults == []
    assert total.oracle == []
    assert total.graphs == A_TEST


def test_processes_share_the_graphs(device: Device, capfd: pytest.CaptureFixture[str]) -> None:
    arguments = ["--seed", str(SEED), "--graphs", "4", "--jobs", "2", "--no-save"]
    assert main([*arguments, "--device", device.info.name]) == 0
    assert "graphs 4, operators" in capfd.readouterr().out


def test_a_graph_is_always_the_same() -> None:
    a, b = draw(SEED, 3), draw(SEED, 3)
    assert a.data == b.data
    assert all(np.array_equal(x, y) for x, y in zip(a.inputs, b.inputs, strict=True))
    assert draw(SEED, 4).data != a.data


def test_tolerances_hold_for_litert_and_are_small() -> None:
    exact = 0
    for index in range(20):
        graph = draw(SEED, index)
        for got, want, allowed in zip(
            reference(graph.data, graph.inputs), graph.outputs, graph.tolerances, strict=True
        ):
            assert np.abs(got.astype(np.float64) - want).max(initial=0) <= allowed
            assert allowed <= 1e-2 * max(0.1, float(np.abs(want).max(initial=0)))
            exact += allowed == 0
    assert exact > 20


def test_most_generators_draw_something() -> None:
    """One that always refuses would hide an operator."""
    drawn = {op for index in range(150) for op in draw(SEED, index).ops}
    assert len(drawn) > 90
    assert len(entries("float")) > 50


def test_a_fault_is_found_and_shrunk(
    device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device on which everything behind a SOFTMAX is off is left with the SOFTMAX alone."""
    fetch = Session._fetch

    def broken(self: Session, tensor: int, out: Array, inputs: dict[int, Array]) -> None:
        fetch(self, tensor, out, inputs)
        if any(n.op == "SOFTMAX" for n in self.graph.nodes) and out.dtype == np.float32:
            out += np.float32(0.01)

    monkeypatch.setattr(Session, "_fetch", broken)
    monkeypatch.setattr(campaign, "DOORS", ("session",))
    index = next(i for i in range(200) if "SOFTMAX" in draw(SEED, i).ops[:-1])
    count = try_one(SEED, index, "float", device, tmp_path)
    assert len(count.faults) == 1
    assert " wrong: session: output " in count.faults[0]
    (path,) = paths(tmp_path)
    small = read_model(path.read_bytes()).subgraphs[0]
    assert [n.op for n in small.nodes] == ["SOFTMAX"]
    failure = load(path)
    assert [x.shape for x in failure.inputs] == [small.tensors[t].shape for t in small.inputs]
    assert "w.multi_op('SOFTMAX', [x0]" in path.with_suffix(".txt").read_text()
