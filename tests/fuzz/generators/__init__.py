"""Generators: one small function an operator, which adds it to a graph in a random form."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass

from tests.fuzz.builder import Builder

Generator = Callable[[Builder], object]


@dataclass(frozen=True)
class Entry:
    """One generator.

    Attributes:
        name: of the function.
        run: adds an operator, or raises RefusedError.
        weight: how often it is drawn.
    """

    name: str
    run: Generator
    weight: float


BOTH = ("float", "quantized")

_ENTRIES: dict[str, list[Entry]] = {"float": [], "quantized": []}


def generator(weight: float = 1.0, *groups: str) -> Callable[[Generator], Generator]:
    """Function decorator: put it into the table of some groups, "float" where none is named."""

    def add(run: Generator) -> Generator:
        for group in groups or ("float",):
            _ENTRIES[group].append(Entry(run.__name__, run, weight))
        return run

    return add


def entries(group: str) -> list[Entry]:
    """Every generator of a group, in a fixed order."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return sorted(_ENTRIES[group], key=lambda e: e.name)
