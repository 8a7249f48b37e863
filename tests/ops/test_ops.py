"""Every case of every operator, on the device under test, against its oracle."""

from __future__ import annotations

import importlib
import pkgutil

import numpy as np
import pytest

import tests.ops.cases
from tests.support.case import Array, Case, random_array
from tests.support.compare import assert_close, assert_equal
from tests.support.oracle import reference
from tflite_vk.frontend.flatbuffer import read_model
from tflite_vk.ops.registry import unsupported_reason
from tflite_vk.passes.fold_constants import fold_constants
from tflite_vk.runtime.device import Device
from tflite_vk.session import Session

GUARD_WORDS = 16


def all_cases() -> list[Case]:
    """Cases of every module in tests/ops/cases."""
    modules = sorted(m.name for m in pkgutil.iter_modules(tests.ops.cases.__path__))
    found = [
        case
        for name in modules
        for case in importlib.import_module(f"tests.ops.cases.{name}").CASES
    ]
    names = [case.name for case in found]
    repeated = {n for n in names if names.count(n) > 1}
    assert not repeated, f"case names used twice: {sorted(repeated)}"
    return found


@pytest.mark.parametrize("case", all_cases(), ids=lambda case: case.name)
def test_op(case: Case, device: Device) -> None:
    data = case.model()
    graph = fold_constants(read_model(data).subgraphs[0])
    reasons = [r for n in graph.nodes if (r := unsupported_reason(n, graph, device.info.limits))]
    if case.declined is not None:
        assert any(case.declined in r for r in reasons), f"expected a refusal, got {reasons}"
        return
    assert not reasons, reasons

    rng = case.rng()
    given = dict(case.inputs(rng)) if case.inputs is not None else {}
    inputs: list[Array] = []
    for position, tensor_id in enumerate(graph.inputs):
        tensor = graph.tensors[tensor_id]
        value = given.get(position)
        if value is None:
            value = random_array(rng, tensor.shape, tensor.dtype.numpy, case.low, case.high)
        inputs.append(value)
    want = case.expected(*inputs) if case.expected is not None else reference(data, inputs)

    session = Session(graph, device, guard_words=GUARD_WORDS)
    try:
        runs = []
        for _ in range(2):
            outputs = session.allocate_outputs(graph.outputs)
            session.run(dict(zip(graph.inputs, inputs, strict=True)), outputs)
            runs.append([outputs[t].copy() for t in graph.outputs])
            session.reset_states()
        assert session.executable.check_guards() == []
    finally:
        session.close()
    for position, (got, again, right) in enumerate(zip(*runs, want, strict=True)):
        what = f"output {position}"
        if case.exact:
            assert_equal(got, np.asarray(right), what)
        else:
            assert_close(got, np.asarray(right), case.rtol, case.atol_of_scale, what)
        assert got.tobytes() == again.tobytes(), f"{what}: the second run gave other bits"
