"""Sizes and offsets of TFLite's C structures, as its headers compile them on 64-bit Linux."""

import ctypes

import pytest

from tflite_vk import tflite_abi as abi
from tflite_vk.delegate import abi as delegate_abi
from tflite_vk.frontend import builtin_data
from tflite_vk.frontend.builtin_options import OPTIONS
from tflite_vk.ir import attributes as ir

SIZES = {
    abi.IntArray: 4,
    abi.FloatArray: 4,
    abi.Quantization: 16,
    abi.AffineQuantization: 24,
    abi.DimensionMetadata: 24,
    abi.Sparsity: 32,
    abi.Tensor: 112,
    abi.Node: 80,
    abi.Registration: 88,
    abi.DelegateParams: 32,
    abi.Context: 200,
    delegate_abi.Delegate: 56,
}

OFFSETS = {
    (abi.Tensor, "data"): 8,
    (abi.Tensor, "dims"): 16,
    (abi.Tensor, "params"): 24,
    (abi.Tensor, "allocation_type"): 32,
    (abi.Tensor, "bytes"): 40,
    (abi.Tensor, "name"): 56,
    (abi.Tensor, "delegate"): 64,
    (abi.Tensor, "buffer_handle"): 72,
    (abi.Tensor, "data_is_stale"): 76,
    (abi.Tensor, "is_variable"): 77,
    (abi.Tensor, "quantization"): 80,
    (abi.Tensor, "sparsity"): 96,
    (abi.Tensor, "dims_signature"): 104,
    (abi.Node, "outputs"): 8,
    (abi.Node, "user_data"): 32,
    (abi.Node, "builtin_data"): 40,
    (abi.Node, "custom_initial_data"): 48,
    (abi.Node, "custom_initial_data_size"): 56,
    (abi.Node, "might_have_side_effect"): 72,
    (abi.Registration, "free"): 8,
    (abi.Registration, "prepare"): 16,
    (abi.Registration, "invoke"): 24,
    (abi.Registration, "builtin_code"): 40,
    (abi.Registration, "custom_name"): 48,
    (abi.Registration, "version"): 56,
    (abi.Registration, "registration_external"): 64,
    (abi.Registration, "inplace_operator"): 80,
    (abi.Context, "GetExecutionPlan"): 8,
    (abi.Context, "tensors"): 16,
    (abi.Context, "impl_"): 24,
    (abi.Context, "ResizeTensor"): 32,
    (abi.Context, "ReportError"): 40,
    (abi.Context, "GetNodeAndRegistration"): 56,
    (abi.Context, "ReplaceNodeSubsetsWithDelegateKernels"): 64,
    (abi.Context, "recommended_num_threads"): 72,
    (abi.Context, "allow_fp32_relax_to_fp16"): 96,
    (abi.Context, "profiler"): 104,
    (abi.Context, "ResizeTensorExplicit"): 144,
    (abi.Context, "PreviewDelegatePartitioning"): 152,
    (abi.Context, "ReleaseSubgraphContext"): 192,
    (delegate_abi.Delegate, "Prepare"): 8,
    (delegate_abi.Delegate, "FreeBufferHandle"): 32,
    (delegate_abi.Delegate, "flags"): 40,
    (delegate_abi.Delegate, "opaque_delegate_builder"): 48,
}

# Smaller than C's where C has a last field that is not declared.
PARAMETER_SIZES = {
    "CONV_2D": 28,
    "DEPTHWISE_CONV_2D": 28,
    "CONV_3D": 32,
    "TRANSPOSE_CONV": 20,
    "AVERAGE_POOL_2D": 40 - 16,
    "FULLY_CONNECTED": 16,
    "ADD": 8,
    "SUB": 8,
    "MUL": 4,
    "DIV": 4,
    "L2_NORMALIZATION": 4,
    "CONCATENATION": 8,
    "SOFTMAX": 4,
    "BATCH_MATMUL": 3,
    "RESIZE_BILINEAR": 2,
    "RESHAPE": 36,
    "SQUEEZE": 36,
    "STRIDED_SLICE": 24,
    "GATHER": 8,
    "MEAN": 1,
    "SPLIT": 4,
    "SPLIT_V": 4,
    "PACK": 8,
    "UNPACK": 8,
    "ONE_HOT": 4,
    "CAST": 8,
    "LEAKY_RELU": 4,
    "MIRROR_PAD": 4,
    "DEPTH_TO_SPACE": 4,
    "CUMSUM": 2,
    "GELU": 1,
    "LSTM": 20,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": 16,
    "BIDIRECTIONAL_SEQUENCE_LSTM": 16,
    "RNN": 8,
    "UNIDIRECTIONAL_SEQUENCE_RNN": 12,
    "BIDIRECTIONAL_SEQUENCE_RNN": 12,
    "SVDF": 12,
    "ARG_MAX": 4,
    "SHAPE": 4,
    "LOCAL_RESPONSE_NORMALIZATION": 16,
    "FAKE_QUANT": 16,
    "REVERSE_SEQUENCE": 8,
    "VAR_HANDLE": 16,
    "STABLEHLO_COMPOSITE": 40,
    "IF": 8,
    "WHILE": 8,
    "CALL_ONCE": 4,
}


