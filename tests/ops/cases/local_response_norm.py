"""LOCAL_RESPONSE_NORMALIZATION."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.support.case import Array, Case
from tflite_vk.ir.attributes import LocalResponseNormAttributes
from tflite_vk.testing.model_writer import ModelWriter


def _norm(
    shape: tuple[int, ...], radius: int, bias: float, alpha: float, beta: float
) -> Callable[[ModelWriter], None]:
    a = LocalResponseNormAttributes(radius=radius, bias=bias, alpha=alpha, beta=beta)

    def build(w: ModelWriter) -> None:
        w.output(w.op("LOCAL_RESPONSE_NORMALIZATION", [w.input(shape)], [shape], a))

    return build


def _expected(
    radius: int, bias: float, alpha: float, beta: float
) -> Callable[[Array], list[Array]]:
    def expected(x: Array) -> list[Array]:
        squares = x.astype(np.float64) ** 2
        y = np.empty(x.shape)
        for c in range(x.shape[-1]):
            near = squares[..., max(0, c - radius) : c + radius + 1].sum(-1)
            y[..., c] = x[..., c] * (bias + alpha * near) ** -beta
        return [y.astype(np.float32)]

    return expected


def _case(
    name: str,
    shape: tuple[int, ...],
    radius: int,
    bias: float,
    alpha: float,
    beta: float,
    **values: float,
) -> Case:
    return Case(
        f"LOCAL_RESPONSE_NORMALIZATION_{name}",
        _norm(shape, radius, bias, alpha, beta),
        expected=_expected(radius, bias, alpha, beta),
        why="LiteRT's reference kernel leaves out the last channel in reach, its default one doesn't",
        **values,
    )


CASES = [
    _case(f"{'x'.join(map(str, shape))}_r{radius}", shape, radius, 1.0, 0.5, 0.75)
    for shape in ((1, 1, 1, 6), (2, 3, 5, 7), (1, 4, 4, 37))
    for radius in (0, 1, 2, 5, 20, 1000)
]
CASES += [
    _case("beta_half", (1, 3, 3, 9), 2, 2.0, 1.5, 0.5),
    _case("large", (1, 3, 3, 9), 2, 1.0, 1e-4, 0.75, low=-1e4, high=1e4),
]
