"""Compiled programs as bytes and back: a head in JSON, then the words of every constant."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from tflite_vk.dtypes import DType
from tflite_vk.ir.graph import Graph, Tensor
from tflite_vk.lowering import Lowered
from tflite_vk.ops.states import HostState
from tflite_vk.program import (
    Binding,
    Buffer,
    Dispatch,
    Kernel,
    MemoryPlan,
    Program,
    verify_program,
)

_LENGTH_BYTES = 8
_ALIGNMENT = 64


def encode(lowered: Lowered, plan: MemoryPlan) -> list[bytes | memoryview] | None:
    """The parts of a file; None for a program that isn't worth the trouble.

    That is one that returns a constant: its value is the graph's, which a file does not hold.
    """
    graph, program = lowered.graph, lowered.program
    ends = [
        graph.tensors[t] for t in dict.fromkeys((*graph.inputs, *graph.outputs, *lowered.states))
    ]
    if any(t.is_const for t in ends):
        return None
    kernels = {kernel: i for i, kernel in enumerate(program.kernels())}
    data = [b.data for b in program.buffers if b.data is not None]
    head: dict[str, Any] = {
        "name": program.name,
        "kernels": [(k.shader, k.spec) for k in kernels],
        "buffers": [(b.name, b.words, b.kind, b.data is not None) for b in program.buffers],
        "dispatches": [_dispatch_fields(d, kernels[d.kernel]) for d in program.dispatches],
        "buffer": sorted(lowered.buffer.items()),
        "flat": sorted(lowered.flat),
        "states": [(t, s.before, s.after) for t, s in lowered.states.items()],
        "inputs": graph.inputs,
        "outputs": graph.outputs,
        "ends": [(t.id, t.name, t.shape, t.dtype.name) for t in ends],
        "plan": {**vars(plan), "offset": sorted(plan.offset.items())},
    }
    text = json.dumps(head).encode()
    text += b" " * (-(_LENGTH_BYTES + len(text)) % _ALIGNMENT)
    length = len(text).to_bytes(_LENGTH_BYTES, "little")
    return [length, text, *(np.ascontiguousarray(words).data.cast("B") for words in data)]


def _dispatch_fields(dispatch: Dispatch, kernel: int) -> tuple[Any, ...]:
    bindings = [(b.buffer, b.access) for b in dispatch.bindings]
    d = dispatch
    return (kernel, bindings, d.push, d.groups, d.label, d.node, d.flops)


def decode(data: memoryview) -> tuple[Lowered, MemoryPlan]:
    """What `encode` was given, but for the graph: it has its ends and no nodes.

    Args:
        data: of a file that is good as a whole. Constants stay views of it.

    Raises:
        Exception: of any kind, where it was not written by this code.
    """
    start = _LENGTH_BYTES + int.from_bytes(data[:_LENGTH_BYTES], "little")
    head = json.loads(bytes(data[_LENGTH_BYTES:start]))
    words = np.frombuffer(data[start:], np.uint32)
    program = Program(
        head["name"], tuple(_buffers(head["buffers"], words)), tuple(_dispatches(head))
    )
    verify_program(program)
    ends = {t: Tensor(t, name, tuple(s), DType[kind]) for t, name, s, kind in head["ends"]}
    graph = Graph(head["name"], ends, (), tuple(head["inputs"]), tuple(head["outputs"]))
    states = {t: HostState(before, after) for t, before, after in head["states"]}
    lowered = Lowered(graph, program, dict(head["buffer"]), frozenset(head["flat"]), states=states)
    return lowered, _plan(head["plan"])


def _buffers(fields: Sequence[Sequence[Any]], words: Any) -> list[Buffer]:
    out: list[Buffer] = []
    at = 0
    for number, (name, size, kind, has_data) in enumerate(fields):
        data = None
        if has_data:
            data = words[at : at + size]
            if data.size != size:
                raise ValueError(f"buffer {name!r} is cut short")
            at += size
        out.append(Buffer(number, name, size, kind, data))
    if at != words.size:
        raise ValueError(f"{words.size - at} words left over")
    return out


def _dispatches(head: dict[str, Any]) -> list[Dispatch]:
    kernels = [Kernel(shader, tuple(spec)) for shader, spec in head["kernels"]]
    return [
        Dispatch(
            kernel=kernels[kernel],
            bindings=tuple(Binding(buffer, access) for buffer, access in bindings),
            push=tuple(push),
            groups=(groups[0], groups[1], groups[2]),
            label=label,
            node=node,
            flops=flops,
        )
        for kernel, bindings, push, groups, label, node, flops in head["dispatches"]
    ]


def _plan(fields: dict[str, Any]) -> MemoryPlan:
    return MemoryPlan(
        slot=tuple(fields["slot"]),
        slot_words=tuple(fields["slot_words"]),
        offset=dict(fields["offset"]),
        arena_words=fields["arena_words"],
        lower_bound_words=fields["lower_bound_words"],
    )
