"""Custom TFLite_Detection_PostProcess: boxes out of anchors, then fast or regular suppression."""

from __future__ import annotations

from collections.abc import Sequence

from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import DetectionPostProcessAttributes
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.layout import pack
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.launch import fold
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.registry import register
from tflite_vk.program import float_word
from tflite_vk.shape import Shape, vectors_per_row

_LOCAL_SIZE = 128
_SOFTWARE_LOCAL_SIZE = 16


def _attributes(node: Node) -> DetectionPostProcessAttributes:
    assert isinstance(node.attributes, DetectionPostProcessAttributes)
    return node.attributes


@register
class DetectionPostProcess(Operator):
    """TFLite_Detection_PostProcess.

    Source: tflite/kernels/detection_postprocess.cc, which computes boxes in double and leaves
    slots without a detection as they were under fast suppression; here they are zero.
    """

    versions = {"TFLite_Detection_PostProcess": 1}
    custom = True
    anchor_dtypes = frozenset({DType.FLOAT32})
    notes = "constant anchors; fast and regular suppression"
    differs = dict.fromkeys(
        versions, "slots without a detection are zero: TFLite leaves in them what was there before"
    )

    def check(self, node: Node, graph: Graph) -> str | None:
        a = _attributes(node)
        anchors = graph.input(node, 2)
        if any(graph.input(node, i).is_const for i in range(2)):
            return "one of its inputs is a constant"
        if anchors.data is None or anchors.dtype not in self.anchor_dtypes:
            kind = "run-time" if anchors.data is None else "constant"
            names = " or ".join(sorted(t.name for t in self.anchor_dtypes))
            return f"anchors are {kind} {anchors.dtype.name} (supported: constant {names})"
        if not 0 < a.nms_iou_threshold <= 1:
            return f"nms_iou_threshold is {a.nms_iou_threshold} (supported: above 0, up to 1)"
        if a.use_regular_nms and a.max_classes_per_detection != 1:
            return (
                f"max_classes_per_detection is {a.max_classes_per_detection} with use_regular_nms "
                "(supported: 1)"
            )
        if a.use_regular_nms and min(a.detections_per_class, a.max_detections) < 1:
            return f"detections_per_class is {a.detections_per_class} (supported: 1 and more)"
        return None

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape]:
        a = _attributes(node)
        boxes, scores, anchors = (graph.input(node, i).shape for i in range(3))
        if len(boxes) != 3 or boxes[0] != 1 or boxes[2] < 4 or anchors != (boxes[1], 4):
            raise ValueError(f"boxes {list(boxes)} and anchors {list(anchors)} don't fit")
        if len(scores) != 3 or scores[:2] != boxes[:2]:
            raise ValueError(f"scores {list(scores)} don't fit boxes {list(boxes)}")
        if a.num_classes < 1 or scores[2] - a.num_classes not in (0, 1):
            raise ValueError(f"{scores[2]} scores of each box for {a.num_classes} classes")
        if a.max_detections < 0 or a.max_classes_per_detection < 1:
            raise ValueError(
                f"max_detections is {a.max_detections}, max_classes_per_detection "
                f"{a.max_classes_per_detection}"
            )
        slots = a.max_detections * a.max_classes_per_detection
        return [(1, slots, 4), (1, slots), (1, slots), (1,)]

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        a = _attributes(node)
        encodings, scores, anchors = (ctx.graph.input(node, i) for i in range(3))
        assert anchors.data is not None
        num_boxes = encodings.shape[1]
        score_groups, offset = vectors_per_row(scores.shape), scores.shape[2] - a.num_classes
        boxes = ctx.temporary(4 * num_boxes, "boxes")
        scale = (a.y_scale, a.x_scale, a.h_scale, a.w_scale)
        ctx.dispatch_flat(
            node,
            ctx.variant("detection_boxes"),
            [ctx.buffer(encodings.id), ctx.constant(pack(anchors.data, "f32"), "anchors"), boxes],
            invocations=num_boxes,
            push=(
                num_boxes,
                vectors_per_row(encodings.shape),
                *(0, 0),
                *(float_word(s) for s in scale),
            ),
        )
        is_fast = int(not a.use_regular_nms)
        lists = 1 if is_fast else a.num_classes
        limit = a.max_detections if is_fast else min(a.detections_per_class, a.max_detections)
        lists_buffer = ctx.temporary(lists * limit, "lists of boxes")
        size = _SOFTWARE_LOCAL_SIZE if ctx.device.is_software else _LOCAL_SIZE
        ctx.dispatch(
            node,
            ctx.variant("detection_nms"),
            [ctx.buffer(scores.id), boxes, ctx.temporary(lists * num_boxes, "keys"), lists_buffer],
            groups=fold(lists, ctx.limits),
            spec=(size, 1, 1, is_fast),
            push=(
                lists,
                num_boxes,
                score_groups,
                offset,
                a.num_classes,
                limit,
                float_word(a.nms_score_threshold),
                float_word(a.nms_iou_threshold),
            ),
        )
        ctx.dispatch(
            node,
            ctx.variant("detection_output"),
            [
                ctx.buffer(scores.id),
                boxes,
                lists_buffer,
                ctx.temporary(2 * a.max_detections, "merged list"),
                ctx.temporary(lists, "heads"),
                *(ctx.buffer(t) for t in node.outputs),
            ],
            groups=(1, 1, 1),
            spec=(size, 1, 1, is_fast),
            push=(
                lists,
                score_groups,
                offset,
                a.num_classes,
                limit,
                a.max_detections,
                a.max_classes_per_detection,
            ),
        )
