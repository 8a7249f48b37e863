"""The differential fuzzer: random graphs on a device against LiteRT's reference kernels.

    python -m tests.fuzz --graphs 5000 --seed 1 [--quantized] [--device ...] [--jobs 2]

Graph INDEX of a seed is always the same: `--first INDEX --graphs 1` runs it again. What fails is
shrunk and saved into tests/fuzz/corpus, which test_corpus.py replays.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor

from tests.fuzz.campaign import Chunks, Count
from tests.fuzz.corpus import FOLDER

_CHUNK = 10


def main(arguments: list[str] | None = None) -> int:
    """Run a campaign; 1 where a graph failed."""
    args = _parser().parse_args(arguments)
    start = time.monotonic()
    total = Count()
    chunks = [
        range(i, min(i + _CHUNK, args.first + args.graphs))
        for i in range(args.first, args.first + args.graphs, _CHUNK)
    ]
    said = start
    for count in _counts(chunks, args):
        total.add(count)
        for line in (*count.faults, *count.oracle):
            print(line, flush=True)
        if time.monotonic() - said > 10:
            said = time.monotonic()
            rate = total.graphs / (said - start)
            left = (args.graphs - total.graphs) / rate
            text = f"{total.graphs} of {args.graphs} graphs, {rate:.1f}/s, {left / 60:.0f} min left"
            print(text, file=sys.stderr, flush=True)
    print(total.summary())
    print(f"{time.monotonic() - start:.0f} s")
    return 1 if total.faults or total.oracle else 0


def _counts(chunks: Iterable[range], args: argparse.Namespace) -> Iterator[Count]:
    work = Chunks(
        seed=args.seed,
        group="quantized" if args.quantized else "float",
        device=args.device,
        dispatcher=args.dispatcher,
        folder=None if args.no_save else FOLDER,
        trace=args.trace,
    )
    if args.jobs == 1:
        yield from map(work, chunks)
        return
    # Devices don't survive a fork.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(args.jobs, context) as pool:
        yield from pool.map(work, chunks)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m tests.fuzz", description=__doc__)
    parser.add_argument("--graphs", type=int, default=1000, help="how many (default: 1000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="index of the first graph")
    parser.add_argument("--quantized", action="store_true", help="int8 and uint8 graphs")
    parser.add_argument("--device", help="index or part of a name")
    # Its pipelines share a cache, which saves most of the time on a software driver.
    parser.add_argument("--dispatcher", default="vulkan", choices=("vulkan", "kompute", "auto"))
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--no-save", action="store_true", help="leave the corpus as it is")
    parser.add_argument("--trace", help="file that holds the present graph, one a process")
    return parser


if __name__ == "__main__":
    sys.exit(main())
