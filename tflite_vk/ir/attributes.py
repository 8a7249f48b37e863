"""Attributes of operators: one frozen dataclass per TFLite options table, TFLite's field names.

Enumerations are strings in TFLite's spelling, so that an attribute reads the same in a printed
graph, an error and the schema. `NoAttributes` serves the operators without options.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeVar, dataclass_transform

from tflite_vk.dtypes import DType

Activation = Literal["NONE", "RELU", "RELU_N1_TO_1", "RELU6", "TANH", "SIGN_BIT", "SIGMOID"]
ACTIVATIONS: tuple[Activation, ...] = (
    "NONE", "RELU", "RELU_N1_TO_1", "RELU6", "TANH", "SIGN_BIT", "SIGMOID",
)  # fmt: skip
"""In the delegate ABI's numbering. The flatbuffer's differs in SIGN_BIT only, and lacks SIGMOID."""

Padding = Literal["SAME", "VALID"]


Class = TypeVar("Class")


@dataclass_transform(frozen_default=True)
def _table(cls: type[Class]) -> type[Class]:
    """A frozen dataclass. Making 45 classes methods of their own takes a process 30 ms to start."""
    return dataclass(frozen=True, repr=False, eq=False)(cls)


@dataclass(frozen=True, repr=False, eq=False)
class Attributes:
    """Base of all; lets a node hold any of them."""

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), *vars(self).values()))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__qualname__}({fields})"


@_table
class NoAttributes(Attributes):
    """For an operator that has no options."""


@_table
class ActivationAttributes(Attributes):
    """Base of every options table with a fused activation."""

    fused_activation_function: Activation = "NONE"


@_table
class Conv2DAttributes(ActivationAttributes):
    padding: Padding = "SAME"
    stride_w: int = 1
    stride_h: int = 1
    dilation_w_factor: int = 1
    dilation_h_factor: int = 1
    quantized_bias_type: DType = DType.FLOAT32
    """Of the sums over int16 values: INT32, or any other for INT64. DEPTHWISE_CONV_2D has none."""


@_table
class Conv3DAttributes(ActivationAttributes):
    """CONV_3D and CONV_3D_TRANSPOSE."""

    padding: Padding = "SAME"
    stride_d: int = 1
    stride_w: int = 1
    stride_h: int = 1
    dilation_d_factor: int = 1
    dilation_w_factor: int = 1
    dilation_h_factor: int = 1


@_table
class DepthwiseConv2DAttributes(Conv2DAttributes):
    depth_multiplier: int = 1
    """As written in the file; kernels take output channels / input channels instead, as TFLite does."""


@_table
class SeparableConv2DAttributes(DepthwiseConv2DAttributes):
    """Of the node that passes/fuse_separable.py makes: the options are the depthwise part's."""

    between: str = ""
    """Elementwise operator between the two convolutions; empty where there is none."""


@_table
class TransposeConvAttributes(ActivationAttributes):
    """TRANSPOSE_CONV, and the custom Convolution2DTransposeBias."""

    padding: Padding = "SAME"
    stride_w: int = 1
    stride_h: int = 1
    quantized_bias_type: DType = DType.FLOAT32


@_table
class Pool2DAttributes(ActivationAttributes):
    """AVERAGE_POOL_2D, MAX_POOL_2D, L2_POOL_2D; custom MaxPoolingWithArgmax2D, MaxUnpooling2D."""

    padding: Padding = "SAME"
    stride_w: int = 1
    stride_h: int = 1
    filter_width: int = 1
    filter_height: int = 1


@_table
class FullyConnectedAttributes(ActivationAttributes):
    weights_format: Literal["DEFAULT", "SHUFFLED4x16INT8"] = "DEFAULT"
    keep_num_dims: bool = False
    asymmetric_quantize_inputs: bool = False
    quantized_bias_type: DType = DType.FLOAT32


@_table
class BinaryAttributes(ActivationAttributes):
    """ADD, SUB, MUL, DIV, L2_NORMALIZATION."""

    pot_scale_int16: bool = False


@_table
class ConcatenationAttributes(ActivationAttributes):
    axis: int = 0


@_table
class SoftmaxAttributes(Attributes):
    beta: float = 1.0


@_table
class BatchMatMulAttributes(Attributes):
    adj_x: bool = False
    adj_y: bool = False
    asymmetric_quantize_inputs: bool = False


@_table
class ResizeAttributes(Attributes):
    """RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR."""

    align_corners: bool = False
    half_pixel_centers: bool = False


@_table
class ReshapeAttributes(Attributes):
    new_shape: tuple[int, ...] | None = None


