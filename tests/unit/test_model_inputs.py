from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tflite_vk.analysis.model_inputs import (
    ImageScale,
    InputError,
    RandomInputs,
    fit_array,
    read_input,
)
from tflite_vk.dtypes import DType
from tflite_vk.frontend.flatbuffer import read_model
from tflite_vk.ir.attributes import (
    GatherAttributes,
    OneHotAttributes,
    ReverseSequenceAttributes,
)
from tflite_vk.ir.graph import Graph, Quantization, Tensor
from tflite_vk.testing.model_writer import ModelWriter


def graph_of(writer: ModelWriter) -> Graph:
    return read_model(writer.build()).subgraphs[0]


def tensor(
    shape: tuple[int, ...],
    dtype: DType = DType.FLOAT32,
    quantization: Quantization | None = None,
    signature: tuple[int, ...] | None = None,
) -> Tensor:
    return Tensor(0, "x", shape, dtype, quantization=quantization, shape_signature=signature)


def test_random_values_stay_in_their_range_and_repeat() -> None:
    w = ModelWriter()
    x = w.input((50, 4), "x")
    i8 = w.input((400,), "i8", DType.INT8, Quantization((0.1,), (3,)))
    i32 = w.input((400,), "i32", DType.INT32)
    flag = w.input((64,), "flag", DType.BOOL)
    w.output(x, i8, i32, flag)
    graph = graph_of(w)
    first = RandomInputs(seed=7).draw(graph)
    again = RandomInputs(seed=7).draw(graph)
    assert {t: v.tobytes() for t, v in first.items()} == {t: v.tobytes() for t, v in again.items()}
    assert first[x].dtype == np.float32
    assert -1 <= first[x].min() < -0.5 < 0.5 < first[x].max() <= 1
    assert first[i8].min() < -100 < 100 < first[i8].max()
    assert -50 <= first[i32].min() < -20 < 20 < first[i32].max() <= 50
    assert set(first[flag].tolist()) == {True, False}
    assert not np.array_equal(first[x], RandomInputs(seed=8).draw(graph)[x])


def test_range_of_one_input() -> None:
    w = ModelWriter()
    x, n = w.input((99,), "x"), w.input((99,), "n", DType.INT32)
    w.output(x, n)
    drawn = RandomInputs(ranges={"x": (5, 6), "n": (2, 3)}).draw(graph_of(w))
    assert 5 <= drawn[x].min() <= drawn[x].max() <= 6
    assert set(drawn[n].tolist()) == {2, 3}


def test_indices_stay_inside_what_they_index() -> None:
    w = ModelWriter()
    table = w.input((5, 3), "table")
    rows = w.input((100,), "rows", DType.INT32)
    w.output(w.op("GATHER", [table, rows], [(100, 3)], GatherAttributes(axis=0)))
    assert set(RandomInputs().draw(graph_of(w))[rows].tolist()) == {0, 1, 2, 3, 4}


def test_indices_are_seen_through_a_reshape() -> None:
    w = ModelWriter()
    table = w.input((4, 3), "table")
    rows = w.input((10, 10), "rows", DType.INT32)
    flat = w.op("RESHAPE", [rows, w.const(np.array([100], np.int32))], [((100,), DType.INT32)])
    w.output(w.op("GATHER", [table, flat], [(100, 3)], GatherAttributes(axis=0)))
    assert RandomInputs().draw(graph_of(w))[rows].max() == 3


def test_one_hot_depth_limits_its_indices() -> None:
    w = ModelWriter()
    i = w.input((50,), "i", DType.INT32)
    depth = w.const(np.array(3, np.int32))
    on, off = w.const(np.float32(1)), w.const(np.float32(0))
    w.output(w.op("ONE_HOT", [i, depth, on, off], [(50, 3)], OneHotAttributes(axis=-1)))
    assert set(RandomInputs().draw(graph_of(w))[i].tolist()) == {0, 1, 2}


def test_strings_have_no_random_values() -> None:
    w = ModelWriter()
    w.output(w.input((1,), "text", DType.STRING))
    with pytest.raises(InputError, match="^input 'text' is STRING, which has no random values$"):
        RandomInputs().draw(graph_of(w))


def test_arrays_are_fitted() -> None:
    x = tensor((1, 2, 3))
    assert fit_array(np.zeros((2, 3), np.float64), x, "f").shape == (1, 2, 3)
    assert fit_array(np.zeros((1, 2, 3), np.int32), x, "f").dtype == np.float32
    dynamic = tensor((1, 2), signature=(-1, 2))
    assert fit_array(np.zeros((7, 2), np.float32), dynamic, "f").shape == (7, 2)
    small = fit_array(np.array([3, 4], np.int64), tensor((2,), DType.INT8), "f")
    assert small.dtype == np.int8


