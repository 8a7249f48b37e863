"""Arguments of the benchmark, and what it does with them."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.engines import KINDS, engines
from bench.measure import Plan, measure
from bench.networks import NCNN_GRAPHS, known, prepare, with_commas
from bench.plot import svg
from bench.process import DriverCaches, Place
from bench.results import Row, machine, table
from tflite_vk.errors import Error

_DEFAULT = ("mobilenet_v1", "mobilenet_v2")


def parser() -> argparse.ArgumentParser:
    """The parser."""
    out = argparse.ArgumentParser(
        prog="python -m tools.bench", description="This package and its peers, side by side."
    )
    out.add_argument(
        "networks",
        nargs="*",
        metavar="NETWORK",
        help=f"a .tflite file, or of: {', '.join(known())} (default: {' '.join(_DEFAULT)})",
    )
    out.add_argument(
        "--engines", action="append", default=[], metavar="A,B", help=f"of {', '.join(KINDS)}"
    )
    out.add_argument("--rounds", type=_positive, default=10, help="turns of each (default: 10)")
    out.add_argument("--seconds", type=float, default=0.3, help="of a turn (default: 0.3)")
    out.add_argument(
        "--threads", action="append", default=[], metavar="N,M", help="of LiteRT's CPU kernels"
    )
    out.add_argument("--precision", choices=("fp32", "fp16"), default="fp32")
    out.add_argument(
        "--python",
        action="append",
        default=[],
        metavar="ENGINE=PATH",
        help="the Python that has an engine installed; may be repeated",
    )
    out.add_argument(
        "--ncnn-graphs", type=Path, default=NCNN_GRAPHS, help="folder of ncnn's .param files"
    )
    out.add_argument(
        "--no-driver-cache",
        action="store_true",
        help="drivers keep nothing between processes (Mesa's and NVIDIA's own caches off)",
    )
    out.add_argument("--no-warm", action="store_true", help="start each engine once, cold")
    out.add_argument("--seed", type=int, default=0, help="of the inputs")
    out.add_argument("--out", type=Path, help="folder for results.json, .md and .svg")
    return out


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} (allowed: 1 and up)")
    return value


def pythons(items: Sequence[str]) -> dict[str, str]:
    """Interpreters by engine.

    Raises:
        ValueError: an item is not ENGINE=PATH.
    """
    out: dict[str, str] = {}
    for item in items:
        kind, equals, path = item.partition("=")
        if not equals or not path or kind not in KINDS:
            raise ValueError(f"--python {item}: give ENGINE=PATH, ENGINE of {', '.join(KINDS)}")
        out[kind] = path
    return out


def _threads(texts: Sequence[str]) -> list[int]:
    counts = [int(text) for text in with_commas(texts)]
    if any(n < 1 for n in counts):
        raise ValueError("--threads takes numbers from 1 up")
    return counts or [1]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; 0 where the first engine ran everything, 1 where it did not, 2 for bad usage."""
    args = parser().parse_args(arguments)
    try:
        chosen = engines(with_commas(args.engines) or KINDS, _threads(args.threads))
        caches: DriverCaches = "off" if args.no_driver_cache else "worker"
        place = Place(pythons(args.python), args.precision, caches)
    except ValueError as error:
        parser().error(str(error))
    plan = Plan(args.rounds, args.seconds, args.ncnn_graphs, starts_twice=not args.no_warm)
    before = machine()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="bench-") as temporary:
        folder = Path(temporary)
        for name in with_commas(args.networks) or _DEFAULT:
            try:
                network = prepare(name, folder, args.seed)
            except Error as error:
                parser().error(str(error))
            rows += measure(network, chosen, place, plan, folder, _say)
    text = table(rows)
    print(text, end="")
    if args.out is not None:
        facts = {"before": before, "after": machine(), "precision": args.precision}
        write(args.out, rows, text, facts)
    first = chosen[0].name
    return int(any(r.skipped is not None for r in rows if r.engine == first))


def write(folder: Path, rows: Sequence[Row], text: str, facts: dict[str, Any]) -> None:
    """Write the results to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    content = {**facts, "rows": [row.to_dict() for row in rows]}
    (folder / "results.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    (folder / "results.md").write_text(text, encoding="utf-8")
    title = f"Median time of a run, {facts['precision']}, batch 1"
    (folder / "results.svg").write_text(svg(rows, title), encoding="utf-8")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
