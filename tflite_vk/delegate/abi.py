"""What a delegate fills in or calls of TFLite's C interface; `tflite_abi` has what it reads."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Collection
from ctypes import c_int, c_int64, c_void_p

from tflite_vk import tflite_abi as abi
from tflite_vk.errors import DeviceError
from tflite_vk.shape import Shape

ALLOW_DYNAMIC_TENSORS = 1
REQUIRE_PROPAGATED_SHAPES = 2
"""TfLiteDelegateFlags."""

INIT_FAILED = ctypes.c_size_t(-1).value
"""kTfLiteKernelInitFailed: what a kernel's init returns to fail."""

_REPORT_CHARACTERS = 240
"""Of one ReportError call: TFLite formats into 1024 bytes and drops the rest."""


class Delegate(ctypes.Structure):
    """TfLiteDelegate."""

    _fields_ = [
        ("data_", c_void_p),
        ("Prepare", abi.NodeCallback),
        ("CopyFromBufferHandle", c_void_p),
        ("CopyToBufferHandle", c_void_p),
        ("FreeBufferHandle", c_void_p),
        ("flags", c_int64),
        ("opaque_delegate_builder", c_void_p),
    ]


def report_error(context: int, text: str) -> None:
    """Hand a message to TFLite, which makes it part of the exception it raises.

    The text is the format itself: variable arguments have an ABI of their own on some machines.
    """
    report = abi.Context.from_address(context).ReportError
    if not report:
        return
    line = text if text.endswith("\n") else text + "\n"
    for start in range(0, len(line), _REPORT_CHARACTERS):
        part = line[start : start + _REPORT_CHARACTERS].replace("%", "%%").replace("\0", " ")
        report(context, part.encode("utf-8", "replace"))


def replace_nodes(
    context: int, registration: abi.Registration, nodes: Collection[int], delegate: int
) -> int:
    """Have TFLite put kernels in place of nodes; their init runs before this returns its status."""
    wanted = abi.make_ints(tuple(nodes))
    replace = abi.Context.from_address(context).ReplaceNodeSubsetsWithDelegateKernels
    status: int = replace(context, registration, ctypes.addressof(wanted), delegate)
    return status


@functools.cache
def _malloc() -> Callable[[int], int | None]:
    """The C library's, found when first needed."""
    malloc = ctypes.CDLL(None).malloc
    malloc.restype, malloc.argtypes = c_void_p, [ctypes.c_size_t]
    return malloc


def resize_tensor(context: int, tensor: int, shape: Shape) -> None:
    """Give a tensor another shape, and so its memory another size.

    Raises:
        DeviceError: TFLite refuses.
    """
    # TFLite frees the array with free(), so it has to come from malloc().
    size = ctypes.sizeof(c_int) * (len(shape) + 1)
    array = _malloc()(size)
    if not array:
        raise DeviceError(f"no memory for a shape of {len(shape)} dimensions")
    ctypes.memmove(array, abi.make_ints(shape), size)
    structure = abi.Context.from_address(context)
    address = ctypes.addressof(structure.tensors[tensor])
    status = structure.ResizeTensor(context, address, array)
    if status != abi.OK:
        raise DeviceError(f"TFLite can't resize tensor {tensor} to {list(shape)} (status {status})")
