"""The epilogue's words, and that Python and GLSL mean the same by them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tflite_vk import epilogue
from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import LeakyReluAttributes
from tflite_vk.ir.graph import Step, Tensor

GLSL = (Path(__file__).parents[2] / "shaders/include/epilogue.glsl").read_text()


def _constants(prefix: str) -> dict[str, int]:
    found = re.findall(rf"const uint {prefix}(\w+) = (\d+)u;", GLSL)
    return {name: int(value) for name, value in found}


def test_operator_numbers_are_those_of_the_shader() -> None:
    numbers = _constants("OP_")
    assert numbers.pop("NONE") == 0
    assert numbers == {**epilogue.UNARY_CODES, **epilogue.BINARY_CODES}


def test_mode_numbers_are_those_of_the_shader() -> None:
    assert {k.upper(): v for k, v in epilogue.MODE_CODES.items()} == _constants("MODE_")


def test_the_light_build_has_the_light_operators() -> None:
    cases = re.sub(r"#ifdef EPILOGUE_FULL\n.*?#endif\n", "", GLSL, flags=re.DOTALL)
    in_light = set(re.findall(r"case OP_(\w+):", cases))
    assert in_light == epilogue.LIGHT_OPS - {"LEAKY_RELU"}
    full, light = re.findall(r"const uint NUM_STEPS = (.*?);", GLSL, flags=re.DOTALL)
    assert full.count("!= 0u") == epilogue.MAX_STEPS
    assert light.count("!= 0u") == epilogue.LIGHT_STEPS


@pytest.mark.parametrize(
    ("operand", "result", "mode"),
    [
        ((1, 4, 5, 3), (1, 4, 5, 3), "full"),
        ((3,), (1, 4, 5, 3), "channel"),
        ((1, 1, 1, 3), (1, 4, 5, 3), "channel"),
        ((1, 4, 5, 1), (1, 4, 5, 3), "row"),
        ((), (1, 4, 5, 3), "scalar"),
        ((1, 1, 1, 1), (1, 4, 5, 3), "scalar"),
        # One element is a scalar only where the result isn't one element too; both read lane 0.
        ((1,), (1, 1), "full"),
        ((2, 1, 1, 3), (2, 4, 5, 3), None),
        ((5, 3), (1, 4, 5, 3), None),
        ((2, 3), (3,), None),
        ((1, 1, 3), (3,), "full"),
    ],
)
def test_operand_mode(operand: tuple[int, ...], result: tuple[int, ...], mode: str | None) -> None:
    assert epilogue.operand_mode(operand, result) == mode


def _tensor(i: int, shape: tuple[int, ...], value: float | None = None) -> Tensor:
    data = None if value is None else np.full(shape, value, np.float32)
    return Tensor(i, f"t{i}", shape, DType.FLOAT32, data=data)


@pytest.mark.parametrize("op", sorted(epilogue.BINARY_CODES))
def test_the_side_counts_only_where_it_changes_the_result(op: str) -> None:
    tensors = {1: _tensor(1, (2, 5))}
    first, second = (
        epilogue.build_epilogue([Step(op, 1, operand_first=side)], (2, 5), tensors)
        for side in (True, False)
    )
    commutes = op in {"ADD", "MUL", "SQUARED_DIFFERENCE"}
    assert (first == second) == commutes


def test_constant_scalars_become_immediates_and_are_shared() -> None:
    tensors = {1: _tensor(1, (), 2.0), 2: _tensor(2, (1,), 2.0), 3: _tensor(3, (2, 5))}
    steps = [
        Step("MUL", 1),
        Step("SUB", 2, operand_first=True),
        Step("ADD", 3),
        Step("LEAKY_RELU", attributes=LeakyReluAttributes(0.5)),
    ]
    built = epilogue.build_epilogue(steps, (2, 5), tensors)
    assert built is not None
    assert built.immediates == (0x40000000, 0x3F000000, 0, 0)
    assert built.operands == (3,)
    assert built.spec[:4] == (
        34 | 5 << 10,
        33 | 5 << 10 | 1 << 13,
        32 | 1 << 10,
        42 | 1 << 8 | 5 << 10,
    )
    assert built.spec[4:] == (0, 0, 0, 0)


def test_what_does_not_fit_is_declined() -> None:
    tensors = {i: _tensor(i, (2, 5)) for i in range(5)}
    assert epilogue.build_epilogue([Step("RELU")] * 9, (2, 5), tensors) is None
    assert epilogue.build_epilogue([Step("ADD", i) for i in range(3)], (2, 5), tensors) is not None
    assert epilogue.build_epilogue([Step("ADD", i) for i in range(4)], (2, 5), tensors) is None
    # A fifth constant scalar finds no immediate left and takes an operand binding.
    scalars = {i: _tensor(i, (), float(i + 1)) for i in range(5)}
    built = epilogue.build_epilogue([Step("ADD", i) for i in range(5)], (2, 5), scalars)
    assert built is not None
    assert built.operands == (4,)
