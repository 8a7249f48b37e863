"""Sizes that tuning found, as bytes and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from tflite_vk.ops.sizes import Effort, Size

_EFFORTS: tuple[Effort, ...] = ("off", "fast", "exhaustive")


@dataclass
class TunedSizes:
    """The best sizes of a device, by signature of the kernel and its shape.

    Attributes:
        found: each with the effort that found it.
    """

    found: dict[str, tuple[Effort, Size]] = field(default_factory=dict)

    def known(self, effort: Effort) -> dict[str, Size]:
        """Sizes found with at least so much effort."""
        least = _EFFORTS.index(effort)
        return {s: size for s, (e, size) in self.found.items() if _EFFORTS.index(e) >= least}

    def add(self, effort: Effort, sizes: Mapping[str, Size]) -> None:
        """Note what was found."""
        self.found.update({signature: (effort, size) for signature, size in sizes.items()})


def encode_sizes(sizes: TunedSizes) -> bytes:
    """The content of a file."""
    return json.dumps(sizes.found, sort_keys=True).encode()


def decode_sizes(data: memoryview) -> TunedSizes:
    """What `encode_sizes` was given.

    Raises:
        Exception: of any kind, where it was not written by this code.
    """
    out = TunedSizes()
    for signature, (effort, size) in json.loads(bytes(data)).items():
        _EFFORTS.index(effort)
        out.found[str(signature)] = (effort, tuple(int(n) for n in size))
    return out
