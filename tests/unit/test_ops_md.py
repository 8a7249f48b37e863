from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest
import tflite

import generate_ops_md as tool
from tflite_vk.dtypes import DType
from tflite_vk.ops import registry

FACTS = tomllib.loads(tool.TFLITE_FACTS.read_text(encoding="utf-8"))
BUILTIN = set(tflite.utils.BUILTIN_OPCODE2NAME.values())


def test_page_is_up_to_date() -> None:
    assert tool.PAGE.read_text(encoding="utf-8") == tool.generate(), (
        "docs/ops.md is stale: run python tools/generate_ops_md.py"
    )


def test_facts_about_tflite_are_complete() -> None:
    assert len(FACTS["operators"]) == 80
    assert len(FACTS["custom"]) == 4
    assert set(FACTS["operators"]) <= BUILTIN
    known = {"version", "quantized", "limits"}
    for name, facts in {**FACTS["operators"], **FACTS["custom"]}.items():
        assert set(facts) <= known, name


def test_every_operator_of_the_registry_has_a_row() -> None:
    rows = {(r.name, r.is_custom) for r in tool.collect(FACTS, tool.Cases())}
    for name, is_custom, _ in registry.operators():
        if is_custom or name in BUILTIN:
            assert (name, is_custom) in rows
    assert not {("ELEMENTWISE", False), ("SEPARABLE_CONV_2D", False)} & rows
    assert tool.folded_operators() <= {name for name, _ in rows}


def test_types_are_those_that_are_tested() -> None:
    cases = tool.Cases()
    cases.count["COS"] = 3
    cases.types["COS"] = {"plain": {DType.FLOAT32}}
    cases.ranks["COS"] = {0, 4, 2}
    row = next(r for r in tool.collect(FACTS, cases) if r.name == "COS")
    assert (row.version, row.types, row.rank_text, row.cases) == ("1", "float32", "0 to 4", 3)
    assert row.fusion == "joins, joined"
    assert row.peer_text == "2"


def test_columns_about_tflite() -> None:
    assert tool.Row("X", is_custom=False).peer_text == "–"
    assert tool.Row("X", is_custom=False, peer={}).peer_text == "any"
    peer = {"version": 4, "quantized": True, "limits": "rank 3"}
    assert tool.Row("X", is_custom=False, peer=peer).peer_text == "4, quantized: rank 3"


def test_operators_that_only_tflite_has_are_listed() -> None:
    facts = {"operators": {"NOWHERE": {"version": 1}}, "custom": {}}
    text = tool.render(tool.collect(facts, tool.Cases()), facts)
    assert "## Only in TFLite's GPU delegate (1)\n\n* `NOWHERE`: 1\n" in text


def test_differences_are_of_operators_that_the_family_has() -> None:
    families = {id(f): f for f in tool.registry.operators().values()}.values()
    told = [(family, op) for family in families for op in family.differs]
    assert len(told) > 20
    assert all(op in family.versions for family, op in told)
    page = tool.PAGE.read_text(encoding="utf-8")
    for family, op in told:
        assert f": {family.differs[op]}." in page


def test_bars_do_not_break_the_table() -> None:
    assert tool._line(["a", "b|c"]) == r"| a | b\|c |"


@pytest.mark.parametrize(("old", "status"), [("something else\n", 1), (None, 1)])
def test_check_fails_where_stale(
    old: str | None,
    status: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = tmp_path / "docs" / "ops.md"
    monkeypatch.setattr(tool, "PAGE", page)
    monkeypatch.setattr(tool, "generate", lambda: "# new\n")
    monkeypatch.setattr(sys, "argv", ["generate_ops_md.py", "--check"])
    if old is not None:
        page.parent.mkdir()
        page.write_text(old)
    assert tool.main() == status
    assert "docs/ops.md is stale: run python tools/generate_ops_md.py\n" in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", ["generate_ops_md.py"])
    assert tool.main() == 0
    monkeypatch.setattr(sys, "argv", ["generate_ops_md.py", "--check"])
    assert tool.main() == 0
