"""What runs a network: this package's dispatchers and its peers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.networks import NCNN, Network, ncnn_input_shape
from bench.onnx_graph import UnknownOperatorError, to_onnx


@dataclass(frozen=True)
class Engine:
    """An engine, not yet running.

    Attributes:
        name: in the table.
        kind: what `--engines` and `--python` call it.
        worker: module of `bench.workers` that runs it.
        settings: for the worker.
        has_our_weights: outputs may be compared; ncnn's graphs have weights of their own.
    """

    name: str
    kind: str
    worker: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    has_our_weights: bool = True


@dataclass(frozen=True)
class Input:
    """What an engine is given for a network.

    Attributes:
        model: a file in its format.
        settings: for the worker, the engine's and the network's.
        note: where it is not the same network.
    """

    model: Path
    settings: Mapping[str, Any]
    note: str = ""


class SkippedError(Exception):
    """An engine can't run a network; the text says why."""


KINDS = ("vulkan", "kompute", "delegate", "litert-cpu", "litert-webgpu", "ncnn", "onnxruntime")
"""Every engine there is. "delegate" is LiteRT's interpreter with this package's delegate."""


def engines(kinds: Sequence[str], threads: Sequence[int]) -> list[Engine]:
    """Engines by kind, in the order of the table.

    Args:
        kinds: of KINDS.
        threads: LiteRT's CPU kernels run once with each of these.

    Raises:
        ValueError: an unknown kind.
    """
    for kind in kinds:
        if kind not in KINDS:
            raise ValueError(f"no engine {kind!r}; choose from {', '.join(KINDS)}")
    out: list[Engine] = []
    for kind in KINDS:
        if kind in kinds:
            out.extend(_engines(kind, threads))
    return out


def _engines(kind: str, threads: Sequence[int]) -> list[Engine]:
    if kind in ("vulkan", "kompute"):
        settings = {"door": "interpreter", "dispatcher": kind}
        return [Engine(f"tflite_vk {kind}", kind, "tflite_vk_engine", settings)]
    if kind == "delegate":
        settings = {"door": "delegate"}
        return [Engine("tflite_vk in LiteRT", kind, "tflite_vk_engine", settings)]
    if kind == "litert-cpu":
        return [
            Engine(f"LiteRT CPU, {n} thread{'s' * (n != 1)}", kind, "litert_cpu", {"threads": n})
            for n in threads
        ]
    if kind == "litert-webgpu":
        return [Engine("LiteRT WebGPU", kind, "litert_webgpu")]
    if kind == "ncnn":
        return [Engine("ncnn Vulkan", kind, "ncnn_vulkan", has_our_weights=False)]
    return [Engine("ONNX Runtime WebGPU", kind, "onnxruntime_webgpu")]


def input_for(engine: Engine, network: Network, folder: Path, ncnn_graphs: Path) -> Input:
    """The network in an engine's format.

    Args:
        engine: what shall run it.
        network: ours.
        folder: where converted files go.
        ncnn_graphs: folder of ncnn's .param files.

    Raises:
        SkippedError: it has no such form; says why.
    """
    if engine.kind == "ncnn":
        return _ncnn_input(engine, network, ncnn_graphs)
    if engine.kind != "onnxruntime":
        return Input(network.model, engine.settings)
    path = folder / f"{network.name}.onnx"
    if not path.exists():
        try:
            path.write_bytes(to_onnx(network.graph))
        except UnknownOperatorError as error:
            raise SkippedError(f"no ONNX form of this network: {error}") from None
    return Input(path, engine.settings)


def _ncnn_input(engine: Engine, network: Network, graphs: Path) -> Input:
    known = NCNN.get(network.name)
    if known is None:
        raise SkippedError("ncnn has no graph of this network")
    path = graphs / known.file
    try:
        shape = ncnn_input_shape(path.read_text(encoding="utf-8"))
    except OSError:
        raise SkippedError(f"{known.file} is not in {graphs}; give --ncnn-graphs") from None
    except ValueError as error:
        raise SkippedError(f"{path} can't be read: {error}") from None
    settings = {**engine.settings, "outputs": list(known.outputs), "input_shape": list(shape)}
    return Input(path, settings, known.note)
