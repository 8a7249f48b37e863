"""Which options table each builtin operator has, and how its fields map to our attributes.

The table below is all there is to know: an attribute field carries the schema's name, so reading
(here) and writing (testing.model_writer) are one loop over the fields of the dataclass.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import tflite

from tflite_vk.dtypes import DType
from tflite_vk.frontend.checked import View
from tflite_vk.ir import attributes as ir


@dataclass(frozen=True)
class OptionsTable:
    """The options table of an operator.

    Attributes:
        name: generated class, which is also the name in the union.
        attributes: our dataclass.
        subgraph_fields: accessors that make up `SubgraphAttributes.subgraphs`, in order.
        union: field of Operator that holds it.
    """

    name: str
    attributes: type[ir.Attributes]
    subgraph_fields: tuple[str, ...] = ()
    union: str = "BuiltinOptions"


def _same(attributes: type[ir.Attributes], name: str, *ops: str) -> dict[str, OptionsTable]:
    return {op: OptionsTable(name, attributes) for op in ops}


OPTIONS: dict[str, OptionsTable] = {
    **_same(ir.Conv2DAttributes, "Conv2DOptions", "CONV_2D"),
    **_same(ir.DepthwiseConv2DAttributes, "DepthwiseConv2DOptions", "DEPTHWISE_CONV_2D"),
    **_same(ir.Conv3DAttributes, "Conv3DOptions", "CONV_3D", "CONV_3D_TRANSPOSE"),
    **_same(ir.TransposeConvAttributes, "TransposeConvOptions", "TRANSPOSE_CONV"),
    **_same(ir.Pool2DAttributes, "Pool2DOptions", "AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"),
    **_same(ir.FullyConnectedAttributes, "FullyConnectedOptions", "FULLY_CONNECTED"),
    **_same(ir.BinaryAttributes, "AddOptions", "ADD"),
    **_same(ir.BinaryAttributes, "SubOptions", "SUB"),
    **_same(ir.BinaryAttributes, "MulOptions", "MUL"),
    **_same(ir.BinaryAttributes, "DivOptions", "DIV"),
    **_same(ir.BinaryAttributes, "L2NormOptions", "L2_NORMALIZATION"),
    **_same(ir.ConcatenationAttributes, "ConcatenationOptions", "CONCATENATION"),
    **_same(ir.SoftmaxAttributes, "SoftmaxOptions", "SOFTMAX"),
    **_same(ir.BatchMatMulAttributes, "BatchMatMulOptions", "BATCH_MATMUL"),
    **_same(ir.ResizeAttributes, "ResizeBilinearOptions", "RESIZE_BILINEAR"),
    **_same(ir.ResizeAttributes, "ResizeNearestNeighborOptions", "RESIZE_NEAREST_NEIGHBOR"),
    **_same(ir.ReshapeAttributes, "ReshapeOptions", "RESHAPE"),
    **_same(ir.SqueezeAttributes, "SqueezeOptions", "SQUEEZE"),
    **_same(ir.StridedSliceAttributes, "StridedSliceOptions", "STRIDED_SLICE"),
    **_same(ir.GatherAttributes, "GatherOptions", "GATHER"),
    **_same(
        ir.ReducerAttributes,
        "ReducerOptions",
        "MEAN",
        "SUM",
        "REDUCE_PROD",
        "REDUCE_MAX",
        "REDUCE_MIN",
        "REDUCE_ANY",
        "REDUCE_ALL",
    ),
    **_same(ir.SplitAttributes, "SplitOptions", "SPLIT"),
    **_same(ir.SplitAttributes, "SplitVOptions", "SPLIT_V"),
    **_same(ir.PackAttributes, "PackOptions", "PACK"),
    **_same(ir.UnpackAttributes, "UnpackOptions", "UNPACK"),
    **_same(ir.OneHotAttributes, "OneHotOptions", "ONE_HOT"),
    **_same(ir.CastAttributes, "CastOptions", "CAST"),
    **_same(ir.LeakyReluAttributes, "LeakyReluOptions", "LEAKY_RELU"),
    **_same(ir.MirrorPadAttributes, "MirrorPadOptions", "MIRROR_PAD"),
    **_same(ir.BlockSizeAttributes, "SpaceToDepthOptions", "SPACE_TO_DEPTH"),
    **_same(ir.BlockSizeAttributes, "DepthToSpaceOptions", "DEPTH_TO_SPACE"),
    **_same(ir.CumsumAttributes, "CumsumOptions", "CUMSUM"),
    **_same(ir.GeluAttributes, "GeluOptions", "GELU"),
    **_same(ir.LstmAttributes, "LSTMOptions", "LSTM"),
    **_same(ir.LstmAttributes, "UnidirectionalSequenceLSTMOptions", "UNIDIRECTIONAL_SEQUENCE_LSTM"),
    **_same(
        ir.BidirectionalLstmAttributes,
        "BidirectionalSequenceLSTMOptions",
        "BIDIRECTIONAL_SEQUENCE_LSTM",
    ),
    **_same(ir.RnnAttributes, "RNNOptions", "RNN"),
    **_same(ir.RnnAttributes, "SequenceRNNOptions", "UNIDIRECTIONAL_SEQUENCE_RNN"),
    **_same(
        ir.BidirectionalRnnAttributes,
        "BidirectionalSequenceRNNOptions",
        "BIDIRECTIONAL_SEQUENCE_RNN",
    ),
    **_same(ir.SvdfAttributes, "SVDFOptions", "SVDF"),
    **_same(ir.ArgAttributes, "ArgMaxOptions", "ARG_MAX"),
    **_same(ir.ArgAttributes, "ArgMinOptions", "ARG_MIN"),
    **_same(ir.ShapeAttributes, "ShapeOptions", "SHAPE"),
    **_same(
        ir.LocalResponseNormAttributes,
        "LocalResponseNormalizationOptions",
        "LOCAL_RESPONSE_NORMALIZATION",
    ),
    **_same(ir.FakeQuantAttributes, "FakeQuantOptions", "FAKE_QUANT"),
    **_same(ir.ReverseSequenceAttributes, "ReverseSequenceOptions", "REVERSE_SEQUENCE"),
    **_same(ir.VarHandleAttributes, "VarHandleOptions", "VAR_HANDLE"),
    "STABLEHLO_COMPOSITE": OptionsTable(
        "StableHLOCompositeOptions", ir.StablehloCompositeAttributes, union="BuiltinOptions2"
    ),
    "IF": OptionsTable(
        "IfOptions", ir.SubgraphAttributes, ("ThenSubgraphIndex", "ElseSubgraphIndex")
    ),
    "WHILE": OptionsTable(
        "WhileOptions", ir.SubgraphAttributes, ("CondSubgraphIndex", "BodySubgraphIndex")
    ),
    "CALL": OptionsTable("CallOptions", ir.SubgraphAttributes, ("Subgraph",)),
    "CALL_ONCE": OptionsTable("CallOnceOptions", ir.SubgraphAttributes, ("InitSubgraphIndex",)),
}

_WITHOUT_OPTIONS = """
    ABS ADD_N ASSIGN_VARIABLE ATAN2 BATCH_TO_SPACE_ND BITCAST BITWISE_XOR BROADCAST_ARGS
    BROADCAST_TO CEIL COMPLEX_ABS COS DENSIFY DEQUANTIZE DILATE DYNAMIC_UPDATE_SLICE ELU
    EMBEDDING_LOOKUP EQUAL EXP EXPAND_DIMS FILL FLOOR FLOOR_DIV FLOOR_MOD GATHER_ND GREATER
    GREATER_EQUAL HARD_SWISH HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_LOOKUP HASHTABLE_SIZE IMAG
    LESS LESS_EQUAL LOG LOGICAL_AND LOGICAL_NOT LOGICAL_OR LOGISTIC LOG_SOFTMAX MATRIX_DIAG
    MATRIX_SET_DIAG MAXIMUM MINIMUM NEG NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5 NOT_EQUAL
    PAD PADV2 POW PRELU QUANTIZE RANGE RANK READ_VARIABLE REAL RELU RELU6 RELU_0_TO_1
    RELU_N1_TO_1 REVERSE_V2 RFFT2D RIGHT_SHIFT ROUND RSQRT SCATTER_ND SEGMENT_SUM SELECT SELECT_V2
    SIGN SIN SLICE SPACE_TO_BATCH_ND SQRT SQUARE SQUARED_DIFFERENCE STABLEHLO_ABS STABLEHLO_ADD
    STABLEHLO_AND STABLEHLO_CBRT STABLEHLO_CLAMP STABLEHLO_CONVERT STABLEHLO_COSINE
    STABLEHLO_DIVIDE STABLEHLO_DYNAMIC_UPDATE_SLICE STABLEHLO_EXPONENTIAL STABLEHLO_FLOOR
    STABLEHLO_LOG STABLEHLO_LOGISTIC STABLEHLO_MAXIMUM STABLEHLO_MINIMUM STABLEHLO_MULTIPLY
    STABLEHLO_NEGATE STABLEHLO_OR STABLEHLO_POWER STABLEHLO_REMAINDER STABLEHLO_RESHAPE
    STABLEHLO_RSQRT STABLEHLO_SELECT STABLEHLO_SHIFT_LEFT STABLEHLO_SUBTRACT STABLEHLO_TANH TANH
    TILE TOPK_V2 TRANSPOSE UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_MIN UNSORTED_SEGMENT_PROD
    UNSORTED_SEGMENT_SUM WHERE ZEROS_LIKE
