"""Kernels as a GPU gets them: tiles and shared sums depend on the class of the device.

The software driver runs them just as well, only slower; limits are the least that Vulkan promises.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.ops.cases import (
    arg_reduce,
    batch_matmul,
    detection_post_process,
    lstm,
    recurrent,
    reduce,
    softmax,
    transpose_conv,
)
from tests.support.as_gpu import AsGpu
from tests.support.case import Case, random_array
from tests.support.compare import assert_close
from tests.support.oracle import reference
from tflite_vk.frontend.flatbuffer import read_model
from tflite_vk.runtime.device import Device
from tflite_vk.session import Session

_MODULES = (
    arg_reduce,
    batch_matmul,
    detection_post_process,
    lstm,
    recurrent,
    reduce,
    softmax,
    transpose_conv,
)
_EVERY = 3
"""The lowering is what is tested here, so a part of the cases will do."""


def _cases() -> list[Case]:
    cases = [c for module in _MODULES for c in module.CASES if c.declined is None]
    return cases[::_EVERY]


@pytest.mark.parametrize("case", _cases(), ids=lambda case: case.name)
def test_op_as_on_a_gpu(case: Case, device: Device) -> None:
    data = case.model()
    graph = read_model(data).subgraphs[0]
    rng = case.rng()
    given = dict(case.inputs(rng)) if case.inputs is not None else {}
    inputs = []
    for position, tensor_id in enumerate(graph.inputs):
        tensor = graph.tensors[tensor_id]
        value = given.get(position)
        if value is None:
            value = random_array(rng, tensor.shape, tensor.dtype.numpy, case.low, case.high)
        inputs.append(value)
    want = case.expected(*inputs) if case.expected is not None else reference(data, inputs)
    session = Session(graph, AsGpu(device), guard_words=16)
    try:
        outputs = session.allocate_outputs(graph.outputs)
        session.run(dict(zip(graph.inputs, inputs, strict=True)), outputs)
        assert session.executable.check_guards() == []
    finally:
        session.close()
    for tensor, right in zip(graph.outputs, want, strict=True):
        assert_close(outputs[tensor], np.asarray(right), case.rtol, case.atol_of_scale, "output")
