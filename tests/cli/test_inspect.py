from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Run
from tests.support.models import model_path
from tflite_vk.analysis.decision import decide
from tflite_vk.frontend.flatbuffer import read_model
from tflite_vk.ir.attributes import BinaryAttributes
from tflite_vk.options import DelegateOptions
from tflite_vk.runtime.device import Device
from tflite_vk.runtime.null import NULL_DEVICE
from tflite_vk.testing.model_writer import ModelWriter


def test_json_of_a_model_taken_whole(cli: Run, model: Path) -> None:
    result = cli("inspect", model, "--device", "null", "--json")
    assert result.status == 0
    data = result.json
    assert data["model"] == "conv.tflite"
    assert data["device"] == "null"
    assert data["inputs"] == ["x FLOAT32[1,6,5,3]"]
    assert data["is_standalone"] is True
    assert data["report"]["num_delegated"] == data["report"]["num_nodes"] == 3
    assert data["num_dispatches"] == data["num_pipelines"] == 2
    assert data["num_fused_groups"] == 1
    assert sum(data["pipelines"].values()) == data["num_pipelines"]
    (partition,) = data["partitions"]
    assert partition["nodes"] == [0, 1, 2]
    assert partition["ops"] == {"CONV_2D": 1, "RELU": 1, "SOFTMAX": 1}
    assert partition["fused"] == [{"subgraph": 0, "nodes": [0, 1], "ops": ["CONV_2D", "RELU"]}]
    memory = data["memory_bytes"]
    assert memory["lower_bound"] <= memory["arena"] <= memory["temporaries"]
    assert memory["inputs"] == 6 * 5 * 4 * 4
    assert data["flops"] >= 2 * 6 * 5 * 4 * 27


def test_text_of_a_model_taken_whole(cli: Run, model: Path) -> None:
    text = cli("inspect", model, "--device", "null").out
    assert "device      null, with the least limits of Vulkan\n" in text
    assert "operators   3 of 3 on the GPU, in 1 partition\n" in text
    assert "also needs  nothing\n" in text
    assert "launches    2 dispatches of 2 pipelines, 1 fused group\n" in text
    assert "\nCONV_2D + RELU                1\n" in text
    assert "program" not in text


def test_without_fusion_nothing_is_joined(cli: Run, model: Path) -> None:
    data = cli("inspect", model, "--device", "null", "--no-fusion", "--json").json
    assert (data["num_fused_groups"], data["num_dispatches"]) == (0, 3)


def test_verbose_prints_graph_and_program(cli: Run, model: Path) -> None:
    text = cli("inspect", model, "--device", "null", "-v").out
    assert "\ngraph main\n  inputs  %0 FLOAT32[1,6,5,3]\n" in text
    assert "\nprogram main\n  b0 input words=120 'x' at s" in text
    data = cli("inspect", model, "--device", "null", "-v", "--json").json
    assert data["graphs"][0].startswith("graph main\n")
    assert data["programs"][0].startswith("program main\n")


def test_reasons_of_what_is_not_taken(cli: Run, unknown_model: Path) -> None:
    result = cli("inspect", unknown_model, "--device", "null")
    assert result.status == 0
    assert "operators   none of 1 on the GPU: nothing is delegated\n" in result.out
    assert "also needs  LiteRT's CPU kernels\n" in result.out
    assert "Unheard: custom operator without a kernel" in result.out
    data = cli("inspect", unknown_model, "--device", "null", "--json").json
    (node,) = data["report"]["nodes"]
    assert (node["delegated"], node["partition"]) == (False, None)
    assert node["reason"] == "custom operator without a kernel"
    assert data["partitions"] == []


def test_exclusions_split_partitions(cli: Run, model: Path) -> None:
    data = cli("inspect", model, "--device", "null", "--option", "excluded_ops=relu", "--json").json
    assert data["report"]["num_partitions"] == 2
    assert [p["nodes"] for p in data["partitions"]] == [[0], [2]]
    assert data["report"]["nodes"][1]["reason"] == "Excluded by option excluded_ops."


def test_model_without_operators(cli: Run, tmp_path: Path) -> None:
    w = ModelWriter()
    w.output(w.input((2, 2), "x"))
    path = tmp_path / "empty.tflite"
    path.write_bytes(w.build())
    result = cli("inspect", path, "--device", "null")
    assert result.status == 0
    assert "operators   the model has none\n" in result.out


