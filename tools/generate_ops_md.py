#!/usr/bin/env python3
"""Write docs/ops.md from the operator registry, the test cases, and facts about TFLite's delegate.

    python tools/generate_ops_md.py            write it
    python tools/generate_ops_md.py --check    exit with 1 where it is stale

Nothing in the file is written by hand: what an operator takes comes from its class in tflite_vk/ops,
the number of cases from tests/ops/cases, the column about TFLite from tools/tflite_gpu_ops.toml.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import pkgutil
import sys
import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tflite

from tflite_vk.dtypes import DType
from tflite_vk.epilogue import is_step
from tflite_vk.frontend.flatbuffer import read_model
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops import registry
from tflite_vk.ops.operator import Operator
from tflite_vk.passes import fold_constants, fold_shapes

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "ops.md"
TFLITE_FACTS = ROOT / "tools" / "tflite_gpu_ops.toml"

KINDS = ("plain", "quantized", "hybrid")

_BUILTIN = frozenset(tflite.utils.BUILTIN_OPCODE2NAME.values())

_HEAD = """# Operators

<!-- Made by tools/generate_ops_md.py from the registry: do not edit. -->

What the Vulkan delegate runs, next to what TFLite's own GPU delegate accepts. {summary}

* **Version** is the newest operator version that is understood; all older ones are too.
* **Types** are those of run-time values. With `precision="fp16"` float32 values are kept as float16.
  *Quantized* values are computed in integers, with TFLite's own rounding. *Hybrid* means float32 values
  with quantized weights.
* **Ranks** are those that tests run. No operator takes more than {max_rank} dimensions.
* **Fusion**: an operator that *joins* becomes part of the kernel before it, or of a chain of its kind;
  one that is *joined* takes such operators into its own kernel. This is about floats. Of 8-bit integers,
  functions of one value and QUANTIZE join each other, convolutions, FULLY_CONNECTED, BATCH_MATMUL and
  binary operators.
* **Cases** are the tests in `tests/ops/cases` whose model has the operator.
* A `STABLEHLO_COMPOSITE` runs as the operators of its decomposition do: in its place where the device
  takes the whole model, as a subgraph that the CPU calls otherwise.
* **TFLite's GPU delegate**: newest version (*any*: no limit) and its main limits. It takes up to four
  dimensions, and computes quantized values in floating point.

`tflite-vk inspect MODEL` says for each operator of a model whether it runs on the GPU, and why not.
"""

_DIFFERS = """Everywhere else they are those of its reference kernels: bit for bit for integers, truth values and what
is only moved; to the last digits for floats, whose products a driver may add without rounding in between.
"""


@dataclass
class Row:
    """An operator in the table.

    Attributes:
        name: TFLite's, or the custom operator's own.
        is_custom: True for a custom operator.
        families: its classes by kind.
        is_folded: computed before running where its inputs are constants or shapes.
        cases: tests that have it.
        tested: element types that a test runs on the device, by kind.
        ranks: of run-time values in such tests.
        peer: facts about TFLite's GPU delegate; None where it doesn't take the operator.
    """

    name: str
    is_custom: bool
    families: dict[str, Operator] = field(default_factory=dict)
    is_folded: bool = False
    cases: int = 0
    tested: Mapping[str, set[DType]] = field(default_factory=dict)
    ranks: Collection[int] = ()
    peer: Mapping[str, Any] | None = None

    @property
    def version(self) -> str:
        """Newest version of any family."""
        versions = [family.versions[self.name] for family in self.families.values()]
        return str(max(versions)) if versions else "–"

    @property
    def types(self) -> str:
        """Element types, by kind: those of the class that this operator of it is tested with."""
        parts = []
        for kind, family in self.families.items():
            types = family.dtypes & self.tested.get(kind, set()) or family.dtypes
            names = ", ".join(sorted(t.name.lower() for t in types))
            parts.append(names if kind == "plain" else f"*{kind}:* {names}")
        return "; ".join(parts) or "constants"

    @property
    def rank_text(self) -> str:
        """Least and largest rank that is tested."""
        if not self.ranks:
            return "–"
        least, most = min(self.ranks), max(self.ranks)
        return str(least) if least == most else f"{least} to {most}"

    @property
    def untested(self) -> str:
        """Element types that the class declares and no test runs."""
        parts = []
        for kind, family in self.families.items():
            types = family.dtypes - self.tested.get(kind, set())
            if types:
                parts.append(f"{kind} {', '.join(sorted(t.name.lower() for t in types))}")
        return "; ".join(parts)

    @property
    def fusion(self) -> str:
        """How it takes part in fusion."""
        joined = any(f.ends_in_epilogue for f in self.families.values())
        words = ["joins"] if is_step(self.name) and not self.is_custom else []
        # An operator that joins stands for itself as a chain of one, and is joined as such.
        return ", ".join([*words, "joined"] if joined else words) or "–"

    @property
    def notes(self) -> str:
        """What its classes say, and whether it is folded."""
        told: dict[str, None] = {}
        parts = []
        for kind, family in self.families.items():
            new = [t for t in family.notes.split("; ") if t and t not in told]
            told.update(dict.fromkeys(new))
            if new:
                parts.append(f"{'' if kind == 'plain' else f'*{kind}:* '}{'; '.join(new)}")
        if self.is_folded:
            parts.append("computed before running where the inputs allow")
        return "; ".join(parts)

    @property
    def peer_text(self) -> str:
        """The column about TFLite's GPU delegate."""
        if self.peer is None:
            return "–"
        version = self.peer.get("version")
        kinds = ", quantized" if self.peer.get("quantized") else ""
        limits = self.peer.get("limits", "")
        return f"{version or 'any'}{kinds}" + (f": {limits}" if limits else "")


