"""Pools: every kind of window, padding and stride, whole images, and MediaPipe's pool and unpool."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.support.case import Array, Case
from tflite_vk.ir.attributes import Activation, Padding, Pool2DAttributes
from tflite_vk.testing.model_writer import ModelWriter

LOWEST = np.finfo(np.float32).min
Pair = tuple[int, int]


def _out_size(size: int, window: int, stride: int, padding: Padding) -> int:
    return -(-size // stride) if padding == "SAME" else (size - window) // stride + 1


def _pad(size: int, window: int, stride: int, out: int) -> int:
    return max(0, (out - 1) * stride + window - size) // 2


def _attributes(
    window: Pair, stride: Pair, padding: Padding, activation: Activation = "NONE"
) -> Pool2DAttributes:
    return Pool2DAttributes(
        fused_activation_function=activation,
        padding=padding,
        stride_w=stride[1],
        stride_h=stride[0],
        filter_width=window[1],
        filter_height=window[0],
    )


def _pool(op: str, shape: tuple[int, ...], a: Pool2DAttributes) -> Callable[[ModelWriter], None]:
    def build(w: ModelWriter) -> None:
        n, h, wide, c = shape
        out = (
            n,
            _out_size(h, a.filter_height, a.stride_h, a.padding),
            _out_size(wide, a.filter_width, a.stride_w, a.padding),
            c,
        )
        x = w.input(shape)
        if op == "MaxPoolingWithArgmax2D":
            w.output(*w.multi_op(op, [x], [out, out], a))
        else:
            w.output(w.op(op, [x], [out], a))

    return build


_SHAPES: tuple[tuple[tuple[int, ...], Pair, Pair], ...] = (
    ((1, 5, 5, 3), (3, 3), (1, 1)),
    ((1, 5, 5, 3), (3, 3), (2, 2)),
    ((2, 7, 6, 5), (2, 2), (2, 2)),
    ((3, 8, 9, 4), (2, 3), (3, 1)),
    ((1, 17, 13, 37), (1, 1), (4, 3)),
    ((5, 6, 1, 1), (4, 1), (1, 1)),
    ((1, 10, 11, 7), (5, 4), (7, 6)),
)


def _chain(w: ModelWriter) -> None:
    """B4, B5: the pool's input and output are both outputs; more operators stand behind."""
    x = w.input((1, 6, 6, 5))
    relu = w.op("RELU", [x], [(1, 6, 6, 5)])
    pooled = w.op("MAX_POOL_2D", [relu], [(1, 6, 6, 5)], _attributes((3, 3), (1, 1), "SAME"))
    added = w.op("ADD", [pooled, relu], [(1, 6, 6, 5)])
    w.output(relu, pooled, w.op("TANH", [added], [(1, 6, 6, 5)]))


def _infinities() -> Array:
    x = np.full((1, 4, 4, 3), -np.inf, np.float32)
    x[0, 0, 0] = 1.0
    x[0, 3, 3, 1] = np.inf
    return x


CASES = [
    Case(
        f"{op}_{'x'.join(map(str, shape))}_w{window[0]}x{window[1]}_s{stride[0]}x{stride[1]}_{padding}",
        _pool(op, shape, _attributes(window, stride, padding)),
    )
    for op in ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D")
    for shape, window, stride in _SHAPES
    for padding in ("SAME", "VALID")
]
CASES += [
    Case(
        f"{op}_{activation}",
        _pool(op, (2, 6, 5, 6), _attributes((3, 3), (1, 1), "SAME", activation)),
    )
    for op in ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D")
    for activation in ("RELU", "RELU6", "RELU_N1_TO_1")
]
CASES += [
    Case(
        f"{op}_whole_image_{h}x{w}_{n}_{c}_{padding}",
        _pool(op, (n, h, w, c), _attributes((h, w), (h, w), padding)),
    )
    for op in ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D")
    for n, h, w, c, padding in (
        (1, 7, 7, 113, "VALID"),
        (3, 9, 5, 6, "VALID"),
        (2, 7, 8, 5, "SAME"),
    )
]
CASES += [
    Case(
        f"C22_AVERAGE_POOL_2D_3x3_s{stride}_SAME",
        _pool("AVERAGE_POOL_2D", (1, 5, 5, 3), _attributes((3, 3), (stride, stride), "SAME")),
        low=5.0,
        high=25.0,
    )
    for stride in (1, 2)
]
CASES += [
    Case(
        "E2_AVERAGE_POOL_2D_256x256",
        _pool("AVERAGE_POOL_2D", (1, 256, 256, 5), _attributes((256, 256), (1, 1), "VALID")),
        low=1.0,
        high=9.0,
    ),
    Case(
        "AVERAGE_POOL_2D_whole_image_in_slices",
        _pool("AVERAGE_POOL_2D", (1, 300, 301, 3), _attributes((300, 300), (1, 2), "VALID")),
        expected=lambda x: [
            x[:, :, :300].astype(np.float64).mean((1, 2), keepdims=True).astype(np.float32)
        ],
        low=0.0,
        rtol=2e-6,
        why="the reference adds 90,000 values in a row in float32",
    ),
    Case(
        "J10_AVERAGE_POOL_2D_20x20_s20",
        _pool("AVERAGE_POOL_2D", (1, 40, 60, 5), _attributes((20, 20), (20, 20), "VALID")),
    ),
    Case(
        "MAX_POOL_2D_window_past_image_SAME",
        _pool("MAX_POOL_2D", (2, 5, 7, 6), _attributes((13, 11), (5, 7), "SAME")),
    ),
    Case(
        "MAX_POOL_2D_window_past_image_SAME_s2",
        _pool("MAX_POOL_2D", (2, 5, 7, 6), _attributes((13, 11), (2, 2), "SAME")),
    ),
    Case(
        "MAX_POOL_2D_empty_batch",
        _pool("MAX_POOL_2D", (0, 5, 7, 6), _attributes((2, 2), (2, 2), "SAME")),
    ),
    Case(
        "MAX_POOL_2D_infinities",
        _pool("MAX_POOL_2D", (1, 4, 4, 3), _attributes((2, 2), (2, 2), "VALID")),
        inputs=lambda rng: {0: _infinities()},
        expected=lambda x: [np.maximum(x.reshape(1, 2, 2, 2, 2, 3).max((2, 4)), LOWEST)],
        why="LiteRT clamps +inf to the largest float, although no activation asks for it",
    ),
    Case(
        "I3_MAX_POOL_2D_70000_rows",
        _pool("MAX_POOL_2D", (1, 70000, 3, 5), _attributes((2, 2), (1, 2), "SAME")),
    ),
    Case("MAX_POOL_2D_chain_fuses", _chain),
]


