"""TFLite_Detection_PostProcess of uint8 encodings and scores.

TFLite makes reals of them and computes in float: `passes/dequantize_inputs.py` writes that down
before lowering, and the float family runs it.
"""

from __future__ import annotations

from tflite_vk.dtypes import DType
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.detection_post_process import DetectionPostProcess
from tflite_vk.ops.quantization import check_affine
from tflite_vk.ops.registry import register


@register
class QuantizedDetectionPostProcess(DetectionPostProcess):
    """Custom TFLite_Detection_PostProcess."""

    kind = "quantized"
    dtypes = frozenset({DType.UINT8, DType.FLOAT32})
    anchor_dtypes = frozenset({DType.UINT8, DType.FLOAT32})
    notes = "uint8, made real first, as in TFLite"

    def check(self, node: Node, graph: Graph) -> str | None:
        for position in range(3):
            tensor = graph.input(node, position)
            if tensor.dtype is DType.UINT8 and (
                reason := check_affine(tensor, f"input {position}")
            ):
                return reason
        return super().check(node, graph)

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        raise AssertionError("dequantize_inputs leaves no quantized input")
