"""What commands print: tables and bars by rich on a terminal, plain text everywhere else."""

from __future__ import annotations

import contextlib
import json
import math
import shutil
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from tflite_vk.analysis.progress import Progress, silent


def print_json(data: Any) -> None:
    """Print JSON; infinities and NaN, which it has none of, become null."""
    print(json.dumps(_plain(data), indent=2, allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def print_facts(facts: Sequence[tuple[str, str]]) -> None:
    """Print lines of a name and what there is to say; lines that say nothing are left out."""
    told = [(name, text) for name, text in facts if text]
    width = max((len(name) for name, _ in told), default=0)
    for name, text in told:
        print(f"{name:<{width}}  {text}")


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], align: str) -> None:
    """Print a table.

    Args:
        columns: headings.
        rows: cells.
        align: for each column "l" or "r".
    """
    if not rows:
        return
    widths = [max(len(row[i]) for row in (columns, *rows)) for i in range(len(columns))]
    # Rich would cut numbers short to fit; lines that the terminal breaks lose nothing.
    does_fit = sum(widths) + 3 * len(widths) <= shutil.get_terminal_size().columns
    if sys.stdout.isatty() and does_fit and _print_rich_table(columns, rows, align):
        return
    for row in (columns, *rows):
        cells = [
            cell.ljust(width) if side == "l" else cell.rjust(width)
            for cell, width, side in zip(row, widths, align, strict=True)
        ]
        print("  ".join(cells).rstrip())


def _print_rich_table(columns: Sequence[str], rows: Sequence[Sequence[str]], align: str) -> bool:
    """Print by rich; False where it isn't installed."""
    try:
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        return False
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name, side in zip(columns, align, strict=True):
        table.add_column(name, justify="left" if side == "l" else "right")
    for row in rows:
        # Text, since a shape in brackets would be read as markup.
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)
    return True


@contextlib.contextmanager
def progress_bar() -> Iterator[Progress]:
    """Show progress on stderr where that is a terminal and rich is installed."""
    if not sys.stderr.isatty():
        yield silent
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as Bar
    except ImportError:
        yield silent
        return
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("start", total=1)

        def show(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=max(total, 1))

        yield show


def size(num_bytes: int) -> str:
    """Bytes with a unit."""
    value = float(num_bytes)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.2f} GiB"


def count(number: int, noun: str, plural: str = "") -> str:
    """A number and a noun in the right form."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def flops(number: int) -> str:
    """Operations with a unit."""
    for limit, unit in ((1e9, "GFLOP"), (1e6, "MFLOP"), (1e3, "KFLOP")):
        if number >= limit:
            return f"{number / limit:.1f} {unit}"
    return f"{number} FLOP"


def scientific(value: float) -> str:
    """A small number, 0 as itself."""
    return "0" if value == 0 else f"{value:.2e}"


def decibels(value: float) -> str:
    """A signal-to-noise ratio; equal arrays have none."""
    return "same" if value == math.inf else f"{value:.1f}"


def shape(dims: Sequence[int]) -> str:
    """A shape."""
    return f"[{','.join(map(str, dims))}]"