# Custom operators: LiteRT has no kernel for them, so NumPy, written from MediaPipe's sources.


def _argmax_pool(a: Pool2DAttributes) -> Callable[[Array], list[Array]]:
    def expected(x: Array) -> list[Array]:
        n, h, w, c = x.shape
        oh = _out_size(h, a.filter_height, a.stride_h, a.padding)
        ow = _out_size(w, a.filter_width, a.stride_w, a.padding)
        top = _pad(h, a.filter_height, a.stride_h, oh)
        left = _pad(w, a.filter_width, a.stride_w, ow)
        y = np.full((n, oh, ow, c), LOWEST, np.float32)
        index = np.zeros((n, oh, ow, c), np.float32)
        for oy, ox in np.ndindex(oh, ow):
            for fy, fx in np.ndindex(a.filter_height, a.filter_width):
                iy, ix = oy * a.stride_h - top + fy, ox * a.stride_w - left + fx
                if 0 <= iy < h and 0 <= ix < w:
                    larger = x[:, iy, ix] > y[:, oy, ox]
                    y[:, oy, ox] = np.where(larger, x[:, iy, ix], y[:, oy, ox])
                    index[:, oy, ox] = np.where(larger, fy * a.filter_width + fx, index[:, oy, ox])
        return [y, index + np.float32(0.1)]

    return expected


def _unpool(a: Pool2DAttributes) -> Callable[[Array, Array], list[Array]]:
    def expected(x: Array, index: Array) -> list[Array]:
        n, h, w, c = x.shape
        oh, ow = h * a.filter_height, w * a.filter_width
        top = _pad(oh, a.filter_height, a.stride_h, h)
        left = _pad(ow, a.filter_width, a.stride_w, w)
        y = np.zeros((n, oh, ow, c), np.float32)
        for b, iy, ix, k in np.ndindex(x.shape):
            fy, fx = divmod(int(index[b, iy, ix, k]), a.filter_width)
            oy, ox = iy * a.stride_h - top + fy, ix * a.stride_w - left + fx
            if 0 <= oy < oh and 0 <= ox < ow:
                y[b, oy, ox, k] = x[b, iy, ix, k]
        return [y]

    return expected


def _build_unpool(shape: tuple[int, ...], a: Pool2DAttributes) -> Callable[[ModelWriter], None]:
    def build(w: ModelWriter) -> None:
        n, h, wide, c = shape
        out = (n, h * a.filter_height, wide * a.filter_width, c)
        w.output(w.op("MaxUnpooling2D", [w.input(shape), w.input(shape)], [out], a))

    return build


def _taps(
    shape: tuple[int, ...], a: Pool2DAttributes
) -> Callable[[np.random.Generator], dict[int, Array]]:
    def inputs(rng: np.random.Generator) -> dict[int, Array]:
        taps = rng.integers(0, a.filter_height * a.filter_width, shape)
        return {1: (taps + 0.1).astype(np.float32)}

    return inputs


_CUSTOM: tuple[tuple[tuple[int, ...], Pool2DAttributes], ...] = (
    ((1, 6, 6, 4), _attributes((2, 2), (2, 2), "SAME")),
    ((2, 7, 5, 3), _attributes((2, 2), (2, 2), "SAME")),
    ((2, 7, 9, 5), _attributes((3, 2), (2, 1), "VALID")),
    ((1, 5, 4, 6), _attributes((3, 3), (1, 1), "SAME")),
)

CASES += [
    Case(
        f"MaxPoolingWithArgmax2D_{i}",
        _pool("MaxPoolingWithArgmax2D", shape, a),
        expected=_argmax_pool(a),
        why="custom operator of MediaPipe",
    )
    for i, (shape, a) in enumerate(_CUSTOM)
]
CASES += [
    Case(
        "MaxPoolingWithArgmax2D_ties",
        _pool("MaxPoolingWithArgmax2D", (1, 6, 6, 5), _attributes((3, 3), (2, 2), "SAME")),
        inputs=lambda rng: {0: rng.integers(0, 2, (1, 6, 6, 5)).astype(np.float32)},
        expected=_argmax_pool(_attributes((3, 3), (2, 2), "SAME")),
        why="custom operator of MediaPipe",
    ),
]
CASES += [
    Case(
        f"MaxUnpooling2D_{i}",
        _build_unpool(shape, a),
        inputs=_taps(shape, a),
        expected=_unpool(a),
        exact=True,
        why="custom operator of MediaPipe",
    )
    for i, (shape, a) in enumerate(_CUSTOM)
]
