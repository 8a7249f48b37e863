"""The networks: built with random weights, or real models from a file; inputs to give them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tflite_vk.analysis.model_inputs import RandomInputs
from tflite_vk.errors import Error
from tflite_vk.frontend.flatbuffer import read_file, read_model
from tflite_vk.ir.graph import Graph
from tflite_vk.testing.networks import NETWORKS

ROOT = Path(__file__).resolve().parent.parent.parent
MODEL_FOLDERS = (ROOT.parent / "shared" / "models", ROOT / ".cache" / "models")
NCNN_GRAPHS = ROOT.parent / "shared" / "peers"


@dataclass(frozen=True)
class NcnnGraph:
    """A graph of ncnn's that stands for one of ours.

    Attributes:
        file: name of its .param.
        outputs: blobs to compute.
        note: where it is not the same network.
    """

    file: str
    outputs: tuple[str, ...] = ("output",)
    note: str = ""


NCNN: dict[str, NcnnGraph] = {
    "mobilenet_v1": NcnnGraph("ncnn_mobilenet.param"),
    "mobilenet_v2": NcnnGraph("ncnn_mobilenet_v2.param"),
    "resnet_50": NcnnGraph("ncnn_resnet50.param"),
    "mobilenet_ssd": NcnnGraph(
        "ncnn_mobilenet_ssd.param", ("mbox_loc", "mbox_conf_flatten"), "21 classes, ours has 91"
    ),
    "face_detection_short_range": NcnnGraph("ncnn_blazeface.param", note="another BlazeFace"),
}
"""ncnn's graph for a network, by our name."""


@dataclass(frozen=True)
class Network:
    """A network ready for every engine.

    Attributes:
        name: for people, and for files.
        model: the .tflite file.
        graph: subgraph 0 as read.
        inputs: .npy files of the inputs.
    """

    name: str
    model: Path
    graph: Graph
    inputs: tuple[Path, ...]


def find(name: str, folder: Path) -> Path:
    """The .tflite file of a network, built into a folder where it is one that we build.

    Args:
        name: of a builder, of a model in one of MODEL_FOLDERS, or a path.
        folder: where built models go.

    Raises:
        Error: there is no such network.
    """
    if name in NETWORKS:
        path = folder / f"{name}.tflite"
        path.write_bytes(NETWORKS[name]())
        return path
    for candidate in (Path(name), *(f / f"{name}.tflite" for f in MODEL_FOLDERS)):
        if candidate.is_file():
            return candidate
    raise Error(f"no network {name!r}; give a .tflite file, or one of {', '.join(known())}")


def known(folders: Iterable[Path] = MODEL_FOLDERS) -> list[str]:
    """Names of the networks that are here."""
    files = [p.stem for folder in folders if folder.is_dir() for p in folder.glob("*.tflite")]
    return [*NETWORKS, *sorted(set(files) - NETWORKS.keys())]


def prepare(name: str, folder: Path, seed: int = 0) -> Network:
    """A network with its files in a folder.

    Raises:
        Error: there is no such network, or its inputs can't be random.
    """
    model = find(name, folder)
    graph = read_model(read_file(model), model.name).subgraphs[0]
    inputs = []
    for tensor_id, value in RandomInputs(seed).draw(graph).items():
        path = folder / f"{model.stem}-input-{tensor_id}.npy"
        np.save(path, value)
        inputs.append(path)
    return Network(model.stem, model, graph, tuple(inputs))


def ncnn_input_shape(param: str) -> tuple[int, ...]:
    """Shape of a graph's input blob as NumPy has it, [channels, height, width].

    Args:
        param: text of the .param file.

    Raises:
        ValueError: the text is none of ncnn's, or its first layer has no fixed size.
    """
    lines = param.split("\n")
    if lines[0].strip() != "7767517":
        raise ValueError("it does not begin with ncnn's magic number 7767517")
    for line in lines[2:]:
        words = line.split()
        if words and words[0] == "Input":
            sizes = dict(w.split("=") for w in words if w[:2] in ("0=", "1=", "2="))
            if len(sizes) == 3:
                return tuple(int(sizes[key]) for key in ("2", "1", "0"))
    raise ValueError("it has no input of fixed width, height and channels")


def with_commas(texts: Sequence[str]) -> list[str]:
    """Items of arguments that may each hold several, with commas between."""
    return [item for text in texts for item in text.split(",") if item]
