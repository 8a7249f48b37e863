"""Every real model lowers in fp16 mode too, and takes no more memory."""

from __future__ import annotations

import pytest

from tests.support.models import MODELS, model_path
from tflite_vk.frontend.flatbuffer import load_model
from tflite_vk.lowering import Lowered, lower
from tflite_vk.memory import plan_memory
from tflite_vk.ops.registry import unsupported_reason
from tflite_vk.partition import extract, plan_partitions
from tflite_vk.passes.fold_constants import fold_constants
from tflite_vk.program import verify_program
from tflite_vk.runtime.null import NULL_DEVICE


def constant_words(lowered: Lowered) -> int:
    return sum(b.words for b in lowered.program.buffers if b.kind == "constant")


def num_converting(lowered: Lowered) -> int:
    names = [d.kernel.shader for d in lowered.program.dispatches]
    return sum(name.startswith(("cast", "convert")) for name in names)


@pytest.mark.parametrize("name", MODELS)
def test_every_partition_lowers_in_half_precision(name: str) -> None:
    graph = fold_constants(load_model(model_path(name)).subgraphs[0])
    for partition in plan_partitions(graph, unsupported_reason).partitions:
        part = extract(graph, partition)
        full, half = lower(part, NULL_DEVICE), lower(part, NULL_DEVICE, half=True)
        verify_program(half.program)
        assert half.buffer.keys() == full.buffer.keys()
        assert half.flat == full.flat
        assert constant_words(half) <= constant_words(full)
        assert plan_memory(half.program).arena_words <= 1.1 * plan_memory(full.program).arena_words
        # Beyond fp32's dispatches only what converts at the ends of the graph.
        ends = len({*part.inputs, *part.outputs})
        assert num_converting(half) <= num_converting(full) + ends
