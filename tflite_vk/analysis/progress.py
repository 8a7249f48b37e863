"""How long work tells how far it is."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Called with what is being done, and how much of how much is done."""

    def __call__(self, what: str, done: int, total: int) -> None:
        """Show it."""
        ...


def silent(what: str, done: int, total: int) -> None:
    """Show nothing."""
    del what, done, total
