from __future__ import annotations

import io
import math
import sys

import pytest

from tflite_vk.cli import output


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


COLUMNS = ("name", "shape", "n")
ROWS = [("a[b]", "[1,2]", "1"), ("longer", "[3]", "22")]


def test_plain_table(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_table(COLUMNS, ROWS, "llr")
    assert capsys.readouterr().out == (
        "name    shape   n\n"
        "a[b]    [1,2]   1\n"
        "longer  [3]    22\n"
    )  # fmt: skip
    output.print_table(COLUMNS, [], "llr")
    assert capsys.readouterr().out == ""


def test_table_on_a_terminal_keeps_what_looks_like_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rich")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    output.print_table(COLUMNS, ROWS, "llr")
    text = terminal.getvalue()
    assert "─" in text
    assert "a[b]" in text
    assert "[1,2]" in text


def test_table_too_wide_for_the_terminal_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", "20")
    output.print_table(COLUMNS, [("x" * 40, "[1]", "1.234567e-05")], "llr")
    assert "x" * 40 + "  [1]    1.234567e-05\n" in terminal.getvalue()


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_without_rich_a_terminal_gets_plain_text(
    stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("rich", "rich.box", "rich.console", "rich.progress", "rich.table", "rich.text"):
        monkeypatch.setitem(sys.modules, module, None)
    terminal = Terminal()
    monkeypatch.setattr(sys, stream, terminal)
    output.print_table(COLUMNS, ROWS, "llr")
    with output.progress_bar() as progress:
        progress("work", 1, 2)
    expected = "name    shape   n\n" if stream == "stdout" else ""
    assert terminal.getvalue().startswith(expected)
    assert "\x1b" not in terminal.getvalue()


def test_progress_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rich")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with output.progress_bar() as progress:
        progress("compile", 0, 0)
        progress("run", 3, 4)
    assert "run" in terminal.getvalue()


def test_json_has_no_infinities(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_json({"a": math.inf, "b": [math.nan, 1.5], "c": {2: (3,)}})
    assert capsys.readouterr().out == (
        '{\n  "a": null,\n  "b": [\n    null,\n    1.5\n  ],\n  "c": {\n    "2": [\n      3\n'
        "    ]\n  }\n}\n"
    )


def test_units() -> None:
    assert [output.size(n) for n in (0, 1023, 1024, 5 << 20, 3 << 30)] == [
        "0 B", "1023 B", "1.0 KiB", "5.0 MiB", "3.00 GiB",
    ]  # fmt: skip
    assert [output.flops(n) for n in (5, 5_000, 5_000_000, 5_000_000_000)] == [
        "5 FLOP", "5.0 KFLOP", "5.0 MFLOP", "5.0 GFLOP",
    ]  # fmt: skip
    assert output.count(1, "dispatch", "dispatches") == "1 dispatch"
    assert output.count(2, "dispatch", "dispatches") == "2 dispatches"
    assert output.decibels(math.inf) == "same"
    assert output.scientific(0.0) == "0"


def test_facts(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_facts([("a", "1"), ("skipped", ""), ("longer", "2")])
    assert capsys.readouterr().out == "a       1\nlonger  2\n"