@dataclass
class Cases:
    """What tests/ops/cases have of each operator.

    Attributes:
        count: how many cases have it in their model.
        types: element types of run-time values in nodes that the device takes, by kind.
        ranks: of these values.
    """

    count: Counter[str] = field(default_factory=Counter)
    types: dict[str, dict[str, set[DType]]] = field(default_factory=dict)
    ranks: dict[str, set[int]] = field(default_factory=dict)


def collect(facts: Mapping[str, Any], cases: Cases) -> list[Row]:
    """Every operator of the registry, folded ones included, in alphabetical order.

    Args:
        facts: content of tools/tflite_gpu_ops.toml.
        cases: what is tested.
    """
    rows: dict[tuple[str, bool], Row] = {}
    table = registry.operators()
    for name, is_custom, kind in sorted(table, key=lambda key: KINDS.index(key[2])):
        # ELEMENTWISE and the like are made by passes; no model has them.
        if is_custom or name in _BUILTIN:
            row = rows.setdefault((name, is_custom), Row(name, is_custom))
            row.families[kind] = table[name, is_custom, kind]
    for name in folded_operators():
        rows.setdefault((name, False), Row(name, is_custom=False)).is_folded = True
    for (name, is_custom), row in rows.items():
        row.cases, row.tested = cases.count[name], cases.types.get(name, {})
        row.ranks = cases.ranks.get(name, ())
        row.peer = facts["custom" if is_custom else "operators"].get(name)
    return sorted(rows.values(), key=lambda row: (row.is_custom, row.name))


def folded_operators() -> set[str]:
    """Operators that are computed before running."""
    return {*fold_constants._FOLDERS, *fold_shapes._FOLDERS, "SHAPE", "RANK"}


def count_cases() -> Cases:
    """What tests/ops/cases have of each operator."""
    package = importlib.import_module("tests.ops.cases")
    cases = Cases()
    for module in pkgutil.iter_modules(package.__path__, "tests.ops.cases."):
        for case in importlib.import_module(module.name).CASES:
            graph = read_model(case.model()).subgraphs[0]
            cases.count.update({node.op for node in graph.nodes})
            _add_types(cases, fold_constants.fold_constants(graph))
    return cases


def _add_types(cases: Cases, graph: Graph) -> None:
    for node in graph.nodes:
        if registry.unsupported_reason(node, graph) is not None:
            continue
        kinds = cases.types.setdefault(node.op, {})
        tensors = [graph.tensors[t] for t in (*node.reads, *node.outputs)]
        values = [t for t in tensors if not t.is_const]
        kinds.setdefault(_kind_served(node, graph), set()).update(t.dtype for t in values)
        cases.ranks.setdefault(node.op, set()).update(t.rank for t in values)


