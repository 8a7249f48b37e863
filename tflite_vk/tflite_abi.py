"""TFLite's C structures, which a delegate reads in place: tflite/core/c/common.h in ctypes.

A leaf, so that the frontend (which reads subgraphs) and the delegate (which fills in callbacks)
share it. Names and order of the fields are TFLite's; a test holds every size and offset.

Source: LiteRT's tflite/core/c/common.h and c_api_types.h; the layout is that of LP64 Linux, the
same from TensorFlow Lite 2.9 to LiteRT 2.3.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_bool, c_char_p, c_float, c_int, c_int32, c_size_t, c_void_p
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # ctypes' pointer types are generic in the stubs alone.
    IntArrayPointer = ctypes._Pointer["IntArray"]

OK = 0
ERROR = 1
DELEGATE_ERROR = 2
"""TfLiteStatus."""

MMAP_RO = 1
ARENA_RW = 2
ARENA_RW_PERSISTENT = 3
DYNAMIC = 4
PERSISTENT_RO = 5
CUSTOM_ALLOCATION = 6
"""TfLiteAllocationType. A tensor is constant for a delegate where it is MMAP_RO."""

NO_QUANTIZATION = 0
AFFINE_QUANTIZATION = 1
"""TfLiteQuantizationType; later ones (blockwise, multi-axis) are not read."""

BUILTIN_CUSTOM = 32
BUILTIN_DELEGATE = 51
"""TfLiteBuiltinOperator of a custom operator and of a node that a delegate made."""


class IntArray(ctypes.Structure):
    """TfLiteIntArray: a size, then as many ints."""

    _fields_ = [("size", c_int)]


class FloatArray(ctypes.Structure):
    """TfLiteFloatArray: a size, then as many floats."""

    _fields_ = [("size", c_int)]


class QuantizationParams(ctypes.Structure):
    """TfLiteQuantizationParams: the legacy per-tensor form."""

    _fields_ = [("scale", c_float), ("zero_point", c_int32)]


class Quantization(ctypes.Structure):
    """TfLiteQuantization: a kind, and a structure of that kind."""

    _fields_ = [("type", c_int), ("params", c_void_p)]


class AffineQuantization(ctypes.Structure):
    """TfLiteAffineQuantization."""

    _fields_ = [
        ("scale", POINTER(FloatArray)),
        ("zero_point", POINTER(IntArray)),
        ("quantized_dimension", c_int32),
    ]


class DimensionMetadata(ctypes.Structure):
    """TfLiteDimensionMetadata: one level of a sparse constant; format 0 is dense, 1 compressed."""

    _fields_ = [
        ("format", c_int),
        ("dense_size", c_int),
        ("array_segments", POINTER(IntArray)),
        ("array_indices", POINTER(IntArray)),
    ]


class Sparsity(ctypes.Structure):
    """TfLiteSparsity."""

    _fields_ = [
        ("traversal_order", POINTER(IntArray)),
        ("block_map", POINTER(IntArray)),
        ("dim_metadata", POINTER(DimensionMetadata)),
        ("dim_metadata_size", c_int),
    ]


class Tensor(ctypes.Structure):
    """TfLiteTensor. Never kept: TFLite may move its array of tensors between calls."""

    _fields_ = [
        ("type", c_int),
        ("data", c_void_p),
        ("dims", POINTER(IntArray)),
        ("params", QuantizationParams),
        ("allocation_type", c_int),
        ("bytes", c_size_t),
        ("allocation", c_void_p),
        ("name", c_char_p),
        ("delegate", c_void_p),
        ("buffer_handle", c_int),
        ("data_is_stale", c_bool),
        ("is_variable", c_bool),
        ("quantization", Quantization),
        ("sparsity", POINTER(Sparsity)),
        ("dims_signature", POINTER(IntArray)),
    ]


class Node(ctypes.Structure):
    """TfLiteNode."""

    _fields_ = [
        ("inputs", POINTER(IntArray)),
        ("outputs", POINTER(IntArray)),
        ("intermediates", POINTER(IntArray)),
        ("temporaries", POINTER(IntArray)),
        ("user_data", c_void_p),
        ("builtin_data", c_void_p),
        ("custom_initial_data", c_void_p),
        ("custom_initial_data_size", c_int),
        ("delegate", c_void_p),
        ("might_have_side_effect", c_bool),
    ]


# Contexts and nodes come into callbacks as plain addresses: a typed pointer would cost an object
# for each call, and most callbacks need neither.
InitCallback = ctypes.CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_size_t)
FreeCallback = ctypes.CFUNCTYPE(None, c_void_p, c_void_p)
NodeCallback = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p)


class Registration(ctypes.Structure):
    """TfLiteRegistration. Runtimes that know fewer of the last fields read a shorter one."""

    _fields_ = [
        ("init", InitCallback),
        ("free", FreeCallback),
        ("prepare", NodeCallback),
        ("invoke", NodeCallback),
        ("profiling_string", c_void_p),
        ("builtin_code", c_int32),
        ("custom_name", c_char_p),
        ("version", c_int),
        ("registration_external", c_void_p),
        ("async_kernel", c_void_p),
        ("inplace_operator", ctypes.c_uint64),
    ]


class DelegateParams(ctypes.Structure):
    """TfLiteDelegateParams: what one delegate kernel stands for."""

    _fields_ = [
        ("delegate", c_void_p),
        ("nodes_to_replace", POINTER(IntArray)),
        ("input_tensors", POINTER(IntArray)),
        ("output_tensors", POINTER(IntArray)),
    ]


class Context(ctypes.Structure):
    """TfLiteContext.

    GetExecutionPlan, GetNodeAndRegistration, ReplaceNodeSubsetsWithDelegateKernels and
    PreviewDelegatePartitioning work while a delegate's Prepare runs, and fail at other times.
    The unnamed fields are null in the full runtime, or of no use to a delegate.
    """

    _fields_ = [
        ("tensors_size", c_size_t),
        (
            "GetExecutionPlan",
            ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(POINTER(IntArray))),
        ),
        ("tensors", POINTER(Tensor)),
        ("impl_", c_void_p),
        ("ResizeTensor", ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p)),
        ("ReportError", ctypes.CFUNCTYPE(None, c_void_p, c_char_p)),
        ("AddTensors", c_void_p),
        (
            "GetNodeAndRegistration",
            ctypes.CFUNCTYPE(
                c_int, c_void_p, c_int, POINTER(POINTER(Node)), POINTER(POINTER(Registration))
            ),
        ),
        (
            "ReplaceNodeSubsetsWithDelegateKernels",
            ctypes.CFUNCTYPE(c_int, c_void_p, Registration, c_void_p, c_void_p),
        ),
        ("recommended_num_threads", c_int),
        ("GetExternalContext", c_void_p),
        ("SetExternalContext", c_void_p),
        ("allow_fp32_relax_to_fp16", c_bool),
        ("profiler", c_void_p),
        ("AllocatePersistentBuffer", c_void_p),
        ("AllocateBufferForEval", c_void_p),
        ("RequestScratchBufferInArena", c_void_p),
        ("GetScratchBuffer", c_void_p),
        ("ResizeTensorExplicit", c_void_p),
        (
            "PreviewDelegatePartitioning",
            ctypes.CFUNCTYPE(
                c_int, c_void_p, c_void_p, POINTER(POINTER(DelegateParams)), POINTER(c_int)
            ),
        ),
        ("GetTensor", c_void_p),
        ("GetEvalTensor", c_void_p),
        ("GetModelMetadata", c_void_p),
        ("AcquireSubgraphContext", c_void_p),
        ("ReleaseSubgraphContext", c_void_p),
    ]


_INT_DATA_OFFSET = ctypes.sizeof(IntArray)


def read_ints(pointer: IntArrayPointer) -> tuple[int, ...]:
    """The numbers of a TfLiteIntArray, none for a null pointer."""
    if not pointer:
        return ()
    address = ctypes.addressof(pointer.contents)
    return tuple((c_int * pointer.contents.size).from_address(address + _INT_DATA_OFFSET))


def read_floats(pointer: Any) -> tuple[float, ...]:
    """The numbers of a TfLiteFloatArray, none for a null pointer."""
    if not pointer:
        return ()
    address = ctypes.addressof(pointer.contents)
    return tuple((c_float * pointer.contents.size).from_address(address + _INT_DATA_OFFSET))


def make_ints(values: tuple[int, ...]) -> ctypes.Array[c_int]:
    """A TfLiteIntArray in memory of Python's: hold on to it while TFLite reads it."""
    return (c_int * (len(values) + 1))(len(values), *values)


def read_bytes(address: int | None, size: int) -> bytes:
    """A copy of memory; empty for a null address."""
    return ctypes.string_at(address, size) if address and size > 0 else b""