"""

WITHOUT_OPTIONS = frozenset(_WITHOUT_OPTIONS.split())
"""Operators whose options table is missing or has no fields. Any other is left unread."""

ENUMS: dict[str, tuple[str, ...]] = {
    "fused_activation_function": ir.ACTIVATIONS[:6],
    "padding": ("SAME", "VALID"),
    "weights_format": ("DEFAULT", "SHUFFLED4x16INT8"),
    "kernel_type": ("FULL", "BASIC"),
    "mode": ("REFLECT", "SYMMETRIC"),
}
"""Attribute fields that are strings for us and numbers in the file, in the file's numbering."""

DTYPES = frozenset(
    {"in_data_type", "out_data_type", "output_type", "out_type", "quantized_bias_type"}
)
"""Attribute fields that hold an element type."""

STRINGS = frozenset({"name", "container", "shared_name"})
BYTES = frozenset({"composite_attributes"})
VECTORS = frozenset({"new_shape", "squeeze_dims"})
"""Attribute fields that are vectors in the file."""


def accessor(field: str) -> str:
    """The generated accessor of a schema field: stride_w becomes StrideW."""
    return "".join(word[:1].upper() + word[1:] for word in field.split("_"))


def builtin_name(code: int) -> str:
    """TFLite's name of a builtin operator; BUILTIN_<code> for one newer than our tables."""
    name: str = tflite.utils.BUILTIN_OPCODE2NAME.get(code, f"BUILTIN_{code}")
    return name


