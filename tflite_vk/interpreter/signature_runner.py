"""A signature as a function: arrays in by name, arrays out by name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from tflite_vk.frontend.flatbuffer import Signature
    from tflite_vk.interpreter.interpreter import Interpreter


class SignatureRunner:
    """Runs one signature; made by `Interpreter.get_signature_runner`.

    runner = interpreter.get_signature_runner("serving_default")
    result = runner(x=image)["output_0"]
    """

    def __init__(self, interpreter: Interpreter, signature: Signature) -> None:
        self._interpreter = interpreter
        self._signature = signature

    def __call__(self, **kwargs: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
        """Run the signature, resizing its inputs to the arrays given.

        Args:
            **kwargs: an array for each input, by the signature's names.

        Returns:
            Arrays of the outputs by the signature's names.

        Raises:
            ValueError: an input is missing, unknown, or of another type.
            RuntimeError: the shapes do not fit the model.
        """
        wanted = self._signature.inputs
        if len(kwargs) != len(wanted):
            raise ValueError(
                "Invalid number of inputs provided for running a SignatureDef,"
                f" expected {len(wanted)} vs provided {len(kwargs)}"
            )
        for name in kwargs:
            if name not in wanted:
                raise ValueError(
                    f"Invalid Input name ({name}) for SignatureDef (its inputs: {sorted(wanted)})"
                )
        arrays = {name: np.asarray(value) for name, value in kwargs.items()}
        return self._interpreter._run_signature(self._signature, arrays)

    def get_input_details(self) -> dict[str, dict[str, Any]]:
        """Details of each input by the signature's names; the keys are `Interpreter`'s."""
        return self._interpreter._signature_details(self._signature, self._signature.inputs)

    def get_output_details(self) -> dict[str, dict[str, Any]]:
        """Details of each output by the signature's names; the keys are `Interpreter`'s."""
        return self._interpreter._signature_details(self._signature, self._signature.outputs)


def find_signature(signatures: Iterable[Signature], key: str | None) -> Signature:
    """The signature with a key; None for the only one. ValueError where there is none such."""
    by_key = {s.key: s for s in signatures}
    if key is None:
        if len(by_key) != 1:
            raise ValueError(
                f"SignatureDef signature_key is None and model has {len(by_key)} Signatures."
                " None is only allowed when the model has 1 SignatureDef"
            )
        key = next(iter(by_key))
    if key not in by_key:
        raise ValueError(
            f'Invalid signature_key provided: "{key}" (the model has: {sorted(by_key)}).'
        )
    return by_key[key]
