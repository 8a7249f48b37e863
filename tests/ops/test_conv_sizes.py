"""CONV_2D in sizes that only a GPU is offered, run here: the same sums in the same order."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.conformance.conftest import open_runtime
from tflite_vk.frontend.flatbuffer import read_model
from tflite_vk.ir.attributes import Conv2DAttributes
from tflite_vk.ir.graph import Graph
from tflite_vk.layout import pack, tensor_view
from tflite_vk.lowering import lower
from tflite_vk.memory import plan_memory
from tflite_vk.ops.conv_shared_tile import is_shared
from tflite_vk.ops.sizes import Size
from tflite_vk.program import Dispatch, Program
from tflite_vk.testing.model_writer import ModelWriter

Array = npt.NDArray[Any]


def _graph(kernel: int, channels: int) -> tuple[Graph, Array]:
    w, rng = ModelWriter(), np.random.default_rng(0)
    x = w.input((1, 7, 6, channels), name="x")
    weights = w.const(rng.standard_normal((12, kernel, kernel, channels)).astype(np.float32))
    bias = w.const(rng.standard_normal(12).astype(np.float32))
    attributes = Conv2DAttributes(fused_activation_function="RELU")
    w.output(w.op("CONV_2D", [x, weights, bias], [(1, 7, 6, 12)], attributes))
    value = rng.uniform(-1, 1, (1, 7, 6, channels)).astype(np.float32)
    return read_model(w.build()).subgraphs[0], value


@pytest.mark.parametrize(("kernel", "channels"), [(1, 44), (3, 30), (1, 3)])
def test_depth_changes_no_bit(kernel: int, channels: int) -> None:
    device = open_runtime("vulkan")
    graph, value = _graph(kernel, channels)
    as_gpu = dataclasses.replace(device.info, type="discrete")
    lowered = lower(graph, as_gpu, effort="exhaustive")
    program = lowered.program
    (choice,) = lowered.choices
    offered = {choice.chosen: program.dispatches[choice.dispatch], **choice.others}
    offered = {size: d for size, d in offered.items() if not is_shared(size)}

    def run(dispatch: Dispatch) -> Array:
        dispatches = list(program.dispatches)
        dispatches[choice.dispatch] = dispatch
        changed = Program(program.name, program.buffers, tuple(dispatches))
        executable = device.compile(changed, plan_memory(changed))
        executable.input_words(lowered.buffer[graph.inputs[0]])[:] = _words(value, is_flat)
        executable.run()
        out: Array = _values(executable.output_words(lowered.buffer[graph.outputs[0]])).copy()
        executable.close()
        return out

    is_flat = graph.inputs[0] in lowered.flat
    by_sharers: dict[int, Array] = {}
    for size in _few(offered):
        got = run(offered[size])
        want = by_sharers.setdefault(size[4], got)
        np.testing.assert_array_equal(got, want, err_msg=str(size))
    for got in by_sharers.values():
        np.testing.assert_allclose(got, by_sharers[1], rtol=1e-5, atol=1e-5)


def _few(offered: dict[Size, Dispatch]) -> list[Size]:
    """Of each depth and number of sharers the first and the last, the smallest depth first."""
    sizes = sorted(offered, key=lambda s: (s[5], s))
    kinds: dict[tuple[int, int], list[Size]] = {}
    for size in sizes:
        kinds.setdefault((size[5], size[4]), []).append(size)
    found = [s for same in kinds.values() for s in dict.fromkeys((same[0], same[-1]))]
    assert {s[4] for s in found if s[5] == 1} >= {s[4] for s in found}
    return found


def _words(value: Array, is_flat: bool) -> Array:
    return value.reshape(-1).view(np.uint32) if is_flat else pack(value, "f32")


def _values(words: Any) -> Array:
    return tensor_view(words, (1, 7, 6, 12), "f32")