def read_builtin_options(op: str, operator: View) -> ir.Attributes:
    """The attributes of a builtin operator.

    Options that this version can't read give UnreadAttributes, so that the node goes to the CPU.
    A missing table gives zeros, as TFLite's parser does; a missing field the schema's default.
    """
    if op in WITHOUT_OPTIONS:
        return ir.NoAttributes()
    table = OPTIONS.get(op)
    if table is None:
        return ir.UnreadAttributes(f"options of {op} are not read")
    options = operator.union(table.union, table.name)
    if table.subgraph_fields:
        if options is None:
            raise operator.error(table.union, f"{op} names no subgraph")
        return ir.SubgraphAttributes(tuple(options.number(f) for f in table.subgraph_fields))
    if options is None:
        return _zeros(table.attributes)
    values: dict[str, Any] = {}
    for field in dataclasses.fields(table.attributes):
        if not options.has(accessor(field.name)):
            continue  # a class serves several tables, such as ADD's and MUL's
        value = _read_field(field.name, options)
        if isinstance(value, ir.UnreadAttributes):
            return value
        values[field.name] = value
    return table.attributes(**values)


def _read_field(name: str, options: View) -> Any:
    get = accessor(name)
    if name in VECTORS:
        numbers = options.numbers(get)
        return () if numbers is None and name != "new_shape" else numbers
    if name in STRINGS:
        return options.text(get) or ""
    if name in BYTES:
        return options.raw(get) or b""
    number = options.number(get)
    if name in DTYPES:
        dtype = DType.from_schema(number)
        return dtype or ir.UnreadAttributes(f"{name} {number} is unknown")
    if name in ENUMS:
        names = ENUMS[name]
        if not 0 <= number < len(names):
            return ir.UnreadAttributes(f"{name} {number} is unknown")
        return names[number]
    return number


def _zeros(attributes: type[ir.Attributes]) -> ir.Attributes:
    """What TFLite's zeroed parameter structure means for an operator without its table.

    Element types keep our default: TFLite's kernels take them from the tensors or refuse.
    """
    values: dict[str, Any] = {}
    for field in dataclasses.fields(attributes):
        default = field.default
        if isinstance(default, (bool, int, float)):
            values[field.name] = type(default)(0)
    return attributes(**values)
