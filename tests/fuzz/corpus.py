"""Graphs that once failed: a .tflite file, its values and tolerances, and the code that builds it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.fuzz.shrink import Failure, as_python

FOLDER = Path(__file__).parent / "corpus"


def save(failure: Failure, name: str, text: str, folder: Path = FOLDER) -> Path:
    """Write a failing graph to a folder; the path of its .tflite file."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.tflite"
    path.write_bytes(failure.data)
    arrays = {f"input_{i}": x for i, x in enumerate(failure.inputs)}
    arrays |= {f"output_{i}": x for i, x in enumerate(failure.outputs)}
    np.savez_compressed(path.with_suffix(".npz"), tolerances=failure.tolerances, **arrays)
    comment = "\n".join(f"# {line}" for line in text.splitlines())
    path.with_suffix(".txt").write_text(f"{comment}\n{as_python(failure.data)}")
    return path


def load(path: Path) -> Failure:
    """Read one back."""
    with np.load(path.with_suffix(".npz")) as stored:
        inputs, outputs = (
            [stored[f"{kind}_{i}"] for i in range(sum(n.startswith(kind) for n in stored.files))]
            for kind in ("input", "output")
        )
        tolerances = [float(t) for t in stored["tolerances"]]
    return Failure(path.read_bytes(), inputs, outputs, tolerances)


def paths(folder: Path = FOLDER) -> list[Path]:
    """All of them."""
    return sorted(folder.glob("*.tflite"))
