"""CompileCache: plans and programs of a device in a folder."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from tflite_vk.cache.digest import code_digest, device_digest, graph_digest
from tflite_vk.cache.plans import Plan, decode_plan, encode_plan
from tflite_vk.cache.programs import decode, encode
from tflite_vk.cache.sizes import TunedSizes, decode_sizes, encode_sizes
from tflite_vk.device_info import DeviceInfo
from tflite_vk.ir.graph import Graph
from tflite_vk.lowering import Lowered
from tflite_vk.options import DelegateOptions
from tflite_vk.program import MemoryPlan
from tflite_vk.runtime.cache import CacheKey, EntryFile, file_stem, read_ahead

logger = logging.getLogger("tflite_vk")

Entry = TypeVar("Entry")


class CompileCache:
    """What was found out and compiled for a device by earlier processes.

    A file's name says which part of which model it is for, and its head what it depends on: device
    with all limits and features, driver, this package's version, code and shaders, the model's
    hash, options. Whatever doesn't fit is a miss, and replaced.
    """

    def __init__(
        self, folder: str | os.PathLike[str], token: str | None, device: DeviceInfo
    ) -> None:
        """Name a folder; nothing is read or made yet.

        Args:
            folder: `cache_dir`.
            token: the caller's name for the model. With one, a model that has changed takes the
                place of the older one; without, every model has files of its own.
            device: what programs are for.
        """
        self._folder = Path(folder)
        self._token = token
        key = CacheKey.of(device)
        self._device = key.device_hash
        self._identity = {**vars(key), "code": code_digest(), "limits": device_digest(device)}

    def load_plan(self, graph: Graph, door: str) -> Plan | None:
        """What is known about a graph's operators; None where nothing is.

        Args:
            graph: what was asked about.
            door: who asked.
        """
        return self._load(self._file("plan", graph, door), decode_plan)

    def save_plan(self, graph: Graph, door: str, plan: Plan) -> None:
        """Keep what was found out about a graph's operators."""
        self._file("plan", graph, door).write(encode_plan(plan))

    def load_program(self, graph: Graph, settings: str) -> tuple[Lowered, MemoryPlan] | None:
        """A compiled graph; None where there is none.

        Args:
            graph: what it was compiled from.
            settings: options that the program depends on.
        """
        return self._load(self._file("program", graph, settings), decode)

    def save_program(self, graph: Graph, settings: str, lowered: Lowered, plan: MemoryPlan) -> None:
        """Keep a compiled graph."""
        parts = encode(lowered, plan)
        if parts is not None:
            self._file("program", graph, settings).write(*parts)

    def load_sizes(self) -> TunedSizes:
        """What tuning found on this device, for whatever model."""
        return self._load(self._sizes_file(), decode_sizes) or TunedSizes()

    def save_sizes(self, sizes: TunedSizes) -> None:
        """Keep what tuning found."""
        self._sizes_file().write(encode_sizes(sizes))

    def _sizes_file(self) -> EntryFile:
        identity = {**self._identity, "kind": "sizes"}
        return EntryFile(self._folder / f"tuned-{self._device}.sizes", identity)

    def _load(self, file: EntryFile, read: Callable[[memoryview], Entry]) -> Entry | None:
        data = file.read()
        if data is None:
            return None
        try:
            return read(data)
        except Exception as error:  # a help that doesn't help must do no harm
            logger.info("cache file %s can't be used (%s): ignored", file.path, error)
            return None

    def _file(self, kind: str, graph: Graph, settings: str) -> EntryFile:
        model = graph_digest(graph)
        part = repr((graph.name, [n.index for n in graph.nodes], _ends(graph), settings))
        # A token names a model, so that a new version of it replaces the old one's files.
        which = part if self._token else model + part
        name = hashlib.sha256(which.encode()).hexdigest()[:16]
        stem = file_stem(self._token, "model")
        identity = {**self._identity, "kind": kind, "model": model, "part": part}
        return EntryFile(self._folder / f"{stem}-{self._device}-{name}.{kind}", identity)


def read_program_ahead(options: DelegateOptions) -> None:
    """Read the program that a model will ask for, where the folder holds but one it could be."""
    if options.cache_dir is None:
        return
    stem = file_stem(options.model_token, "model")
    found = list(Path(options.cache_dir).glob(f"{stem}-*.program"))
    if len(found) == 1:
        read_ahead(found[0])


def open_cache(options: DelegateOptions, device: DeviceInfo) -> CompileCache | None:
    """The cache that options name; None where they name none."""
    if options.cache_dir is None:
        return None
    return CompileCache(options.cache_dir, options.model_token, device)


def _ends(graph: Graph) -> list[Any]:
    return [(t, graph.tensors[t].shape) for t in (*graph.inputs, *graph.outputs)]
