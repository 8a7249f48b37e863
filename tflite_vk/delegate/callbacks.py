"""The C functions TFLite calls, and the way from a C address back to a Python object.

There is one set of callbacks for all delegates and it is never freed: a NumPy array of
`Interpreter.tensor()` can keep the native interpreter alive after the Python one and its delegates
are gone, and it still calls the kernels' free. For the same reason a TfLiteDelegate that TFLite has
seen is never freed (56 bytes). Objects are found by a number that C carries for us; a number that
is known no more is an error in words, where a stale pointer would be a crash.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import logging
import threading
from collections.abc import Callable
from typing import Protocol

from tflite_vk import tflite_abi as abi
from tflite_vk.delegate.abi import (
    ALLOW_DYNAMIC_TENSORS,
    INIT_FAILED,
    REQUIRE_PROPAGATED_SHAPES,
    Delegate,
    report_error,
)
from tflite_vk.errors import Error

logger = logging.getLogger("tflite_vk")

KERNEL_NAME = b"TfLiteVulkanDelegate"


class KernelCallbacks(Protocol):
    """What stands behind a delegate kernel's node."""

    def prepare(self, context: int, node: int) -> None:
        """Make ready for the present shapes; raise to fail."""
        ...

    def invoke(self, context: int) -> None:
        """Run; raise to fail."""
        ...

    def free(self) -> None:
        """TFLite needs the kernel no more. Never raises."""
        ...


class DelegateCallbacks(Protocol):
    """What stands behind a TfLiteDelegate."""

    def prepare(self, context: int, delegate: int) -> int:
        """Choose nodes of a subgraph and have them replaced; the status for TFLite.

        Args:
            context: TfLiteContext of the subgraph.
            delegate: TfLiteDelegate that TFLite was given.
        """
        ...

    def make_kernel(self, context: int, params: abi.DelegateParams) -> KernelCallbacks:
        """The kernel for one partition; raise to fail."""
        ...


_delegates: dict[int, DelegateCallbacks] = {}
_kernels: dict[int, KernelCallbacks] = {}
_structures: dict[int, Delegate] = {}
# Reentrant: the garbage collector may destroy an interpreter, and so free kernels, at any time.
_lock = threading.RLock()
_numbers = itertools.count(1)


def register_delegate(delegate: DelegateCallbacks) -> int:
    """Make a TfLiteDelegate that calls an object; its address, good for the process's life."""
    with _lock:
        number = next(_numbers)
        flags = ALLOW_DYNAMIC_TENSORS | REQUIRE_PROPAGATED_SHAPES
        structure = Delegate(number, _PREPARE_DELEGATE, None, None, None, flags, None)
        address = ctypes.addressof(structure)
        _structures[address] = structure
        _delegates[number] = delegate
    return address


def forget_delegate(address: int, *, was_seen: bool) -> None:
    """Let go of the object; of the structure too where TFLite has never seen it."""
    with _lock:
        structure = _structures[address]
        _delegates.pop(structure.data_, None)
        if not was_seen:
            del _structures[address]


def propagate_no_shapes(address: int) -> None:
    """Have TFLite leave shapes to the kernels, which resize their outputs where it has not.

    To propagate shapes it prepares the very nodes that a kernel replaces, and so fails at a custom
    operator that it has no kernel for.
    """
    Delegate.from_address(address).flags &= ~REQUIRE_PROPAGATED_SHAPES


def live_kernels() -> int:
    """Number of kernels that TFLite holds, for tests."""
    return len(_kernels)


def _guard(context: int, what: str, run: Callable[[], int], failed: int) -> int:
    """Run a callback; an exception becomes an error message and the status of failure.

    Nothing may escape: ctypes prints an exception and returns garbage to C.
    """
    try:
        return run()
    except Error as error:
        text = f"{what}: {error}"
    except KeyboardInterrupt:
        text = f"{what}: interrupted"
    except BaseException as error:
        text = f"{what}: {type(error).__name__}: {error}"
        logger.debug("%s", text, exc_info=True)
    with contextlib.suppress(BaseException):  # nobody is left to tell
        report_error(context, text)
    return failed


def _prepare_delegate(context: int, delegate: int) -> int:
    def run() -> int:
        number = Delegate.from_address(delegate).data_
        found = _delegates.get(number)
        if found is None:
            raise Error("the delegate is gone; keep a reference while interpreters are made")
        return found.prepare(context, delegate)

    return _guard(context, "Vulkan delegate Prepare", run, abi.ERROR)


def _init_kernel(context: int, buffer: int, length: int) -> int:
    del length  # 0 for a delegate's kernel, whose buffer is a structure

    def run() -> int:
        params = abi.DelegateParams.from_address(buffer)
        number = Delegate.from_address(params.delegate).data_
        kernel = _delegates[number].make_kernel(context, params)
        with _lock:
            handle = next(_numbers)
            _kernels[handle] = kernel
        return handle

    return _guard(context, "Vulkan delegate Init", run, INIT_FAILED)


def _free_kernel(
    context: int,
    handle: int,
    kernels: dict[int, KernelCallbacks] = _kernels,
    lock: threading.RLock = _lock,
) -> None:
    # Runs while Python exits, too, when this module's names are gone: hence the defaults, and no
    # helper that would have to be looked up.
    del context  # may be half destroyed
    try:
        with lock:
            kernel = kernels.pop(handle, None)
        if kernel is not None:
            kernel.free()
    except BaseException:  # C can't be told
        pass


def _prepare_kernel(context: int, node: int) -> int:
    def run() -> int:
        _kernels[_handle(node)].prepare(context, node)
        return abi.OK

    return _guard(context, "Vulkan delegate Prepare", run, abi.ERROR)


def _invoke_kernel(context: int, node: int) -> int:
    def run() -> int:
        _kernels[_handle(node)].invoke(context)
        return abi.OK

    return _guard(context, "Vulkan delegate Invoke", run, abi.ERROR)


def _handle(node: int) -> int:
    handle: int = ctypes.c_void_p.from_address(node + _USER_DATA_OFFSET).value or 0
    return handle


_USER_DATA_OFFSET = abi.Node.user_data.offset


_PREPARE_DELEGATE = abi.NodeCallback(_prepare_delegate)
_INIT_KERNEL = abi.InitCallback(_init_kernel)
_FREE_KERNEL = abi.FreeCallback(_free_kernel)
_PREPARE_KERNEL = abi.NodeCallback(_prepare_kernel)
_INVOKE_KERNEL = abi.NodeCallback(_invoke_kernel)


def make_registration() -> abi.Registration:
    """The registration of the delegate's kernels."""
    return abi.Registration(
        init=_INIT_KERNEL,
        free=_FREE_KERNEL,
        prepare=_PREPARE_KERNEL,
        invoke=_INVOKE_KERNEL,
        custom_name=KERNEL_NAME,
        version=1,
    )
