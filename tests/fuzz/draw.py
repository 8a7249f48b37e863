"""Graph number `index` of a seed: always the same one."""

from __future__ import annotations

import numpy as np

from tests.fuzz.builder import Builder, Graph
from tests.fuzz.eager import RefusedError
from tests.fuzz.generators import entries

MOST_ATTEMPTS = 200


def draw(seed: int, index: int, group: str = "float") -> Graph:
    """A graph of 2 to 15 operators, those that make values fit each other included."""
    rng = np.random.default_rng([seed, index, group == "quantized"])
    table = entries(group)
    weights = np.array([e.weight for e in table])
    weights /= weights.sum()
    while True:
        g = Builder(rng, group)
        wanted = int(rng.integers(2, 13))
        for _ in range(MOST_ATTEMPTS):
            if len(g.writer.operators) >= wanted:
                break
            try:
                table[int(rng.choice(len(table), p=weights))].run(g)
            except RefusedError:
                continue
        if len(g.writer.operators) >= 2:
            return g.finish()
