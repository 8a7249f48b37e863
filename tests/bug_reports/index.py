"""The index of bug reports: which tests hold which report."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

PATH = Path(__file__).with_name("index.toml")


@dataclass(frozen=True)
class Report:
    """One bug report of a peer's user.

    Attributes:
        id: section and number.
        report: repository and number on GitHub.
        tests: what holds it here.
        why: what keeps a test from saying all of it.
    """

    id: str
    report: str
    tests: tuple[str, ...] = ()
    why: str = ""


def reports() -> list[Report]:
    """All of them, in the file's order."""
    table = tomllib.loads(PATH.read_text())
    return [
        Report(i, row["report"], tuple(row.get("tests", ())), row.get("why", ""))
        for i, row in table.items()
    ]
