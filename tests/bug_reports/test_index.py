"""Every row of the index names tests that are there."""

from __future__ import annotations

import ast
import fnmatch
import functools
import re
from pathlib import Path

import pytest

from tests.bug_reports.index import Report, reports
from tests.ops.test_ops import all_cases

ROOT = Path(__file__).parent.parent.parent
REPORTS = reports()
SECTIONS = dict(zip("ABCDEFGHIJKL", (11, 10, 21, 23, 11, 6, 11, 10, 9, 16, 15, 15), strict=True))


@functools.cache
def case_names() -> frozenset[str]:
    return frozenset(case.name for case in all_cases())


@functools.cache
def functions_of(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text())
    return frozenset(n.name for n in tree.body if isinstance(n, ast.FunctionDef))


def is_there(test: str) -> bool:
    if test.startswith("op:"):
        return bool(fnmatch.filter(case_names(), test.removeprefix("op:")))
    path, _, function = test.partition("::")
    if not function:
        return (ROOT / path).is_file()
    return function.startswith("test_") and function in functions_of(path)


def test_every_report_stands_in_it_once() -> None:
    ids = [r.id for r in REPORTS]
    assert len(set(ids)) == len(ids) == 158
    assert {s: sum(i[0] == s for i in ids) for s in SECTIONS} == SECTIONS


@pytest.mark.parametrize("report", REPORTS, ids=lambda r: r.id)
def test_report(report: Report) -> None:
    assert re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", report.report)
    assert [t for t in report.tests if not is_there(t)] == []
    assert report.tests or report.why


def test_cases_with_an_id_belong_to_a_report() -> None:
    """A case named after a report that nobody lists is a typing error."""
    ids = {r.id for r in REPORTS}
    named = {m[1] for name in case_names() if (m := re.match(r"([A-L]\d+)_(?!POOL)", name))}
    assert named <= ids, named - ids