def _kind_served(node: Node, graph: Graph) -> str:
    """Kind of the family that takes a node."""
    family = registry.find(node, graph)
    return "plain" if family is None else family.kind


def render(rows: Sequence[Row], facts: Mapping[str, Any]) -> str:
    """The page."""
    builtin = [r for r in rows if not r.is_custom]
    custom = [r for r in rows if r.is_custom]
    parts = [
        _HEAD.format(summary=_summary(builtin, custom, facts), max_rank=registry.MAX_RANK),
        f"## Builtin operators ({len(builtin)})\n\n{_table(builtin)}",
        f"## Custom operators ({len(custom)})\n\n{_table(custom)}",
    ]
    parts.append(f"## Where results differ from TFLite's\n\n{_DIFFERS}\n{_differences(rows)}")
    missing = _missing(rows, facts)
    if missing:
        lines = "\n".join(f"* `{name}`: {text}" for name, text in missing)
        parts.append(f"## Only in TFLite's GPU delegate ({len(missing)})\n\n{lines}\n")
    return "\n".join(parts)


def _differences(rows: Iterable[Row]) -> str:
    """What the classes say of it; operators of which the same is said stand together."""
    found: dict[str, list[str]] = {}
    for row in rows:
        for family in row.families.values():
            text = family.differs.get(row.name)
            if text is not None and f"`{row.name}`" not in found.setdefault(text, []):
                found[text].append(f"`{row.name}`")
    return "\n".join(f"* {', '.join(names)}: {text}." for text, names in found.items()) + "\n"


def _summary(builtin: Sequence[Row], custom: Sequence[Row], facts: Mapping[str, Any]) -> str:
    theirs = len(facts["operators"]), len(facts["custom"])
    shared = sum(row.peer is not None for row in (*builtin, *custom))
    return (
        f"Here {len(builtin)} builtin and {len(custom)} custom operators; there {theirs[0]} and "
        f"{theirs[1]}, of which {shared} are here too."
    )


def _missing(rows: Iterable[Row], facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    have = {(row.name, row.is_custom) for row in rows}
    return [
        (name, Row(name, is_custom, peer=peer).peer_text)
        for table, is_custom in (("operators", False), ("custom", True))
        for name, peer in sorted(facts[table].items())
        if (name, is_custom) not in have
    ]


def _table(rows: Sequence[Row]) -> str:
    head = (
        "Operator", "Version", "Types", "Ranks", "Fusion", "Notes", "Cases",
        "TFLite's GPU delegate",
    )  # fmt: skip
    lines = [_line(head), _line(["---"] * len(head))]
    lines += [
        _line(
            (
                f"`{r.name}`", r.version, r.types, r.rank_text, r.fusion, r.notes,
                str(r.cases or "–"), r.peer_text,
            )
        )
        for r in rows
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _line(cells: Iterable[str]) -> str:
    return " | ".join(["", *(cell.replace("|", r"\|") for cell in cells), ""]).strip()


def generate() -> str:
    """The page as it should be."""
    facts = _facts()
    return render(collect(facts, count_cases()), facts)


def _facts() -> dict[str, Any]:
    return tomllib.loads(TFLITE_FACTS.read_text(encoding="utf-8"))


def main() -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing, fail where stale")
    parser.add_argument(
        "--untested", action="store_true", help="list types that classes declare and no case runs"
    )
    options = parser.parse_args()
    # The cases are no part of any package that is installed.
    sys.path.insert(0, str(ROOT))
    if options.untested:
        for row in collect(_facts(), count_cases()):
            if row.untested:
                print(f"{row.name}: {row.untested}")
        return 0
    text = generate()
    old = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    if not options.check:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if text == old:
        return 0
    difference = difflib.unified_diff(
        old.splitlines(), text.splitlines(), "docs/ops.md", "new", n=0
    )
    print("\n".join(list(difference)[:40]), file=sys.stderr)
    print("docs/ops.md is stale: run python tools/generate_ops_md.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
