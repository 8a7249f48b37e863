"""tools/demo.py: what it makes of BlazeFace's outputs."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

import demo


def _outputs() -> tuple[demo.Floats, demo.Floats]:
    """Return outputs that see nothing."""
    return np.zeros((1, 896, 16), np.float32), np.full((1, 896, 1), -200.0, np.float32)


def test_anchors_are_cell_centres_in_layer_order() -> None:
    anchors = demo.anchors()
    assert anchors.shape == (896, 2)
    # 16 x 16 cells of 8 pixels with two anchors each, then 8 x 8 cells of 16 pixels with six
    np.testing.assert_array_equal(anchors[[0, 1, 2]], [[4, 4], [4, 4], [12, 4]])
    np.testing.assert_array_equal(anchors[32], [4, 12])
    np.testing.assert_array_equal(
        anchors[[511, 512, 517, 518]], [[124, 124], [8, 8], [8, 8], [24, 8]]
    )
    np.testing.assert_array_equal(anchors[895], [120, 120])


def test_nothing_above_the_limit_is_no_face() -> None:
    frame = demo.letterbox(Image.new("RGB", (128, 128)))
    assert demo.decode(*_outputs(), frame) == []


def test_decode_in_pixels_of_the_photograph() -> None:
    frame = demo.letterbox(Image.new("RGB", (512, 256)))  # black above and below: 128 pixels each
    regressors, logits = _outputs()
    regressors[0, 512] = [8, 32, 16, 16, *range(12)]  # centre at anchor (8, 8) + (8, 32)
    logits[0, 512] = 200.0
    (face,) = demo.decode(regressors, logits, frame)
    assert face.score == pytest.approx(1.0)
    # 4 pixels of the photograph for each of the square's: x 8..24, y 32..48 of 128
    np.testing.assert_allclose(face.box, [32, 0, 96, 64])
    np.testing.assert_allclose(face.keypoints[0], [32, -92])
    np.testing.assert_allclose(face.keypoints[5], [8 * 4 + 40, 8 * 4 + 44 - 128])


def test_boxes_that_overlap_are_one_face_weighted_by_score() -> None:
    frame = demo.letterbox(Image.new("RGB", (128, 128)))
    regressors, logits = _outputs()
    regressors[0, 512, :4] = [0, 0, 20, 20]
    regressors[0, 513, :4] = [4, 0, 20, 20]
    regressors[0, 895, :4] = [0, 0, 20, 20]
    logits[0, [512, 513, 895], 0] = [np.log(3.0), np.log(3.0), 1.0]  # 0.75, 0.75, 0.73
    first, second = demo.decode(regressors, logits, frame)
    np.testing.assert_allclose(first.box, [0, -2, 20, 18], atol=1e-5)
    np.testing.assert_allclose(second.box, [110, 110, 130, 130], atol=1e-5)


def test_letterbox_keeps_the_proportions() -> None:
    image = Image.new("RGB", (64, 256), "white")
    frame = demo.letterbox(image)
    assert frame.tensor.shape == (1, 128, 128, 3)
    assert frame.tensor.dtype == np.float32
    middle = frame.tensor[0, 64, :, 0]
    assert (middle[:47] == -1).all()
    assert (middle[49:79] == 1).all()
    assert (middle[81:] == -1).all()


def test_draw_leaves_the_photograph_alone() -> None:
    image = Image.new("RGB", (128, 128))
    box, points = np.array([30, 40, 90, 100], np.float32), np.full((6, 2), 60, np.float32)
    marked = demo.draw(image, [demo.Face(0.9, box, points)])
    assert image.getcolors() == [(128 * 128, (0, 0, 0))]
    assert marked.getpixel((30, 70)) == (0, 255, 0)
    assert marked.getpixel((60, 60)) == (255, 0, 0)
