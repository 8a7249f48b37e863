"""ADD_N: the sum of any number of tensors of one shape."""

from __future__ import annotations

from collections.abc import Sequence

from tflite_vk.dtypes import DType
from tflite_vk.errors import ShaderError
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops.context import LoweringContext
from tflite_vk.ops.operator import Operator
from tflite_vk.ops.registry import register
from tflite_vk.shape import Shape


@register
class AddN(Operator):
    """ADD_N; reaches lowering as ADD, see passes/split_sums.py."""

    versions = {"ADD_N": 1}
    dtypes = frozenset({DType.FLOAT32, DType.INT32})
    ends_in_epilogue = True
    notes = "two inputs and more, constants among them; runs as ADD"

    def check(self, node: Node, graph: Graph) -> str | None:
        inputs = [graph.input(node, i) for i in range(len(node.inputs))]
        if all(t.is_const for t in inputs):
            return "all inputs are constants"
        dtype = graph.output(node).dtype
        for i, tensor in enumerate(inputs):
            if tensor.dtype is not dtype:
                return f"input {i} is {tensor.dtype.name}, the output {dtype.name} (must be equal)"
        return None

    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape]:
        shapes = [graph.input(node, i).shape for i in range(len(node.inputs))]
        for i, shape in enumerate(shapes):
            if shape != shapes[0]:
                raise ValueError(f"input {i} is {list(shape)}, input 0 {list(shapes[0])}")
        return [shapes[0]]

    def lower(self, node: Node, ctx: LoweringContext) -> None:
        raise ShaderError(f"ADD_N #{node.index} was to be split into ADD nodes")
