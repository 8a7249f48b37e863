"""Run every case of the operator suite once, in one process; run under the validation layer.

    python -m tests.validation.run_cases DISPATCHER SHARD SHARDS [PART OF A CASE'S NAME ...]

Results are not looked at here (tests/ops does that): this is about how the device is used. Prints
how many programs ran, and behind which case the layer's log grew.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.ops.test_ops import all_cases
from tests.support.case import Case
from tests.validation.layer import LOG_VARIABLE
from tflite_vk.frontend.flatbuffer import read_model
from tflite_vk.ops.registry import unsupported_reason
from tflite_vk.passes.fold_constants import fold_constants
from tflite_vk.runtime.device import Device
from tflite_vk.runtime.open import open_device
from tflite_vk.session import Session


def run_case(case: Case, device: Device) -> bool:
    """Compile and run one case; False where the device declines it, which is as good."""
    graph = fold_constants(read_model(case.model()).subgraphs[0])
    if any(unsupported_reason(n, graph, device.info.limits) for n in graph.nodes):
        return False
    session = Session(graph, device)
    try:
        outputs = session.allocate_outputs(graph.outputs)
        zeros = session.allocate_outputs(graph.inputs)
        for array in zeros.values():
            array.fill(0)
        session.run(zeros, outputs)
    finally:
        session.close()
    return True


def _log_size() -> int:
    log = Path(os.environ[LOG_VARIABLE])
    return log.stat().st_size if log.exists() else 0


def main(dispatcher: str, shard: int, shards: int, parts: list[str]) -> None:
    """Run one of `shards` equal shares of the cases whose name holds any of the parts."""
    device = open_device(os.environ.get("TFLITE_VK_DEVICE") or None, dispatcher)
    cases = [c for c in all_cases() if not parts or any(p in c.name for p in parts)]
    ran = 0
    for case in cases[shard::shards]:
        before = _log_size()
        ran += run_case(case, device)
        if _log_size() != before:
            print(f"the layer speaks of {case.name}")
    print(f"{ran} programs of {len(cases[shard::shards])} cases ran")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
