"""LiteRT's reference kernels (BUILTIN_REF) as an oracle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from ai_edge_litert.interpreter import Interpreter, OpResolverType

Array = npt.NDArray[np.generic]


def reference_interpreter(model: bytes) -> Interpreter:
    """LiteRT with its plain kernels and no default delegate.

    The reference resolver of the wheel lacks some operators (CEIL, ROUND, ...): those run LiteRT's
    optimized kernels, still without XNNPACK.
    """
    try:
        return _interpreter(model, OpResolverType.BUILTIN_REF)
    except ValueError as error:
        if "Didn't find op" not in str(error):
            raise
        return _interpreter(model, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)


def _interpreter(model: bytes, resolver: OpResolverType) -> Interpreter:
    return Interpreter(model_content=model, experimental_op_resolver_type=resolver, num_threads=1)


def run_interpreter(interpreter: Interpreter, inputs: Sequence[Array]) -> list[Array]:
    """Outputs for inputs in the model's order; input shapes must be the model's."""
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return [_output(interpreter, d) for d in interpreter.get_output_details()]


def _output(interpreter: Interpreter, detail: Mapping[str, Any]) -> Array:
    # LiteRT hands out no empty tensor that it computed while allocating, a part of a SHAPE say.
    if 0 in detail["shape"]:
        return np.zeros(detail["shape"], detail["dtype"])
    return interpreter.get_tensor(detail["index"]).copy()


def reference(model: bytes, inputs: Sequence[Array]) -> list[Array]:
    """Outputs of the reference kernels."""
    return run_interpreter(reference_interpreter(model), inputs)
