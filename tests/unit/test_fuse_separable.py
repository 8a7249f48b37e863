"""Which depthwise and pointwise convolutions become one node, what is told of it, and its sizes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.unit.test_sizes import GPU, SMALL, SOFTWARE
from tflite_vk.analysis.inspection import fused_groups, inspect_model
from tflite_vk.device_info import DeviceInfo, DeviceLimits
from tflite_vk.dtypes import DType
from tflite_vk.frontend.flatbuffer import read_model
from tflite_vk.ir.attributes import (
    Activation,
    BinaryAttributes,
    Conv2DAttributes,
    DepthwiseConv2DAttributes,
    SeparableConv2DAttributes,
)
from tflite_vk.ir.graph import Graph, Quantization
from tflite_vk.ir.printer import format_graph
from tflite_vk.lowering import lower
from tflite_vk.ops.registry import ends_in_epilogue
from tflite_vk.ops.separable_tile import (
    SeparableShape,
    choose_size,
    make_tile,
    pays,
    sizes,
)
from tflite_vk.options import DelegateOptions
from tflite_vk.passes.manager import run_passes
from tflite_vk.testing.model_writer import ModelWriter, TensorSpec

SHAPE = (1, 8, 8, 8)
DEPTHWISE = DepthwiseConv2DAttributes(depth_multiplier=1, fused_activation_function="RELU6")
POINTWISE = Conv2DAttributes(fused_activation_function="RELU")


def _depthwise(w: ModelWriter, x: int, act: Activation = "RELU6", *, half: bool = False) -> int:
    value = np.ones((1, 3, 3, 8), np.float32)
    weights = w.half_const(value.astype(np.float16)) if half else w.const(value)
    attributes = DepthwiseConv2DAttributes(depth_multiplier=1, fused_activation_function=act)
    inputs = [x, weights, w.const(np.zeros(8, np.float32))]
    return w.op("DEPTHWISE_CONV_2D", inputs, [SHAPE], attributes)


def _conv(w: ModelWriter, x: int, kernel: int = 1, stride: int = 1) -> int:
    size = 8 // stride
    inputs = [
        x,
        w.const(np.ones((8, kernel, kernel, 8), np.float32)),
        w.const(np.zeros(8, np.float32)),
    ]
    attributes = Conv2DAttributes(
        fused_activation_function="RELU", stride_h=stride, stride_w=stride
    )
    return w.op("CONV_2D", inputs, [(1, size, size, 8)], attributes)


def _graph(w: ModelWriter) -> Graph:
    return read_model(w.build()).subgraphs[0]


def _ops(w: ModelWriter, device: DeviceInfo = GPU) -> list[str]:
    return [n.op for n in lower(_graph(w), device).graph.nodes]


def test_a_pair_is_one_node_that_stands_for_both() -> None:
    w = ModelWriter()
    w.output(_conv(w, _depthwise(w, w.input(SHAPE))))
    (node,) = lower(_graph(w), GPU).graph.nodes
    assert node.op == "SEPARABLE_CONV_2D"
    assert node.index == 0
    assert node.origins == (0, 1)
    assert node.ops == ("DEPTHWISE_CONV_2D", "RELU6", "CONV_2D", "RELU")
    assert isinstance(node.attributes, SeparableConv2DAttributes)


def test_a_network_of_pairs_alternates() -> None:
    w = ModelWriter()
    x = _conv(w, w.input(SHAPE))
    for _ in range(2):
        x = _conv(w, _depthwise(w, x))
    w.output(x)
    assert _ops(w) == ["CONV_2D", "SEPARABLE_CONV_2D", "SEPARABLE_CONV_2D"]


def test_a_residual_goes_along() -> None:
    w = ModelWriter()
    x = w.input(SHAPE)
    w.output(w.op("ADD", [x, _conv(w, _depthwise(w, x))], [SHAPE], BinaryAttributes()))
    (node,) = lower(_graph(w), GPU).graph.nodes
    assert node.ops == ("DEPTHWISE_CONV_2D", "RELU6", "CONV_2D", "RELU", "ADD")
    assert node.origins == (0, 1, 2)


def test_a_value_used_twice_stays() -> None:
    w = ModelWriter()
    middle = _depthwise(w, w.input(SHAPE))
    w.output(_conv(w, middle), _conv(w, middle))
    assert _ops(w) == ["DEPTHWISE_CONV_2D", "CONV_2D", "CONV_2D"]


def test_a_value_that_is_also_added_stays() -> None:
    w = ModelWriter()
    middle = _depthwise(w, w.input(SHAPE))
    w.output(w.op("ADD", [_conv(w, middle), middle], [SHAPE], BinaryAttributes()))
    assert _ops(w) == ["DEPTHWISE_CONV_2D", "CONV_2D"]


def test_a_value_that_is_an_output_stays() -> None:
    w = ModelWriter()
    middle = _depthwise(w, w.input(SHAPE))
    w.output(middle, _conv(w, middle))
    assert _ops(w) == ["DEPTHWISE_CONV_2D", "CONV_2D"]


@pytest.mark.parametrize(("kernel", "stride"), [(3, 1), (1, 2)])
def test_only_a_pointwise_convolution_joins(kernel: int, stride: int) -> None:
    w = ModelWriter()
    w.output(_conv(w, _depthwise(w, w.input(SHAPE)), kernel, stride))
    assert _ops(w) == ["DEPTHWISE_CONV_2D", "CONV_2D"]


@pytest.mark.parametrize(("act", "behind"), [("TANH", ""), ("NONE", "LOGISTIC"), ("RELU", "RELU6")])
def test_between_stands_one_cheap_operator_at_most(act: Activation, behind: str) -> None:
    w = ModelWriter()
    x = _depthwise(w, w.input(SHAPE), act)
    if behind:
        x = w.op(behind, [x], [SHAPE])
    w.output(_conv(w, x))
    assert _ops(w) == ["DEPTHWISE_CONV_2D", "CONV_2D"]


def test_an_operand_between_the_two_stays_where_it_is() -> None:
    w = ModelWriter()
    x = w.input(SHAPE)
    sum_of = w.op("ADD", [_depthwise(w, x), x], [SHAPE], BinaryAttributes())
    w.output(_conv(w, sum_of))
    assert _ops(w) == ["DEPTHWISE_CONV_2D", "CONV_2D"]


def test_a_multiplier_stays_apart() -> None:
    w = ModelWriter()
    inputs = [w.input((1, 8, 8, 4)), w.const(np.ones((1, 3, 3, 8), np.float32))]
    attributes = DepthwiseConv2DAttributes(depth_multiplier=2)
    w.output(_conv(w, w.op("DEPTHWISE_CONV_2D", inputs, [SHAPE], attributes)))
    assert _ops(w) == ["DEPTHWISE_CONV_2D", "CONV_2D"]


def test_a_run_time_filter_stays_apart() -> None:
    w = ModelWriter()
    middle = _depthwise(w, w.input(SHAPE))
    inputs = [middle, w.input((8, 1, 1, 8)), w.const(np.zeros(8, np.float32))]
    w.output(w.op("CONV_2D", inputs, [SHAPE], POINTWISE))
    assert _ops(w) == ["DEPTHWISE_CONV_2D", "CONV_2D"]


def test_filters_of_two_types_stay_apart() -> None:
    w = ModelWriter()
    w.output(_conv(w, _depthwise(w, w.input(SHAPE), half=True)))
    assert _ops(w) == ["DEPTHWISE_CONV_2D", "CONV_2D"]


def test_quantized_convolutions_stay_apart() -> None:
    w, scaled = ModelWriter(), Quantization((0.5,), (0,))
    x = w.input(SHAPE, dtype=DType.INT8, quantization=scaled)

    def layer(
        op: str, source: int, filter_shape: tuple[int, ...], attributes: Conv2DAttributes
    ) -> int:
        weights = w.const(np.ones(filter_shape, np.int8), quantization=scaled)
        bias = w.const(np.zeros(8, np.int32), quantization=Quantization((0.25,), (0,)))
        return w.op(
            op, [source, weights, bias], [TensorSpec(SHAPE, DType.INT8, scaled)], attributes
        )

    x = layer("DEPTHWISE_CONV_2D", x, (1, 3, 3, 8), DEPTHWISE)
    w.output(layer("CONV_2D", x, (8, 1, 1, 8), POINTWISE))
    assert _ops(w) == ["DEPTHWISE_CONV_2D", "CONV_2D"]


def test_without_fusion_or_question_the_two_stay_apart() -> None:
    w = ModelWriter()
    w.output(_conv(w, _depthwise(w, w.input(SHAPE))))
    graph = _graph(w)
    apart = [n.op for n in lower(graph, GPU, fusion=False).graph.nodes]
    assert apart == ["DEPTHWISE_CONV_2D", "CONV_2D"]
    assert len(run_passes(graph, ends_in_epilogue).nodes) == 2


def test_reports_and_labels_name_both() -> None:
    w = ModelWriter()
    w.output(_conv(w, _depthwise(w, w.input(SHAPE))))
    model = read_model(w.build())
    lowered = lower(model.subgraphs[0], GPU)
    names = ("DEPTHWISE_CONV_2D", "RELU6", "CONV_2D", "RELU")
    (dispatch,) = lowered.program.dispatches
    assert dispatch.label == f"{'+'.join(names)} #0"
    (group,) = fused_groups(lowered.graph, 0)
    assert (group.nodes, group.ops) == ((0, 1), names)
    assert "SEPARABLE_CONV_2D #0 (of #0, #1)" in format_graph(lowered.graph)
    assert "between=RELU6" in format_graph(lowered.graph)
    (partition,) = inspect_model(model, "pair", DelegateOptions(), GPU).partitions
    assert partition.ops == {"CONV_2D": 1, "DEPTHWISE_CONV_2D": 1}
    assert partition.nodes == (0, 1)


SHAPES = [
    SeparableShape(pixels, outputs, inputs, 9)
    for pixels, inputs, outputs in (
        (12544, 8, 16), (196, 128, 128), (49, 256, 256), (49, 240, 40), (12544, 8, 4), (7, 3, 1), (1, 1, 1),
        (64, 2, 300),
    )
]  # fmt: skip


def test_it_pays_on_a_gpu_where_a_launch_counts() -> None:
    shape = SHAPES[1]
    assert pays(shape, GPU)
    assert not pays(shape, SOFTWARE)
    few_buffers = replace(GPU.limits, max_storage_buffers=8)
    assert not pays(shape, replace(GPU, limits=few_buffers))
    assert not pays(replace(shape, taps=49), GPU)
    assert not pays(replace(shape, num_pixels=100 * shape.num_pixels), GPU)


TINY = replace(
    GPU, limits=replace(DeviceLimits(), shared_memory_bytes=2048, max_storage_buffers=16)
)


@pytest.mark.parametrize("device", [GPU, SMALL, TINY], ids=["gpu", "small", "tiny"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_size_fits_the_device(shape: SeparableShape, device: DeviceInfo) -> None:
    limits = device.limits
    for size in (choose_size(shape, device), *sizes(shape, device)):
        tile = make_tile(size, shape, device)
        x, y, z = tile.local
        assert (tile.pixels, tile.channel_groups, x, y, z, tile.depth) == size
        assert x * y * z <= limits.max_workgroup_invocations
        parts = tile.slice * x * y * z if z > 1 else 0
        assert 1 <= tile.slice <= tile.pixels * tile.channel_groups
        assert 16 * max(parts, tile.pixels * y * tile.chunk) <= limits.shared_memory_bytes
        assert tile.chunk == shape.input_groups or tile.chunk % z == 0
        assert 1 <= tile.unit <= tile.pixels * y
        assert tile.groups[0] * x * tile.channel_groups >= shape.output_groups
        assert tile.groups[1] * tile.groups[2] * y * tile.pixels >= shape.num_pixels
