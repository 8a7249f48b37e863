"""TRANSPOSE through shared memory, which a software driver would not choose by itself."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tflite_vk.frontend.flatbuffer import read_model
from tflite_vk.ops import transpose
from tflite_vk.ops.transpose_tiles import tiled_plane
from tflite_vk.runtime.device import Device
from tflite_vk.session import Session
from tflite_vk.testing.model_writer import ModelWriter

SHAPES = (
    (37, 113),
    (64, 129),
    (5, 200),
    (200, 5),
    (3, 33, 17),
    (2, 5, 7, 9),
    (2, 8, 12, 16),
    (1, 9, 1, 33),
    (2, 6, 3, 5, 8),
    (2, 5, 2, 6, 3, 7),
)


def _orders(rank: int) -> list[tuple[int, ...]]:
    every = list(itertools.permutations(range(rank)))
    return every if rank < 5 else every[:: len(every) // 15]


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: "x".join(map(str, s)))
def test_tiles(
    shape: tuple[int, ...], precision: str, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transpose, "gains_from_tiles", lambda device: True)
    w = ModelWriter()
    x = w.input(shape)
    orders = _orders(len(shape))
    for order in orders:
        result = tuple(shape[axis] for axis in order)
        w.output(w.op("TRANSPOSE", [x, w.const(np.array(order, np.int32))], [result]))
    graph = read_model(w.build()).subgraphs[0]
    session = Session(graph, device, precision=precision, guard_words=16)
    try:
        shaders = {d.kernel.shader for d in session.lowered.program.dispatches}
        assert any(s.startswith("transpose") for s in shaders)
        value = np.random.default_rng(1).integers(-99, 99, shape).astype(np.float32)
        outputs = session.allocate_outputs(graph.outputs)
        session.run({x: value}, outputs)
        assert session.executable.check_guards() == []
    finally:
        session.close()
    for order, tensor in zip(orders, graph.outputs, strict=True):
        assert np.array_equal(outputs[tensor], value.transpose(order)), order


def test_no_tiles_where_the_innermost_dimension_stays() -> None:
    assert tiled_plane((8, 16, 32), (1, 0, 2)) is None


def test_neighbours_become_one() -> None:
    plane = tiled_plane((2, 16, 8, 64), (0, 3, 1, 2))
    assert plane is not None
    assert (plane.rows, plane.columns) == (128, 64)
    assert plane.dims == ((2, 2048, 2048),)


def test_padding_keeps_neighbours_apart() -> None:
    plane = tiled_plane((2, 16, 7, 64), (0, 3, 1, 2))
    assert plane is not None
    assert (plane.rows, plane.columns) == (7, 64)


@pytest.mark.parametrize(
    ("rows", "columns", "tile"), [(99, 99, (32, 32)), (6, 999, (8, 128)), (999, 17, (32, 20))]
)
def test_tile_follows_the_shorter_side(rows: int, columns: int, tile: tuple[int, int]) -> None:
    plane = tiled_plane((rows, columns), (1, 0))
    assert plane is not None
    assert plane.tile == tile