@pytest.mark.parametrize("structure", SIZES, ids=lambda s: s.__name__)
def test_size(structure):
    assert ctypes.sizeof(structure) == SIZES[structure]


@pytest.mark.parametrize(("structure", "field"), OFFSETS, ids=str)
def test_offset(structure, field):
    assert getattr(structure, field).offset == OFFSETS[structure, field]


@pytest.mark.parametrize("op", PARAMETER_SIZES)
def test_parameter_size(op):
    assert ctypes.sizeof(builtin_data.STRUCTURES[op]) == PARAMETER_SIZES[op]


def test_every_options_table_is_read_in_both_frontends():
    # CALL has no structure in C, and TFLite no kernel for it.
    assert set(OPTIONS) - set(builtin_data.STRUCTURES) == {"CALL"}


def test_arrays():
    array = abi.make_ints((3, 1, 2))
    pointer = ctypes.cast(array, ctypes.POINTER(abi.IntArray))
    assert abi.read_ints(pointer) == (3, 1, 2)
    assert abi.read_ints(ctypes.POINTER(abi.IntArray)()) == ()
    assert abi.read_floats(ctypes.POINTER(abi.FloatArray)()) == ()
    assert abi.read_bytes(None, 4) == b""


def make(op, **values):
    data = builtin_data.STRUCTURES[op]()
    for name, value in values.items():
        setattr(data, name, value)
    return data


def read(op, **values):
    data = make(op, **values)
    return builtin_data.read_builtin_data(op, ctypes.addressof(data))


def test_read_parameters():
    assert read("CONV_2D", padding=2, stride_w=3, stride_h=1, fused_activation_function=6) == (
        ir.Conv2DAttributes("SIGMOID", "VALID", 3, 1, 0, 0)
    )
    assert read("MIRROR_PAD", mode=2) == ir.MirrorPadAttributes("SYMMETRIC")
    assert read("WHILE", cond_subgraph_index=2, body_subgraph_index=1) == (
        ir.SubgraphAttributes((2, 1))
    )
    assert read("VAR_HANDLE", container=b"c", shared_name=b"s") == ir.VarHandleAttributes("c", "s")
    assert read("CAST") == ir.CastAttributes()
    assert builtin_data.read_builtin_data("RELU", None) == ir.NoAttributes()


@pytest.mark.parametrize(
    ("op", "values", "reason"),
    [
        ("CONV_2D", {"padding": 0}, "padding 0 is unknown"),
        ("ADD", {"fused_activation_function": 9}, "fused_activation_function 9 is unknown"),
        ("CAST", {"in_data_type": 99}, "in_data_type 99 is unknown"),
        ("SQUEEZE", {"squeeze_dims_size": 9}, "squeeze_dims has 9 entries (at most 8)"),
        ("SKIP_GRAM", None, "options of SKIP_GRAM are not read"),
        ("SOFTMAX", None, "SOFTMAX has no options"),
    ],
)
def test_unreadable_parameters(op, values, reason):
    found = builtin_data.read_builtin_data(op, None) if values is None else read(op, **values)
    assert found == ir.UnreadAttributes(reason)


def test_report_error_is_split_and_escaped():
    parts = []
    context = abi.Context()
    context.ReportError = type(context.ReportError)(lambda _, text: parts.append(text))
    delegate_abi.report_error(ctypes.addressof(context), "100% é " + "x" * 600)
    assert all(len(p) < 1024 for p in parts)
    assert b"".join(parts).decode().replace("%%", "%") == "100% é " + "x" * 600 + "\n"
    silent = abi.Context()
    delegate_abi.report_error(ctypes.addressof(silent), "nobody listens")
