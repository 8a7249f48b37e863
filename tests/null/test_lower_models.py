"""The whole compiler without Vulkan: every real model lowers, and its program is sound."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.models import MODELS, model_path
from tflite_vk.frontend.flatbuffer import load_model
from tflite_vk.lowering import lower
from tflite_vk.memory import plan_memory
from tflite_vk.ops.registry import unsupported_reason
from tflite_vk.partition import extract, plan_partitions
from tflite_vk.passes.fold_constants import fold_constants
from tflite_vk.program import MAX_PUSH_WORDS, verify_program
from tflite_vk.runtime.null import NULL_DEVICE, NullDevice
from tflite_vk.session import Session

WHOLE = (
    "deeplabv3_257_mv_gpu",
    "face_detection_short_range",
    "face_landmark",
    "hand_landmark_lite",
    "mobilenet_v1_0.25_224_1_default_1",
    "pose_landmark_full",
    "pretrainedResnet",
    "selfie_segmentation",
    "style_transfer_f16_384",
)
"""Models that the device takes whole: a contract (bug report D25)."""


@pytest.mark.parametrize("name", MODELS)
def test_every_partition_lowers(name: str) -> None:
    graph = fold_constants(load_model(model_path(name)).subgraphs[0])
    plan = plan_partitions(graph, unsupported_reason)
    for partition in plan.partitions:
        part = extract(graph, partition)
        lowered = lower(part, NULL_DEVICE)
        program = lowered.program
        verify_program(program)
        memory = plan_memory(program)
        assert memory.arena_words <= 1.2 * memory.lower_bound_words + 64 * len(program.buffers)
        limits = NULL_DEVICE.limits
        for dispatch in program.dispatches:
            local = dispatch.kernel.spec[:3]
            assert int(np.prod(local)) <= limits.max_workgroup_invocations, dispatch.label
            assert all(a <= b for a, b in zip(local, limits.max_workgroup_size, strict=True))
            assert all(
                a <= b for a, b in zip(dispatch.groups, limits.max_workgroup_count, strict=True)
            ), dispatch.label
            assert len(dispatch.push) <= MAX_PUSH_WORDS
        for buffer in program.buffers:
            assert 4 * buffer.words <= limits.max_storage_buffer_bytes, buffer.name
    if name in WHOLE:
        assert len(plan.partitions) == 1
        assert not plan.reasons
        # Fusion makes fewer dispatches than operators. Those that bring a large picture into the
        # padded layout serve none: the host did it before.
        serving = [d for d in program.dispatches if d.kernel.shader != "repack"]
        assert len(serving) < len(graph.nodes)


@pytest.mark.parametrize("half", [False, True], ids=["fp32", "fp16"])
@pytest.mark.parametrize("name", ["mobilenet_v1_0.25_224_1_default_1", "face_landmark"])
def test_lowering_is_repeatable(name: str, half: bool) -> None:
    graph = load_model(model_path(name)).subgraphs[0]
    first, second = (lower(graph, NULL_DEVICE, half=half).program for _ in range(2))
    assert first.dispatches == second.dispatches
    for a, b in zip(first.buffers, second.buffers, strict=True):
        assert (a.name, a.words, a.kind) == (b.name, b.words, b.kind)
        assert (a.data is None) == (b.data is None)
        assert a.data is None or np.array_equal(a.data, b.data)


def test_a_session_runs_on_the_null_device() -> None:
    graph = load_model(model_path("pretrainedResnet")).subgraphs[0]
    session = Session(graph, NullDevice())
    outputs = session.allocate_outputs(graph.outputs)
    inputs = {t: np.zeros(graph.tensors[t].shape, np.float32) for t in graph.inputs}
    session.run(inputs, outputs)
    assert outputs[graph.outputs[0]].tolist() == [[0.0] * 10]
    session.close()
