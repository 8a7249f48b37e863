"""Hashes that change with anything a compiled program depends on."""

from __future__ import annotations

import functools
import hashlib
import os
import weakref
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from tflite_vk.device_info import DeviceInfo
from tflite_vk.ir.graph import Graph, Tensor

_of_constant: weakref.WeakKeyDictionary[Tensor, bytes] = weakref.WeakKeyDictionary()
"""Weights are hashed once, whatever graphs they are in."""


def graph_digest(graph: Graph) -> str:
    """A hash of a graph and the content of its constants."""
    total = hashlib.sha256()
    head = (graph.name, graph.inputs, graph.outputs, sorted(graph.folded.items()), graph.nodes)
    total.update(repr(head).encode())
    for tensor_id in sorted(graph.tensors):
        tensor = graph.tensors[tensor_id]
        total.update(_describe(tensor).encode())
        if tensor.data is not None:
            total.update(_constant_digest(tensor))
    return total.hexdigest()


def _describe(tensor: Tensor) -> str:
    t = tensor
    facts = (t.id, t.name, t.shape, t.dtype.name, t.quantization, t.shape_signature)
    return repr((*facts, t.is_variable, t.is_dynamic, t.is_sparse, t.is_const))


def _constant_digest(tensor: Tensor) -> bytes:
    found = _of_constant.get(tensor)
    if found is None:
        data = np.asarray(tensor.data)
        content = hashlib.sha256(f"{data.dtype.str} {data.shape}".encode())
        if data.dtype.hasobject:  # an array of strings holds addresses
            content.update(repr(data.tolist()).encode())
        else:
            content.update(np.ascontiguousarray(data).data)
        found = _of_constant[tensor] = content.digest()
    return found


def hash_ahead(graphs: Iterable[Graph]) -> None:
    """Hash constants and code now, where there is time, for the digests asked for later."""
    code_digest()
    for graph in graphs:
        for tensor in graph.tensors.values():
            if tensor.data is not None:
                _constant_digest(tensor)


def device_digest(info: DeviceInfo) -> str:
    """A hash of all that lowering may know of a device."""
    return hashlib.sha256(repr(sorted(info.to_dict().items())).encode()).hexdigest()


@functools.cache
def code_digest() -> str:
    """A hash that changes with this package's own code, edited between two releases or not."""
    folder = str(Path(__file__).resolve().parent.parent)
    facts = []
    # With os.walk and os.stat, for this is a part of every start: Path.rglob takes four times as long.
    for path, _, files in os.walk(folder):
        for name in files:
            if name.endswith(".py"):
                stat = os.stat(os.path.join(path, name))  # noqa: PTH116, PTH118
                facts.append((path[len(folder) :], name, stat.st_size, stat.st_mtime_ns))
    facts.sort()
    return hashlib.sha256(repr(facts).encode()).hexdigest()