@pytest.mark.usefixtures("no_driver")
def test_without_a_device_the_null_device_stands_in(cli: Run, model: Path) -> None:
    result = cli("inspect", model)
    assert result.status == 0
    assert "device      null, with the least limits of Vulkan\n" in result.out
    named = cli("inspect", model, "--device", "0")
    assert named.status == 2
    assert named.err.startswith("tflite-vk: error: no Vulkan device on this machine; ")


def test_device_that_is_not_here(cli: Run, model: Path, device: Device) -> None:
    result = cli("inspect", model, "--device", "Voodoo")
    assert result.status == 2
    assert result.err.startswith("tflite-vk: error: device 'Voodoo' is not on this machine; ")
    assert device.info.name in result.err


def test_blaze_face(cli: Run) -> None:
    path = model_path("face_detection_short_range")
    data = cli("inspect", path, "--device", "null", "--json").json
    assert data["report"]["num_nodes"] == data["report"]["num_delegated"] == 164
    assert data["report"]["num_partitions"] == 1
    assert data["num_dispatches"] < 64
    assert data["num_fused_groups"] >= 16


def test_variables_alone_and_under_litert() -> None:
    def variable_model(extra: bool, written: bool = False) -> bytes:
        w = ModelWriter()
        x = w.input((1, 4), "x")
        state = w.variable((1, 4), "state")
        if written:
            w.op_into("NEG", [x], [state])
            x = w.op("RELU", [x], [(1, 4)])
        y = w.op("ADD", [x, x if written else state], [(1, 4)], BinaryAttributes())
        w.output(w.op("Unheard", [y], [(1, 4)], b"") if extra else y)
        return w.build()

    options = DelegateOptions()
    alone = decide(read_model(variable_model(False)), options, NULL_DEVICE)
    assert alone.is_standalone
    beside = decide(read_model(variable_model(True)), options, NULL_DEVICE)
    assert not beside.is_standalone
    assert [n.delegated for n in beside.report.nodes] == [True, False]
    (state,) = beside.partitions[0].lowered.states.values()
    assert state.after is None  # nothing writes it
    written = decide(read_model(variable_model(True, written=True)), options, NULL_DEVICE)
    assert [n.delegated for n in written.report.nodes] == [False, True, True, False]
    assert "is a variable (supported" in str(written.report.nodes[0].reason)


def test_partition_that_does_not_compile_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    from tflite_vk.ops.softmax import Softmax

    def broken(*_: object) -> None:
        raise ArithmeticError("too soft")

    monkeypatch.setattr(Softmax, "lower", broken)
    w = ModelWriter()
    x = w.input((1, 4), "x")
    y = w.op("SOFTMAX", [w.op("RELU", [x], [(1, 4)])], [(1, 4)])
    w.output(w.op("Unheard", [y], [(1, 4)], b""))
    decision = decide(read_model(w.build()), DelegateOptions(), NULL_DEVICE)
    assert [p.nodes for p in decision.partitions] == [(0,)]
    assert decision.report.nodes[1].reason == "It does not compile: ArithmeticError: too soft"


def test_resized_input_shapes() -> None:
    w = ModelWriter()
    x = w.input((1, 4), "x", shape_signature=(-1, 4))
    w.output(w.op("RELU", [x], [(1, 4)]))
    decision = decide(read_model(w.build()), DelegateOptions(), NULL_DEVICE, {0: (3, 4)})
    (output,) = decision.partitions[0].graph.outputs
    assert decision.partitions[0].graph.tensors[output].shape == (3, 4)
    np.testing.assert_equal(decision.partitions[0].nodes, (0,))


def test_file_whose_shapes_contradict_is_inspected_all_the_same() -> None:
    w = ModelWriter()
    y = w.op("RELU", [w.input((1, 4), "x")], [(1, 5)])
    w.output(w.op("ADD", [y, w.input((1, 5), "z")], [(1, 5)], BinaryAttributes()))
    decision = decide(read_model(w.build()), DelegateOptions(), NULL_DEVICE)
    assert not decision.is_standalone
    assert decision.report.nodes[0].reason == (
        "output 0 is declared [1, 5], its operator makes [1, 4]"
    )
