"""LiteRT's interpreters: the reference kernels, the CPU kernels users run, and ours beside them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_vk.delegate.delegate import VulkanDelegate
from tflite_vk.errors import Error
from tflite_vk.options import DelegateOptions

Array = npt.NDArray[Any]

INSTALL_HINT = "pip install 'tflite_vk[litert]'"


class LiteRTError(Error, RuntimeError):
    """LiteRT is missing, or can't run the model."""


def load_litert() -> Any:
    """The module `ai_edge_litert.interpreter`.

    Raises:
        LiteRTError: it isn't installed; says what to install.
    """
    try:
        from ai_edge_litert import interpreter
    except ImportError as error:
        raise LiteRTError(
            f"this needs LiteRT's CPU kernels, which can't be imported ({error}); {INSTALL_HINT}"
        ) from None
    return interpreter


def has_litert() -> bool:
    """True where LiteRT is installed."""
    with contextlib.suppress(LiteRTError):
        load_litert()
        return True
    return False


@contextlib.contextmanager
def litert_errors(what: str) -> Iterator[None]:
    """Turn what LiteRT raises into a LiteRTError; our own errors pass through its messages."""
    try:
        yield
    except Error:
        raise
    except (RuntimeError, ValueError) as error:
        raise LiteRTError(f"{what}: {' '.join(str(error).split())}") from None


def reference_interpreter(
    content: bytes,
    *,
    preserve_all_tensors: bool = False,
    delegates: Sequence[Any] = (),
) -> tuple[Any, str]:
    """LiteRT with its reference kernels, and the name of its kernels.

    The reference resolver of the wheel lacks some operators (CEIL, ROUND, ...). A model that has
    one runs on the optimized kernels, still without XNNPACK.

    Args:
        content: the model.
        preserve_all_tensors: keep intermediate values to be read.
        delegates: take what they take.

    Raises:
        LiteRTError: LiteRT is missing, or can't load the model.
    """
    litert = load_litert()
    resolvers = litert.OpResolverType

    def make(resolver: Any) -> Any:
        return litert.Interpreter(
            model_content=content,
            experimental_op_resolver_type=resolver,
            experimental_preserve_all_tensors=preserve_all_tensors,
            experimental_delegates=list(delegates) or None,
            num_threads=1,
        )

    with litert_errors("LiteRT can't load the model"):
        try:
            return make(resolvers.BUILTIN_REF), "BUILTIN_REF"
        except ValueError as error:
            if "Didn't find op" not in str(error):
                raise
            name = "BUILTIN_WITHOUT_DEFAULT_DELEGATES"
            return make(getattr(resolvers, name)), name


def cpu_interpreter(content: bytes, num_threads: int | None = None) -> Any:
    """LiteRT as users run it on the CPU, with XNNPACK.

    Raises:
        LiteRTError: LiteRT is missing, or can't load the model.
    """
    litert = load_litert()
    with litert_errors("LiteRT can't load the model"):
        return litert.Interpreter(model_content=content, num_threads=num_threads)


def delegate_interpreter(
    content: bytes, options: DelegateOptions, num_threads: int | None = None
) -> tuple[Any, VulkanDelegate]:
    """LiteRT as users run it with our delegate.

    Raises:
        LiteRTError: LiteRT is missing, or can't load the model.
        Error: the options or the device are no good.
    """
    litert = load_litert()
    delegate = VulkanDelegate(options)
    with litert_errors("LiteRT can't load the model"):
        interpreter = litert.Interpreter(
            model_content=content, experimental_delegates=[delegate], num_threads=num_threads
        )
    return interpreter, delegate


def allocate(interpreter: Any, inputs: Mapping[int, Array]) -> None:
    """Give the inputs the shapes of their values and allocate.

    Args:
        interpreter: LiteRT's or ours.
        inputs: by tensor id.

    Raises:
        LiteRTError: the shapes don't fit the model.
    """
    with litert_errors("can't allocate tensors"):
        for detail in interpreter.get_input_details():
            value = inputs.get(detail["index"])
            if value is not None and tuple(detail["shape"]) != value.shape:
                interpreter.resize_tensor_input(detail["index"], list(value.shape))
        interpreter.allocate_tensors()


def run(interpreter: Any, inputs: Mapping[int, Array]) -> list[Array]:
    """Outputs of one run from fresh variables, in the model's order.

    Args:
        interpreter: LiteRT's or ours, allocated.
        inputs: by tensor id.

    Raises:
        LiteRTError: it fails.
    """
    with litert_errors("can't run the model"):
        interpreter.reset_all_variables()
        for tensor_id, value in inputs.items():
            interpreter.set_tensor(tensor_id, value)
        interpreter.invoke()
        return [
            np.array(interpreter.get_tensor(d["index"])) for d in interpreter.get_output_details()
        ]
