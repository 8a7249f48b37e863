"""Every case of every operator that touches a float, in fp16 mode, against the fp32 reference."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ops.test_ops import GUARD_WORDS, all_cases
from tests.support.case import Array, Case, random_array
from tests.support.compare import assert_equal
from tests.support.half import assert_close_half, half_model, to_half
from tests.support.oracle import reference
from tflite_vk.dtypes import DType
from tflite_vk.frontend.flatbuffer import read_model
from tflite_vk.ir.graph import Graph
from tflite_vk.passes.fold_constants import fold_constants
from tflite_vk.runtime.device import Device
from tflite_vk.session import Session


def _is_float(case: Case) -> bool:
    """True where a value is stored as float16, which is all that fp16 mode changes."""
    graph = read_model(case.model()).subgraphs[0]
    return any(t.dtype is DType.FLOAT32 and not t.is_const for t in graph.tensors.values())


def _float_cases() -> list[Case]:
    return [case for case in all_cases() if case.declined is None and _is_float(case)]


_ROUNDINGS = {"ADD_N": 3, "SVDF": 2}
"""Of operators that round more than once: what SVDF keeps, and the sum over it; every third sum of
ADD_N, of nine inputs at the most."""


def roundings(graph: Graph) -> int:
    """Values stored one after the other, at the most."""
    writers = [n for n in graph.nodes if any(graph.tensors[t].dtype.is_float for t in n.outputs)]
    return max(1, sum(_ROUNDINGS.get(node.op, 1) for node in writers))


@pytest.mark.parametrize("case", _float_cases(), ids=lambda case: case.name)
def test_op_half(case: Case, device: Device) -> None:
    data = half_model(case)
    graph = fold_constants(read_model(data).subgraphs[0])
    rng = case.rng()
    given = dict(case.inputs(rng)) if case.inputs is not None else {}
    inputs: list[Array] = []
    for position, tensor_id in enumerate(graph.inputs):
        tensor = graph.tensors[tensor_id]
        value = given.get(position)
        if value is None:
            value = random_array(rng, tensor.shape, tensor.dtype.numpy, case.low, case.high)
        inputs.append(to_half(value) if value.dtype == np.float32 else value)
    want = case.expected(*inputs) if case.expected is not None else reference(data, inputs)

    session = Session(graph, device, precision="fp16", guard_words=GUARD_WORDS)
    try:
        outputs = session.allocate_outputs(graph.outputs)
        session.run(dict(zip(graph.inputs, inputs, strict=True)), outputs)
        assert session.executable.check_guards() == []
    finally:
        session.close()
    for position, (tensor_id, value) in enumerate(zip(graph.outputs, want, strict=True)):
        what, got, right = f"output {position}", outputs[tensor_id], np.asarray(value)
        if not case.exact:
            assert_close_half(got, right, case, roundings(graph), what)
        elif right.dtype == np.float32:
            assert_equal(got, to_half(right), what)
        else:
            assert_equal(got, right, what)
