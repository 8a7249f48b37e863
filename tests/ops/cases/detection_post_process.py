"""TFLite_Detection_PostProcess, fast and regular."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.support.case import Array, Case
from tests.support.half import to_half
from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import DetectionPostProcessAttributes
from tflite_vk.ir.graph import Quantization
from tflite_vk.testing.model_writer import ModelWriter


def _attributes(
    detections: int,
    classes: int,
    *,
    of_each: int = 1,
    regular: bool = False,
    per_class: int = 100,
    score: float = 0.0,
    overlap: float = 0.5,
) -> DetectionPostProcessAttributes:
    return DetectionPostProcessAttributes(
        max_detections=detections,
        max_classes_per_detection=of_each,
        detections_per_class=per_class,
        use_regular_nms=regular,
        nms_score_threshold=score,
        nms_iou_threshold=overlap,
        num_classes=classes,
        y_scale=10.0,
        x_scale=10.0,
        h_scale=5.0,
        w_scale=5.0,
    )


def _anchors(boxes: int) -> Array:
    rng = np.random.default_rng(31)
    centres, sizes = rng.uniform(0.2, 0.8, (boxes, 2)), rng.uniform(0.1, 0.5, (boxes, 2))
    return to_half(np.concatenate([centres, sizes], 1))


def _build(
    boxes: int, columns: int, a: DetectionPostProcessAttributes
) -> Callable[[ModelWriter], None]:
    def build(w: ModelWriter) -> None:
        slots = a.max_detections * a.max_classes_per_detection
        inputs = [w.input((1, boxes, 4)), w.input((1, boxes, columns)), w.const(_anchors(boxes))]
        outs = [(1, slots, 4), (1, slots), (1, slots), (1,)]
        w.output(*w.multi_op("TFLite_Detection_PostProcess", inputs, outs, a))

    return build


def _quantized(
    boxes: int, columns: int, a: DetectionPostProcessAttributes, *, quantized_scores: bool = True
) -> Callable[[ModelWriter], None]:
    def build(w: ModelWriter) -> None:
        slots = a.max_detections * a.max_classes_per_detection
        anchors = np.random.default_rng(5).integers(40, 200, (boxes, 4)).astype(np.uint8)
        scores = (1, boxes, columns)
        inputs = [
            w.input((1, boxes, 4), dtype=DType.UINT8, quantization=Quantization((0.07,), (131,))),
            w.input(scores, dtype=DType.UINT8, quantization=Quantization((1 / 256,), (3,)))
            if quantized_scores
            else w.input(scores),
            w.const(anchors, quantization=Quantization((0.004,), (2,))),
        ]
        outs = [(1, slots, 4), (1, slots), (1, slots), (1,)]
        w.output(*w.multi_op("TFLite_Detection_PostProcess", inputs, outs, a))

    return build


def _few_scores(boxes: int, columns: int) -> Callable[[np.random.Generator], dict[int, Array]]:
    return lambda rng: {1: (rng.integers(0, 4, (1, boxes, columns)) / 4).astype(np.float32)}


CASES = [
    Case("Detection_fast", _build(37, 6, _attributes(5, 5))),
    Case("Detection_fast_no_background", _build(37, 5, _attributes(5, 5))),
    Case("Detection_fast_of_each_3", _build(113, 8, _attributes(7, 7, of_each=3))),
    Case("Detection_fast_ties", _build(113, 5, _attributes(10, 5)), inputs=_few_scores(113, 5)),
    Case("Detection_fast_1917", _build(1917, 91, _attributes(10, 90, overlap=0.6))),
    Case("Detection_regular", _build(37, 6, _attributes(8, 5, regular=True))),
    Case(
        "Detection_regular_per_class_2",
        _build(113, 7, _attributes(10, 6, regular=True, per_class=2)),
    ),
    Case(
        "Detection_regular_ties",
        _build(113, 5, _attributes(20, 5, regular=True)),
        inputs=_few_scores(113, 5),
    ),
    Case("Detection_regular_threshold", _build(37, 6, _attributes(40, 5, regular=True, score=1.6))),
    Case(
        "Detection_regular_many_classes",
        _build(50, 200, _attributes(30, 200, regular=True, per_class=5)),
    ),
    Case("Detection_uint8", _quantized(60, 6, _attributes(9, 5))),
    Case("Detection_uint8_regular", _quantized(60, 6, _attributes(9, 5, regular=True))),
    Case(
        "Detection_bad_overlap",
        _build(37, 6, _attributes(5, 5, overlap=1.5)),
        declined="nms_iou_threshold",
    ),
]


def _fast_threshold(encodings: Array, scores: Array) -> list[Array]:
    """Greedy suppression of the boxes whose best class reaches 1.9; slots left over are zero."""
    anchors = _anchors(37).astype(np.float64)
    e = encodings[0].astype(np.float64)
    centre = e[:, :2] / 10 * anchors[:, 2:] + anchors[:, :2]
    half = 0.5 * np.exp(e[:, 2:] / 5) * anchors[:, 2:]
    boxes = np.concatenate([centre - half, centre + half], 1)
    best, label = scores[0, :, 1:].max(1), scores[0, :, 1:].argmax(1)
    kept: list[int] = []
    for i in np.argsort(-best, kind="stable"):
        if best[i] >= 1.9 and all(_overlap(boxes[i], boxes[k]) <= 0.5 for k in kept):
            kept.append(int(i))
    kept = kept[:30]
    y_boxes, y_classes, y_scores = (np.zeros(s, np.float32) for s in ((1, 30, 4), (1, 30), (1, 30)))
    for slot, i in enumerate(kept):
        y_boxes[0, slot], y_classes[0, slot], y_scores[0, slot] = boxes[i], label[i], best[i]
    return [y_boxes, y_classes, y_scores, np.array([len(kept)], np.float32)]


def _overlap(a: Array, b: Array) -> float:
    extent = np.maximum(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), 0)
    area = float(extent[0] * extent[1])
    return area / float((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - area)


CASES += [
    Case(
        "Detection_fast_threshold",
        _build(37, 6, _attributes(30, 5, score=1.9)),
        expected=_fast_threshold,
        why="LiteRT leaves the slots without a detection as they were",
    )
]
