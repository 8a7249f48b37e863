"""Custom Resampler: points inside, on the border, beyond it and nowhere; LiteRT has no kernel for it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.ops.cases.reshape import label
from tests.support.case import Array, Case
from tflite_vk.testing.model_writer import ModelWriter

Shape = tuple[int, ...]
WHY = "LiteRT has no kernel for it"


def _constant(shape: Shape) -> Array:
    """Values that float16 holds."""
    return (np.random.default_rng(1).integers(-64, 256, shape) / 64).astype(np.float32)


def _resampler(x: Shape, warp: Shape, const: int | None = None) -> Callable[[ModelWriter], None]:
    def build(w: ModelWriter) -> None:
        inputs = [
            w.const(_constant(s)) if i == const else w.input(s) for i, s in enumerate((x, warp))
        ]
        w.output(w.op("Resampler", inputs, [(*warp[:3], x[3])]))

    return build


def _followed(w: ModelWriter) -> None:
    x, warp = w.input((2, 4, 5, 3)), w.input((2, 3, 2, 2))
    y = w.op("Resampler", [x, warp], [(2, 3, 2, 3)])
    w.output(w.op("RELU", [y], [(2, 3, 2, 3)]))


def resample(x: Array, warp: Array) -> list[Array]:
    """By the definition, in float64: the four neighbours of each point, zero beyond the image."""
    _, height, width, channels = x.shape
    out = np.zeros((*warp.shape[:3], channels))
    for at in np.ndindex(*warp.shape[:3]):
        px, py = (float(v) for v in warp[at][:2])
        if not (-1 < px < width and -1 < py < height):
            continue
        left, top = int(np.floor(px)), int(np.floor(py))
        for row, by_row in ((top, top + 1 - py), (top + 1, py - top)):
            for column, by_column in ((left, left + 1 - px), (left + 1, px - left)):
                if 0 <= row < height and 0 <= column < width:
                    out[at] += by_row * by_column * x[at[0], row, column].astype(np.float64)
    return [out.astype(np.float32)]


def _with_const_image(shape: Shape) -> Callable[..., list[Array]]:
    return lambda warp: resample(_constant(shape), warp)


def _with_const_warp(shape: Shape) -> Callable[..., list[Array]]:
    return lambda x: resample(x, _constant(shape))


def _points(
    warp: Shape, size: tuple[int, int]
) -> Callable[[np.random.Generator], dict[int, Array]]:
    """Up to two pixels beyond each border, half of them whole numbers."""

    def inputs(rng: np.random.Generator) -> dict[int, Array]:
        at = rng.uniform(-2, np.array([size[1] + 1, size[0] + 1]), (*warp[:3], 2))
        at = np.where(rng.random(at.shape) < 0.5, np.rint(at), np.rint(at * 16) / 16)
        rest = rng.uniform(-9, 9, (*warp[:3], warp[3] - 2))
        return {1: np.concatenate([at, rest], -1).astype(np.float32)}

    return inputs


def _nowhere(rng: np.random.Generator) -> dict[int, Array]:
    values = [np.nan, np.inf, -np.inf, 1e9, -1e9, 3e38, -1.0, 5.0, 4.0, 0.0, -0.0, 2.5]
    x, y = np.meshgrid(values, values)
    return {1: np.stack([x, y], -1)[None].astype(np.float32)}


CASES = [
    Case(
        f"Resampler_{label(x)}_{label(warp)}",
        _resampler(x, warp),
        inputs=_points(warp, x[1:3]),
        expected=resample,
        why=WHY,
    )
    for x, warp in (
        ((1, 5, 4, 3), (1, 5, 4, 2)),
        ((2, 7, 5, 1), (2, 7, 5, 2)),
        ((3, 4, 6, 8), (3, 2, 9, 2)),
        ((2, 1, 1, 5), (2, 3, 3, 2)),
        ((1, 9, 3, 37), (1, 4, 2, 3)),
        ((2, 5, 5, 4), (2, 3, 1, 7)),
    )
]
CASES += [
    Case("Resampler_nowhere", _resampler((1, 5, 5, 3), (1, 12, 12, 2)), inputs=_nowhere, expected=resample, why=WHY),
    Case("Resampler_empty", _resampler((1, 5, 5, 3), (1, 0, 2, 2)), expected=resample, why=WHY),
    Case("Resampler_no_image", _resampler((1, 0, 5, 3), (1, 2, 2, 2)), expected=resample, why=WHY),
    Case("Resampler_constant_image", _resampler((1, 4, 5, 3), (1, 3, 3, 2), 0), low=-1, high=5,
         expected=_with_const_image((1, 4, 5, 3)), why=WHY),
    Case("Resampler_constant_warp", _resampler((2, 4, 5, 3), (2, 3, 3, 2), 1),
         expected=_with_const_warp((2, 3, 3, 2)), why=WHY),
    Case("Resampler_RELU", _followed, low=-1, high=4, why=WHY,
         expected=lambda x, warp: [np.maximum(resample(x, warp)[0], 0)]),
    Case("Resampler_other_batch", _resampler((1, 4, 5, 3), (2, 3, 3, 2)), declined="the same batch"),
    Case("Resampler_one_channel", _resampler((1, 4, 5, 3), (1, 3, 3, 1)), declined="two warp channels or more"),
]  # fmt: skip