def test_arrays_that_do_not_fit() -> None:
    with pytest.raises(InputError, match=r"^f: shape \[3\], input 'x' takes \[1, 2, 3\]$"):
        fit_array(np.zeros(3, np.float32), tensor((1, 2, 3)), "f")
    with pytest.raises(InputError, match="^f: holds float32, input 'x' takes int8$"):
        fit_array(np.zeros(2, np.float32), tensor((2,), DType.INT8), "f")
    with pytest.raises(InputError, match="^f: holds int32, input 'x' takes int8$"):
        fit_array(np.array([300, 0], np.int32), tensor((2,), DType.INT8), "f")
    with pytest.raises(InputError, match="^f: holds complex128, input 'x' takes float32$"):
        fit_array(np.zeros(2, complex), tensor((2,)), "f")


def test_files_that_can_not_be_read(tmp_path: Path) -> None:
    missing = tmp_path / "x.npy"
    with pytest.raises(InputError, match=r"x\.npy: no such file$"):
        read_input(missing, tensor((2,)))
    missing.write_bytes(b"\x93NUMPY\x01\x00nonsense")
    with pytest.raises(InputError, match=r"x\.npy: can't read the array: "):
        read_input(missing, tensor((2,)))
    np.save(missing, np.array([{}], object), allow_pickle=True)
    with pytest.raises(InputError, match=r"x\.npy: can't read the array: Object arrays"):
        read_input(missing, tensor((1,)))
    other = tmp_path / "x.wav"
    other.write_bytes(b"")
    with pytest.raises(InputError, match=r"x\.wav: not a kind of file that is read here \(\.npy,"):
        read_input(other, tensor((2,)))


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    image = pytest.importorskip("PIL.Image")
    pixels = np.zeros((2, 4, 3), np.uint8)
    pixels[:, :, 0], pixels[:, :, 1] = 255, 51
    path = tmp_path / "x.png"
    image.fromarray(pixels).save(path)
    return path


def test_picture_for_a_float_input(picture: Path) -> None:
    value = read_input(picture, tensor((1, 3, 5, 3)))
    assert value.shape == (1, 3, 5, 3)
    assert value.dtype == np.float32
    np.testing.assert_allclose(value[0, 1, 2], [1.0, -0.6, -1.0], atol=1e-6)
    scaled = read_input(picture, tensor((1, 3, 5, 3)), ImageScale(mean=0, std=255))
    np.testing.assert_allclose(scaled[0, 0, 0], [1.0, 0.2, 0.0], atol=1e-6)


def test_picture_for_quantized_inputs(picture: Path) -> None:
    raw = read_input(picture, tensor((1, 2, 4, 3), DType.UINT8))
    assert raw[0, 0, 0].tolist() == [255, 51, 0]
    q = Quantization((1 / 128,), (5,))
    stored = read_input(picture, tensor((1, 2, 4, 3), DType.INT8, q))
    assert stored[0, 0, 0].tolist() == [127, round(-0.6 * 128) + 5, -123]


def test_picture_in_grey_and_without_a_batch(picture: Path) -> None:
    assert read_input(picture, tensor((4, 4, 1))).shape == (4, 4, 1)
    assert read_input(picture, tensor((1, 4, 4, 4), DType.UINT8))[0, 0, 0, 3] == 255


def test_pictures_that_fit_nothing(picture: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"can't fill input 'x' of shape \[1, 10\]"):
        read_input(picture, tensor((1, 10)))
    with pytest.raises(InputError, match=r"can't fill input 'x' of shape \[2, 4, 4, 3\]"):
        read_input(picture, tensor((2, 4, 4, 3)))
    with pytest.raises(InputError, match="can't fill input 'x' of type INT32"):
        read_input(picture, tensor((1, 4, 4, 3), DType.INT32))
    broken = tmp_path / "broken.png"
    broken.write_bytes(picture.read_bytes()[:20])
    with pytest.raises(InputError, match=r"broken\.png: can't read the picture: "):
        read_input(broken, tensor((1, 4, 4, 3)))


def test_scattered_indices_and_lengths_stay_inside() -> None:
    w = ModelWriter()
    indices = w.input((40, 1), "indices", DType.INT32)
    updates = w.input((40, 2), "updates")
    shape = w.const(np.array([3, 2], np.int32))
    w.output(w.op("SCATTER_ND", [indices, updates, shape], [(3, 2)]))
    x = w.input((4, 30), "x")
    lengths = w.input((30,), "lengths", DType.INT32)
    options = ReverseSequenceAttributes(seq_dim=0, batch_dim=1)
    w.output(w.op("REVERSE_SEQUENCE", [x, lengths], [(4, 30)], options))
    drawn = RandomInputs().draw(graph_of(w))
    assert set(drawn[indices].reshape(-1).tolist()) == {0, 1, 2}
    assert drawn[lengths].min() >= 0
    assert drawn[lengths].max() == 4
