"""The fused elementwise program of a kernel: which steps fit, and the words that hold them.

The numbers are those of `shaders/include/epilogue.glsl`; `tests/unit/test_epilogue.py` holds the
two together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tflite_vk.ir.attributes import Activation, GeluAttributes, LeakyReluAttributes
from tflite_vk.ir.graph import Step, Tensor
from tflite_vk.program import float_word
from tflite_vk.shape import Shape, inner, pad_rank, rows

MAX_STEPS = 8
LIGHT_STEPS = 4
MAX_OPERANDS = 3
MAX_IMMEDIATES = 4

UNARY_CODES = {
    "RELU": 1,
    "RELU6": 2,
    "RELU_N1_TO_1": 3,
    "RELU_0_TO_1": 4,
    "TANH": 5,
    "LOGISTIC": 6,
    "HARD_SWISH": 7,
    "ABS": 8,
    "NEG": 9,
    "EXP": 10,
    "LOG": 11,
    "SQRT": 12,
    "RSQRT": 13,
    "SQUARE": 14,
    "SIN": 15,
    "COS": 16,
    "FLOOR": 17,
    "CEIL": 18,
    "ROUND": 19,
    "SIGN": 20,
    "ELU": 21,
    "GELU": 22,
    "GELU_TANH": 23,
}
BINARY_CODES = {
    "ADD": 32,
    "SUB": 33,
    "MUL": 34,
    "DIV": 35,
    "MINIMUM": 36,
    "MAXIMUM": 37,
    "POW": 38,
    "SQUARED_DIFFERENCE": 39,
    "FLOOR_DIV": 40,
    "FLOOR_MOD": 41,
    "PRELU": 42,
    "ATAN2": 43,
}
LIGHT_OPS = frozenset(
    {
        "RELU",
        "RELU6",
        "RELU_N1_TO_1",
        "RELU_0_TO_1",
        "LOGISTIC",
        "HARD_SWISH",
        "ABS",
        "NEG",
        "SQUARE",
        "SQRT",
        "RSQRT",
        "LEAKY_RELU",
        "PRELU",
        "ADD",
        "SUB",
        "MUL",
        "DIV",
        "MINIMUM",
        "MAXIMUM",
        "SQUARED_DIFFERENCE",
    }
)
"""What the plain build of a kernel has; any other step, or a fifth one, takes the `_full` build."""

_COMMUTATIVE = frozenset({"ADD", "MUL", "SQUARED_DIFFERENCE"})

MODE_CODES = {"full": 1, "channel": 2, "scalar": 3, "row": 4, "immediate": 5}

ACTIVATION_STEPS: Mapping[Activation, str] = {
    "RELU": "RELU",
    "RELU6": "RELU6",
    "RELU_N1_TO_1": "RELU_N1_TO_1",
    "TANH": "TANH",
    "SIGMOID": "LOGISTIC",
}
"""Fused activations and the operator each stands for. SIGN_BIT has none: no kernel of TFLite has it."""


@dataclass(frozen=True)
class Epilogue:
    """Words of a fused chain.

    Attributes:
        spec: MAX_STEPS step words, specialization constants 3 to 10.
        immediates: MAX_IMMEDIATES push constant words.
        operands: tensor ids to bind, at most MAX_OPERANDS.
        is_light: the plain build of the kernel has all it needs.
    """

    spec: tuple[int, ...]
    immediates: tuple[int, ...]
    operands: tuple[int, ...]
    is_light: bool


def operand_mode(operand: Shape, result: Shape) -> str | None:
    """How an operand of one shape meets a result of another; None where only a kernel of its own can.

    Decided on logical sizes: a one-element tensor is a scalar whatever its padding.
    """
    if len(operand) > len(result):
        if any(d != 1 for d in operand[: len(operand) - len(result)]):
            return None
        operand = operand[len(operand) - len(result) :]
    full = pad_rank(operand, len(result))
    if full == tuple(result):
        return "full"
    if all(d == 1 for d in full):
        return "scalar"
    if rows(full) == 1 and inner(full) == inner(result):
        return "channel"
    if full[:-1] == tuple(result[:-1]) and full[-1] == 1:
        return "row"
    return None


def is_step(op: str) -> bool:
    """True for an operator that can be a step."""
    return op in UNARY_CODES or op in BINARY_CODES or op == "LEAKY_RELU"


class _Packer:
    """Collects operands and immediates while steps are packed; None once they don't fit."""

    def __init__(self, tensors: Mapping[int, Tensor], result: Shape) -> None:
        self.tensors = tensors
        self.result = result
        self.operands: list[int] = []
        self.immediates: list[int] = []

    def immediate(self, value: float) -> int | None:
        """Slot of an immediate."""
        word = float_word(value)
        if word not in self.immediates:
            if len(self.immediates) == MAX_IMMEDIATES:
                return None
            self.immediates.append(word)
        return self.immediates.index(word)

    def operand(self, tensor_id: int) -> tuple[int, str] | None:
        """Slot and mode of an operand."""
        tensor = self.tensors[tensor_id]
        if tensor.data is not None and tensor.num_elements == 1:
            slot = self.immediate(float(np.asarray(tensor.data).reshape(-1)[0]))
            if slot is not None:
                return slot, "immediate"
        mode = operand_mode(tensor.shape, self.result)
        if mode is None:
            return None
        if tensor_id not in self.operands:
            if len(self.operands) == MAX_OPERANDS:
                return None
            self.operands.append(tensor_id)
        return self.operands.index(tensor_id), mode

    def word(self, step: Step) -> int | None:
        """The step's word."""
        if step.op == "LEAKY_RELU":
            assert isinstance(step.attributes, LeakyReluAttributes)
            slot = self.immediate(step.attributes.alpha)
            return None if slot is None else _word(BINARY_CODES["PRELU"], slot, "immediate", False)
        if step.op == "GELU":
            assert isinstance(step.attributes, GeluAttributes)
            return UNARY_CODES["GELU_TANH" if step.attributes.approximate else "GELU"]
        if step.operand is None:
            return UNARY_CODES[step.op]
        found = self.operand(step.operand)
        if found is None:
            return None
        # Either side is the same bits, and one pipeline to compile instead of two.
        is_first = step.operand_first and step.op not in _COMMUTATIVE
        return _word(BINARY_CODES[step.op], *found, is_first)


def _word(code: int, slot: int, mode: str, operand_first: bool) -> int:
    return code | slot << 8 | MODE_CODES[mode] << 10 | int(operand_first) << 13


def build_epilogue(
    steps: Sequence[Step], result: Shape, tensors: Mapping[int, Tensor]
) -> Epilogue | None:
    """Pack steps for a result of the given shape; None where they don't fit one kernel."""
    if len(steps) > MAX_STEPS:
        return None
    packer = _Packer(tensors, result)
    words: list[int] = []
    for step in steps:
        word = packer.word(step)
        if word is None:
            return None
        words.append(word)
    return Epilogue(
        spec=(*words, *[0] * (MAX_STEPS - len(words))),
        immediates=(*packer.immediates, *[0] * (MAX_IMMEDIATES - len(packer.immediates))),
        operands=tuple(packer.operands),
        is_light=len(steps) <= LIGHT_STEPS and all(s.op in LIGHT_OPS for s in steps),
    )