@_table
class SqueezeAttributes(Attributes):
    squeeze_dims: tuple[int, ...] = ()


@_table
class StridedSliceAttributes(Attributes):
    begin_mask: int = 0
    end_mask: int = 0
    ellipsis_mask: int = 0
    new_axis_mask: int = 0
    shrink_axis_mask: int = 0
    offset: bool = False


@_table
class GatherAttributes(Attributes):
    axis: int = 0
    batch_dims: int = 0


@_table
class ReducerAttributes(Attributes):
    """MEAN, SUM, REDUCE_PROD, REDUCE_MAX, REDUCE_MIN, REDUCE_ANY, REDUCE_ALL."""

    keep_dims: bool = False


@_table
class SplitAttributes(Attributes):
    """SPLIT and SPLIT_V."""

    num_splits: int = 0


@_table
class PackAttributes(Attributes):
    values_count: int = 0
    axis: int = 0


@_table
class UnpackAttributes(Attributes):
    num: int = 0
    axis: int = 0


@_table
class OneHotAttributes(Attributes):
    axis: int = -1


@_table
class CastAttributes(Attributes):
    in_data_type: DType | None = None
    out_data_type: DType | None = None


@_table
class LeakyReluAttributes(Attributes):
    alpha: float = 0.0


@_table
class MirrorPadAttributes(Attributes):
    mode: Literal["REFLECT", "SYMMETRIC"] = "REFLECT"


@_table
class BlockSizeAttributes(Attributes):
    """SPACE_TO_DEPTH and DEPTH_TO_SPACE."""

    block_size: int = 1


@_table
class CumsumAttributes(Attributes):
    exclusive: bool = False
    reverse: bool = False


@_table
class GeluAttributes(Attributes):
    approximate: bool = False


@_table
class LstmAttributes(ActivationAttributes):
    """LSTM and UNIDIRECTIONAL_SEQUENCE_LSTM."""

    cell_clip: float = 0.0
    proj_clip: float = 0.0
    kernel_type: Literal["FULL", "BASIC"] = "FULL"
    time_major: bool = False
    asymmetric_quantize_inputs: bool = False
    diagonal_recurrent_tensors: bool = False


@_table
class BidirectionalLstmAttributes(LstmAttributes):
    merge_outputs: bool = False


@_table
class RnnAttributes(ActivationAttributes):
    """RNN, UNIDIRECTIONAL_SEQUENCE_RNN; time_major means nothing for RNN."""

    time_major: bool = False
    asymmetric_quantize_inputs: bool = False


@_table
class BidirectionalRnnAttributes(RnnAttributes):
    merge_outputs: bool = False


@_table
class SvdfAttributes(ActivationAttributes):
    rank: int = 1
    asymmetric_quantize_inputs: bool = False


@_table
class ArgAttributes(Attributes):
    """ARG_MAX and ARG_MIN."""

    output_type: DType = DType.INT64


@_table
class ShapeAttributes(Attributes):
    out_type: DType = DType.INT32


@_table
class LocalResponseNormAttributes(Attributes):
    radius: int = 0
    bias: float = 0.0
    alpha: float = 0.0
    beta: float = 0.0


@_table
class FakeQuantAttributes(Attributes):
    min: float = 0.0
    max: float = 0.0
    num_bits: int = 0
    narrow_range: bool = False


@_table
class ReverseSequenceAttributes(Attributes):
    seq_dim: int = 0
    batch_dim: int = 0


@_table
class StablehloCompositeAttributes(Attributes):
    name: str = ""
    decomposition_subgraph_index: int = -1
    composite_attributes: bytes = b""
    version: int = 0


@_table
class SubgraphAttributes(Attributes):
    """Control flow: IF, WHILE, CALL, CALL_ONCE: the subgraphs they name."""

    subgraphs: tuple[int, ...] = ()


@_table
class VarHandleAttributes(Attributes):
    container: str = ""
    shared_name: str = ""


@_table
class DetectionPostProcessAttributes(Attributes):
    """Custom TFLite_Detection_PostProcess (flexbuffer map)."""

    max_detections: int = 0
    max_classes_per_detection: int = 0
    detections_per_class: int = 100
    use_regular_nms: bool = False
    nms_score_threshold: float = 0.0
    nms_iou_threshold: float = 0.0
    num_classes: int = 0
    y_scale: float = 0.0
    x_scale: float = 0.0
    h_scale: float = 0.0
    w_scale: float = 0.0


@_table
class CustomAttributes(Attributes):
    """A custom operator nobody here reads."""

    data: bytes = b""


@_table
class UnreadAttributes(Attributes):
    """An operator whose options the frontend doesn't read or doesn't know: never accepted."""

    reason: str = ""
