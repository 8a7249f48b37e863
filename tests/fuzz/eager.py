"""One operator at a time on LiteRT's reference kernels: what a graph's values are while it grows.

A graph is built from values that are known, so a generator can ask for positive ones, or for a
shape, and never makes a graph that LiteRT refuses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.support.case import Array
from tests.support.oracle import reference_interpreter
from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import Attributes
from tflite_vk.ir.graph import Quantization
from tflite_vk.testing.model_writer import ModelWriter, TensorSpec


class RefusedError(Exception):
    """LiteRT does not run this, or the fuzzer does not want it; another operator is drawn."""


@dataclass(frozen=True)
class Operand:
    """What an operator reads.

    Attributes:
        array: value.
        is_const: stands in the file.
        quantization: None for none.
        dtype: element type where the array doesn't tell.
    """

    array: Array
    is_const: bool
    quantization: Quantization | None = None
    dtype: DType | None = None


_NO_SHAPE = (7919,)
"""LiteRT works out the shapes; a declared one of as many elements it would leave as it is."""


@dataclass(frozen=True)
class Result:
    """What an operator writes.

    Attributes:
        dtype: element type.
        quantization: None for none.
        shape: where LiteRT wants it declared; else it works it out.
    """

    dtype: DType
    quantization: Quantization | None = None
    shape: tuple[int, ...] | None = None


class OneOperator:
    """An operator loaded in LiteRT, to be run on other values of the same shapes too."""

    def __init__(
        self,
        op: str,
        operands: Sequence[Operand | None],
        results: Sequence[Result],
        attributes: Attributes | None,
        version: int,
    ) -> None:
        """Load it.

        Raises:
            RefusedError: LiteRT does not.
        """
        w = ModelWriter()
        ids = [None if x is None else _add(w, x) for x in operands]
        outs = [TensorSpec(r.shape or _NO_SHAPE, r.dtype, r.quantization) for r in results]
        w.output(*w.multi_op(op, ids, outs, attributes, version))
        self._operands = operands
        try:
            self._interpreter: Any = reference_interpreter(w.build())
            self._interpreter.allocate_tensors()
        except (RuntimeError, ValueError) as error:
            raise RefusedError(f"{op}: {error}") from None

    def run(self, arrays: Sequence[Array | None]) -> list[Array]:
        """Outputs for values of the operands; those of constants are not looked at.

        Raises:
            RefusedError: LiteRT fails.
        """
        given = [
            a
            for a, x in zip(arrays, self._operands, strict=True)
            if x is not None and not x.is_const
        ]
        interpreter = self._interpreter
        try:
            for detail, array in zip(interpreter.get_input_details(), given, strict=True):
                interpreter.set_tensor(detail["index"], array)
            interpreter.invoke()
            return [
                np.array(interpreter.get_tensor(d["index"]))
                for d in interpreter.get_output_details()
            ]
        except (RuntimeError, ValueError) as error:
            raise RefusedError(str(error)) from None


def _add(w: ModelWriter, x: Operand) -> int:
    if x.is_const:
        return w.const(x.array, dtype=x.dtype, quantization=x.quantization)
    dtype = next(t for t in DType if t.value.numpy is not None and t.numpy == x.array.dtype)
    return w.input(x.array.shape, dtype=dtype, quantization=x.quantization)
