"""How many inputs and outputs each operator has, and which options: checked before anything else.

What stands here no operator family needs to check again. A node of another form comes from no
converter, but a file may hold it.
"""

from __future__ import annotations

from dataclasses import dataclass

from tflite_vk.frontend.builtin_options import OPTIONS
from tflite_vk.ir import attributes as ir
from tflite_vk.ir.graph import Node

ANY = 1 << 30


@dataclass(frozen=True)
class Signature:
    """The form of an operator.

    Attributes:
        inputs: least and most.
        outputs: least and most.
        required: the first inputs, which have to be there; the others are optional. None for the
            least number, or for all where there may be any number.
    """

    inputs: tuple[int, int]
    outputs: tuple[int, int] = (1, 1)
    required: int | None = None


def _same(signature: Signature, names: str) -> dict[str, Signature]:
    return dict.fromkeys(names.split(), signature)


SIGNATURES: dict[str, Signature] = {
    **_same(
        Signature((1, 1)),
        """
        ABS AVERAGE_POOL_2D BITCAST CAST CEIL COS DEPTH_TO_SPACE DEQUANTIZE ELEMENTWISE ELU EXP FLOOR GELU
        HARD_SWISH L2_NORMALIZATION L2_POOL_2D LEAKY_RELU LOCAL_RESPONSE_NORMALIZATION LOG
        LOGICAL_NOT LOGISTIC LOG_SOFTMAX MAX_POOL_2D NEG QUANTIZE RANK RELU RELU6 RELU_0_TO_1
        RELU_N1_TO_1 ROUND RSQRT SHAPE SIGN SIN SOFTMAX SPACE_TO_DEPTH SQRT SQUARE SQUEEZE TANH
        ZEROS_LIKE
        """,
    ),
    **_same(
        Signature((2, 2)),
        """
        ADD ARG_MAX ARG_MIN ATAN2 BATCH_MATMUL BITWISE_XOR BROADCAST_ARGS BROADCAST_TO CUMSUM DIV
        EMBEDDING_LOOKUP EQUAL EXPAND_DIMS FILL FLOOR_DIV FLOOR_MOD GATHER GATHER_ND GREATER
        GREATER_EQUAL LESS LESS_EQUAL LOGICAL_AND LOGICAL_OR MAXIMUM MEAN MINIMUM MIRROR_PAD MUL
        MaxUnpooling2D NOT_EQUAL PAD POW PRELU REDUCE_ALL REDUCE_ANY REDUCE_MAX REDUCE_MIN
        REDUCE_PROD RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR REVERSE_SEQUENCE REVERSE_V2 RIGHT_SHIFT
        Resampler STABLEHLO_ADD STABLEHLO_AND STABLEHLO_MAXIMUM STABLEHLO_MINIMUM STABLEHLO_MULTIPLY
        STABLEHLO_SHIFT_LEFT
        SQUARED_DIFFERENCE SUB SUM TILE TRANSPOSE
        """,
    ),
    **_same(
        Signature((3, 3)),
        """
        BATCH_TO_SPACE_ND DYNAMIC_UPDATE_SLICE PADV2 SCATTER_ND SELECT SELECT_V2 SLICE
        SPACE_TO_BATCH_ND
        """,
    ),
    **_same(Signature((4, 4)), "ONE_HOT STRIDED_SLICE"),
    **_same(Signature((1, ANY)), "CONCATENATION PACK"),
    **_same(
        Signature((2, 3)),
        "CONV_2D CONV_3D Convolution2DTransposeBias DEPTHWISE_CONV_2D FULLY_CONNECTED",
    ),
    **_same(Signature((3, 4)), "CONV_3D_TRANSPOSE TRANSPOSE_CONV"),
    "ADD_N": Signature((2, ANY)),
    "BIDIRECTIONAL_SEQUENCE_LSTM": Signature((48, 48), (1, 2), required=1),
    "BIDIRECTIONAL_SEQUENCE_RNN": Signature((9, 12), (1, 2)),
    "LSTM": Signature((5, 24), (1, 4), required=1),
    "MaxPoolingWithArgmax2D": Signature((1, 1), (2, 2)),
    "RESHAPE": Signature((1, 2)),
    "RNN": Signature((5, 5)),
    "SEPARABLE_CONV_2D": Signature((5, 5), required=2),
    "SPLIT": Signature((2, 2), (1, ANY)),
    "SPLIT_V": Signature((3, 3), (1, ANY)),
    "SVDF": Signature((3, 5)),
    "TFLite_Detection_PostProcess": Signature((3, 3), (4, 4)),
    "TOPK_V2": Signature((2, 2), (2, 2)),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": Signature((20, 24), required=1),
    "UNIDIRECTIONAL_SEQUENCE_RNN": Signature((5, 5)),
    "UNPACK": Signature((1, 1), (1, ANY)),
}

CUSTOM_ATTRIBUTES: dict[str, type[ir.Attributes]] = {
    "Convolution2DTransposeBias": ir.TransposeConvAttributes,
    "MaxPoolingWithArgmax2D": ir.Pool2DAttributes,
    "MaxUnpooling2D": ir.Pool2DAttributes,
    "TFLite_Detection_PostProcess": ir.DetectionPostProcessAttributes,
}


def signature_reason(node: Node) -> str | None:
    """Why a node is not of its operator's form; None where it is."""
    signature = SIGNATURES[node.op]
    least, most = signature.inputs
    required = signature.required
    if required is None:
        required = len(node.inputs) if most == ANY else least
    given = len(node.inputs)
    if not least <= given <= most:
        return f"has {given} inputs (supported: {_range(least, most)})"
    absent = [i for i in range(required) if not node.has_input(i)]
    if absent:
        return f"input {absent[0]} of its {given} inputs is absent"
    least, most = signature.outputs
    if not least <= len(node.outputs) <= most:
        return f"has {len(node.outputs)} outputs (supported: {_range(least, most)})"
    expected = _attributes(node)
    if expected is not None and not isinstance(node.attributes, expected):
        return f"its options are {type(node.attributes).__name__} (supported: {expected.__name__})"
    return None


def _attributes(node: Node) -> type[ir.Attributes] | None:
    if node.is_custom:
        return CUSTOM_ATTRIBUTES.get(node.op)
    return OPTIONS[node.op].attributes if node.op in OPTIONS else None


def _range(least: int, most: int) -> str:
    if most == ANY:
        return f"{least} and more"
    return str(least) if least == most else f"{least} to {most}"
