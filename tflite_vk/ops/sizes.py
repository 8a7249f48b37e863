"""Sizes of a kernel's tile and workgroup: a first choice by rule, others to try on the device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from tflite_vk.device_info import DeviceLimits
from tflite_vk.program import Dispatch

Size = tuple[int, ...]
"""What an operator family may vary, in an order of its own; every size gives the same result."""

Effort = Literal["off", "fast", "exhaustive"]
"""How many sizes to offer besides the first choice."""


@dataclass(frozen=True)
class Choice:
    """A dispatch that could run in other sizes.

    Attributes:
        dispatch: its position in the program.
        signature: all that the best size depends on, apart from the device.
        chosen: the size it has.
        others: the dispatch in each other size.
    """

    dispatch: int
    signature: str
    chosen: Size
    others: Mapping[Size, Dispatch] = field(repr=False)


@dataclass(frozen=True)
class Offer:
    """What can be chosen from for a dispatch.

    Attributes:
        signature: see Choice.
        rule: the first choice.
        sizes: gives every size worth trying; only asked where there is something to tune.
        few: gives those of them worth trying with little effort; those near the rule's where None.
    """

    signature: str
    rule: Size
    sizes: Callable[[], Iterable[Size]]
    few: Callable[[], Iterable[Size]] | None = None

    def pick(self, tuned: Mapping[str, Size]) -> Size:
        """The size that tuning found; the rule's where it found none that is on offer."""
        size = tuned.get(self.signature, self.rule)
        return size if size == self.rule or size in self.sizes() else self.rule

    def others(self, effort: Effort, chosen: Size) -> Iterator[Size]:
        """Sizes to try besides the chosen one."""
        if effort == "off":
            return iter(())
        if effort == "exhaustive":
            sizes = self.sizes()
        else:
            sizes = near(self.rule, self.sizes()) if self.few is None else self.few()
        return (s for s in dict.fromkeys((self.rule, *sizes)) if s != chosen)


def fits_workgroup(x: int, y: int, z: int, limits: DeviceLimits) -> bool:
    """True where the device takes this local size."""
    sizes = zip((x, y, z), limits.max_workgroup_size, strict=True)
    return x * y * z <= limits.max_workgroup_invocations and all(n <= most for n, most in sizes)


def powers_of_two(least: int, most: int) -> list[int]:
    """Powers of two from `least`, which is one, up to `most`."""
    out = []
    while least <= most:
        out.append(least)
        least *= 2
    return out


def power_of_two_above(value: int, most: int) -> int:
    """Smallest power of two >= value, or the first >= most where that is smaller."""
    size = 1
    while size < value and size < most:
        size *= 2
    return size


def power_of_two_below(value: int, most: int) -> int:
    """Largest power of two <= value, at least 1 and at most `most`."""
    size = 1
    while size * 2 <= min(value, most):
        size *= 2
    return size


def near(size: Size, sizes: Iterable[Size]) -> tuple[Size, ...]:
    """Those that differ in one number by up to a factor of three, or in two by a factor of two."""

    def distance(other: Size) -> float:
        return sum(max(a, b) / min(a, b) - 1 for a, b in zip(size, other, strict=True))

    return tuple(s for s in sizes if 0 < distance(s) <= 2)
