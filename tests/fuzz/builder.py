"""Grows a random graph whose values, and how far a right device may be from them, are known.

Errors are followed through the graph instead of being guessed from its depth. A value carries
`err`: how far, in absolute terms, a device may be off that computes every operator to the last few
bits. An operator adds what its own arithmetic may lose, and passes on what its inputs are off by as
far as its output moves when they are moved by that much: it is run once more on perturbed inputs.
Where nothing can be lost (copies, comparisons, sums of small whole numbers) err stays 0 and the
device has to agree bit for bit; operators with jumps only ever get such values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from tests.fuzz.eager import OneOperator, Operand, RefusedError, Result
from tests.support.case import Array
from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import Attributes, ReshapeAttributes
from tflite_vk.ir.graph import Quantization
from tflite_vk.testing.model_writer import ModelWriter, TensorSpec
from tflite_vk.testing.serialize import dtype_of

SIZES = (1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 11, 13, 16, 17, 21)
LARGE_SIZES = (1, 2, 3, 5, 16, 31, 64, 65, 127, 128, 130, 257, 300)
MAX_ELEMENTS = 3000
MAX_INPUTS = 4
MAX_MAGNITUDE = 2000.0
MAX_ERROR_OF_SCALE = 1e-3
TRANSCENDENTAL = 1e-5
"""What a function such as EXP may lose of its output's scale: issue 2's tolerance."""
ROUNDING = 1e-6
"""What a few float32 operations may lose."""
SAFETY = 10.0
"""A device is wrong where it is further off than err times this."""


@dataclass(eq=False)
class Value:
    """A tensor of the graph.

    Attributes:
        tensor: its index.
        array: its value.
        err: how far a right device may be off; 0 for values that have to agree in every bit.
        quantization: None for none.
        is_const: stands in the file.
        uses: how many operators read it.
        dtype: element type where the array doesn't tell: INT4.
    """

    tensor: int
    array: Array
    err: float = 0.0
    quantization: Quantization | None = None
    is_const: bool = False
    uses: int = 0
    dtype: DType | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        return self.array.shape

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return self.array.ndim

    @property
    def is_float(self) -> bool:
        """True for float32."""
        return self.array.dtype == np.float32

    @property
    def is_quantized(self) -> bool:
        """True for integers with a scale."""
        return self.quantization is not None

    @property
    def result(self) -> Result:
        """What an operator writes that only moves it."""
        return Result(dtype_of(self.array), self.quantization)

    @property
    def scale(self) -> float:
        """Largest magnitude."""
        return magnitude(self.array)


T = TypeVar("T")

Input = Value | Array | None
"""What an operator may be given: a value, a constant to be made, or nothing."""
Accept = Callable[[Value], bool]


def magnitude(array: Array) -> float:
    """Largest magnitude, 0 for an empty array."""
    return float(np.max(np.abs(array.astype(np.float64)), initial=0.0))


def grain(array: Array) -> int | None:
    """The least g for which all values are multiples of 2**-g; None above 8."""
    x = array.astype(np.float64)
    for g in range(9):
        scaled = x * 2**g
        if np.array_equal(scaled, np.rint(scaled)):
            return g
    return None


@dataclass
class Graph:
    """A finished graph.

    Attributes:
        data: the .tflite file.
        inputs: values in the model's order.
        outputs: values in the model's order.
        tolerances: absolute, of each output; 0 asks for the same bits.
        ops: names of its operators.
        values: of every run-time tensor, by index.
        allowed: tolerance of every run-time tensor, by index.
    """

    data: bytes
    inputs: list[Array]
    outputs: list[Array]
    tolerances: list[float]
    ops: list[str]
    values: dict[int, Array]
    allowed: dict[int, float]


@dataclass
class Builder:
    """What generators work with.

    Attributes:
        rng: all randomness of the graph.
        group: "float" or "quantized": what its values mostly are.
    """

    rng: np.random.Generator
    group: str = "float"
    writer: ModelWriter = field(default_factory=ModelWriter)
    values: list[Value] = field(default_factory=list)
    inputs: list[Value] = field(default_factory=list)

    # Chance

    def chance(self, p: float) -> bool:
        """True with a probability."""
        return bool(self.rng.random() < p)

    def choice(self, items: Sequence[T]) -> T:
        """One of several."""
        return items[int(self.rng.integers(len(items)))]

    def integer(self, low: int, high: int) -> int:
        """A whole number, both ends included."""
        return int(self.rng.integers(low, high + 1))

    def shape(self, rank: int, limit: int = MAX_ELEMENTS) -> tuple[int, ...]:
        """A random shape of few elements, now and then of more."""
        sizes = SIZES
        if limit == MAX_ELEMENTS and self.chance(0.05):
            sizes, limit = LARGE_SIZES, 8 * MAX_ELEMENTS
        while True:
            shape = tuple(self.choice(sizes) for _ in range(rank))
            if int(np.prod(shape)) <= limit:
                return shape

    def floats(self, shape: Sequence[int], *, exact: bool, scale: float = 2.0) -> Array:
        """Random float32 values: small multiples of a half, or any."""
        if exact:
            return np.asarray(self.rng.integers(-6, 7, shape) * np.float64(0.5), np.float32)
        return np.asarray(self.rng.uniform(-scale, scale, shape), np.float32)

    # Values

    def input(self, array: Array, quantization: Quantization | None = None) -> Value:
        """A graph input with this value.

        Raises:
            RefusedError: there are enough.
        """
        array = np.asarray(array)
        if len(self.inputs) >= MAX_INPUTS:
            raise RefusedError("enough inputs")
        tensor = self.writer.input(array.shape, dtype=dtype_of(array), quantization=quantization)
        value = Value(tensor, array, quantization=quantization)
        self.inputs.append(value)
        self.values.append(value)
        return value

    def const(
        self, array: Array, quantization: Quantization | None = None, dtype: DType | None = None
    ) -> Value:
        """A constant; some of the float ones are stored as float16, as converters do."""
        array = np.asarray(array)
        if array.dtype == np.float32 and array.size > 1 and self.chance(0.15):
            half = array.astype(np.float16)
            return Value(self.writer.half_const(half), half.astype(np.float32), is_const=True)
        tensor = self.writer.const(array, dtype=dtype, quantization=quantization)
        return Value(tensor, array, quantization=quantization, is_const=True, dtype=dtype)

    def pick(self, accept: Accept) -> Value | None:
        """A value of the graph, rather one that is new or unused; None where there is none."""
        found = [v for v in self.values if accept(v)]
        if not found:
            return None
        weights = np.array([(1.0 + 3.0 * (v.uses == 0)) * (1.0 + i) for i, v in enumerate(found)])
        return found[int(self.rng.choice(len(found), p=weights / weights.sum()))]

    def any(self, rank: int | Sequence[int] | None = None, accept: Accept | None = None) -> Value:
        """A value of the graph's kind: float, or quantized."""
        return (self.float if self.group == "float" else self.quantized)(rank, accept)

    def new(self, shape: Sequence[int]) -> Value:
        """An input of the graph's kind."""
        return (self.new_float if self.group == "float" else self.new_quantized)(shape)

    def like(self, x: Value, shape: Sequence[int]) -> Value:
        """A constant of a value's type, in its range."""
        if x.is_float:
            return self.const(self.floats(shape, exact=x.err == 0))
        if x.array.dtype == np.bool_:
            return self.const(self.rng.random(shape) < 0.5)
        info = np.iinfo(x.array.dtype)
        low, high = (info.min, info.max) if x.is_quantized else (-20, 20)
        values = self.rng.integers(low, high + 1, shape).astype(x.array.dtype)
        return self.const(values, x.quantization)

    def float(self, rank: int | Sequence[int] | None = None, accept: Accept | None = None) -> Value:
        """A float value of one of the ranks: one that is there, reshaped where need be, or new."""
        return self._find(rank, accept, lambda v: v.is_float, self.new_float)

    def _find(
        self,
        rank: int | Sequence[int] | None,
        accept: Accept | None,
        is_kind: Accept,
        make: Callable[[Sequence[int]], Value],
    ) -> Value:
        ranks = range(7) if rank is None else (rank,) if isinstance(rank, int) else tuple(rank)

        def fits(v: Value) -> bool:
            return is_kind(v) and (accept is None or accept(v))

        found = self.pick(lambda v: fits(v) and v.rank in ranks)
        if found is not None and self.chance(0.9):
            return found
        other = self.pick(lambda v: fits(v) and v.array.size > 0)
        if other is not None and self.chance(0.75):
            return self.reshape(other, self.factor(other.array.size, self.choice(list(ranks))))
        if len(self.inputs) < MAX_INPUTS:
            new = make(self.shape(self.choice(list(ranks))))
            if fits(new):
                return new
        if found is not None:
            return found
        raise RefusedError("no such value")

    def quantized(
        self, rank: int | Sequence[int] | None = None, accept: Accept | None = None
    ) -> Value:
        """An 8-bit value of one of the ranks: one that is there, reshaped, or new."""
        return self._find(
            rank, accept, lambda v: v.is_quantized and v.array.itemsize == 1, self.new_quantized
        )

    def int16(self, rank: int | Sequence[int] | None = None, accept: Accept | None = None) -> Value:
        """An int16 value with a scale: one that is there, reshaped, or new."""
        return self._find(
            rank, accept, lambda v: v.is_quantized and v.array.dtype == np.int16, self.new_int16
        )

    def new_int16(self, shape: Sequence[int]) -> Value:
        """An int16 input with a scale."""
        values = np.asarray(self.rng.integers(-(1 << 15), 1 << 15, shape), np.int16)
        return self.input(values, self.scale(DType.INT16))

    def new_quantized(self, shape: Sequence[int]) -> Value:
        """A quantized input."""
        dtype = np.int8 if self.chance(0.7) else np.uint8
        info = np.iinfo(dtype)
        values = np.asarray(self.rng.integers(info.min, info.max + 1, shape), dtype)
        return self.input(values, self.scale(DType.INT8 if dtype == np.int8 else DType.UINT8))

    def scale(self, dtype: DType, typical: float | None = None) -> Quantization:
        """A scale and a zero point; `typical` is the largest real value meant."""
        reach = 2.0 ** self.rng.uniform(-1, 4) if typical is None else typical
        if dtype is DType.INT16:
            step = np.float32(reach / 32768 * self.rng.uniform(0.7, 1.5))
            return Quantization((float(step),), (0,))
        step = np.float32(reach / 128 * self.rng.uniform(0.7, 1.5))
        middle = 0 if dtype is DType.INT8 else 128
        zero = middle if self.chance(0.3) else middle + self.integer(-60, 60)
        return Quantization((float(step),), (zero,))

    def new_float(self, shape: Sequence[int]) -> Value:
        """A float input."""
        return self.input(self.floats(shape, exact=self.chance(0.45)))

    def exact_float(self, rank: int | Sequence[int] | None = None) -> Value:
        """A float value that every right device has the same bits of."""
        return self.float(rank, lambda v: v.err == 0)

    def factor(self, size: int, rank: int) -> tuple[int, ...]:
        """A random shape with so many elements."""
        if rank == 0 and size != 1:
            raise RefusedError("more than a scalar")
        dims = [1] * rank
        rest, p = size, 2
        while rest > 1:
            while rest % p:
                p += 1
            rest //= p
            dims[int(self.rng.integers(rank))] *= p
        return tuple(dims)

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        """The value in another shape."""
        if x.shape == tuple(shape):
            return x
        size = np.array(shape, np.int32)
        attributes = ReshapeAttributes(tuple(shape)) if self.chance(0.5) else None
        return self.apply("RESHAPE", [x, size], attributes, out=x.result)

    # Operators

    def apply(
        self,
        op: str,
        inputs: Sequence[Input],
        attributes: Attributes | None = None,
        *,
        version: int = 1,
        out: DType | Result = DType.FLOAT32,
        eps: float = 0.0,
        scale: float = 0.0,
        jumps: bool = False,
    ) -> Value:
        """An operator with one output; the arguments are those of `apply_multi`."""
        return self.apply_multi(
            op,
            inputs,
            attributes,
            version=version,
            outs=[out],
            eps=eps,
            scale=scale,
            jumps=jumps,
        )[0]

    def apply_multi(
        self,
        op: str,
        inputs: Sequence[Input],
        attributes: Attributes | None = None,
        *,
        outs: Sequence[DType | Result],
        version: int = 1,
        eps: float = 0.0,
        scale: float = 0.0,
        jumps: bool = False,
    ) -> list[Value]:
        """Run an operator and add it to the graph.

        Args:
            op: TFLite's name.
            inputs: a NumPy array becomes a constant.
            attributes: options.
            version: of the operator.
            outs: what each output is.
            eps: what the operator itself may lose, of `scale`; 0 where it can lose nothing.
            scale: of its arithmetic where that may be above its outputs': the sum of its terms'
                magnitudes. The outputs' scale counts at least.
            jumps: the output is no continuous function of the inputs, so these must be exact.

        Raises:
            RefusedError: LiteRT does not run it, or what comes out is of no use here.
        """
        given = [
            self.const(np.asarray(x)) if isinstance(x, (np.ndarray, np.generic)) else x
            for x in inputs
        ]
        if jumps and any(v is not None and v.err for v in given):
            raise RefusedError(f"{op} has jumps")
        results = [r if isinstance(r, Result) else Result(r) for r in outs]
        operands = [
            None if v is None else Operand(v.array, v.is_const, v.quantization, v.dtype)
            for v in given
        ]
        if all(x is None or x.is_const for x in operands):
            raise RefusedError(f"{op} of constants only")
        one = OneOperator(op, operands, results, attributes, version)
        arrays = [None if v is None else v.array for v in given]
        values = one.run(arrays)
        for array in values:
            _check_tame(op, array)
        moved = self._moved(one, given, values)
        errors = [_error(op, array, m, eps, scale) for array, m in zip(values, moved, strict=True)]
        specs = [
            TensorSpec(array.shape, r.dtype, r.quantization)
            for array, r in zip(values, results, strict=True)
        ]
        ids = [None if v is None else v.tensor for v in given]
        tensors = self.writer.multi_op(op, ids, specs, attributes, version)
        for v in {id(v): v for v in given if v is not None}.values():
            v.uses += 1
        made = [
            Value(t, array, err, r.quantization)
            for t, array, err, r in zip(tensors, values, errors, results, strict=True)
        ]
        self.values.extend(made)
        return made

    def _moved(
        self, one: OneOperator, given: Sequence[Value | None], values: Sequence[Array]
    ) -> list[float]:
        """How far each output moves when the inputs are as far off as they may be."""
        if not any(v is not None and v.err for v in given):
            return [0.0] * len(values)
        most = [0.0] * len(values)
        for _ in range(2):
            arrays = [
                v.array
                if v is None or not v.err
                else (v.array + v.err * self.rng.choice([-1.0, 1.0], v.shape)).astype(np.float32)
                for v in given
                if v is not None
            ]
            full = iter(arrays)
            again = one.run([None if v is None else next(full) for v in given])
            for i, (a, b) in enumerate(zip(values, again, strict=True)):
                if a.shape != b.shape or (a.dtype != np.float32 and not np.array_equal(a, b)):
                    raise RefusedError("integers that depend on roundings")
                most[i] = max(most[i], magnitude(a.astype(np.float64) - b))
        # The perturbed inputs are themselves rounded, and two of them need not be the worst ones.
        return [1.5 * m + ROUNDING * magnitude(a) for m, a in zip(most, values, strict=True)]

    # The end

    def finish(self) -> Graph:
        """Choose outputs and write the file.

        Raises:
            RefusedError: no operator is in it.
        """
        made = [v for v in self.values if v not in self.inputs]
        if not made:
            raise RefusedError("an empty graph")
        outputs = [v for v in made if not v.uses and not self.chance(0.05)]
        outputs += [v for v in made if v.uses and self.chance(0.15)]
        outputs = outputs or [made[-1]]
        if self.chance(0.05):
            outputs.append(self.choice(outputs))
        if self.chance(0.04):
            outputs.append(self.choice(self.inputs))
        self.rng.shuffle(outputs)  # type: ignore[arg-type]
        self.writer.output(*(v.tensor for v in outputs))
        return Graph(
            self.writer.build(),
            [v.array for v in self.inputs],
            [v.array for v in outputs],
            [SAFETY * v.err for v in outputs],
            [o.op for o in self.writer.operators],
            {v.tensor: v.array for v in self.values},
            {v.tensor: SAFETY * v.err for v in self.values},
        )


def _check_tame(op: str, array: Array) -> None:
    if array.size > 12 * MAX_ELEMENTS:
        raise RefusedError(f"{op} makes too much")
    if array.dtype == np.float32:
        if not np.isfinite(array).all():
            raise RefusedError(f"{op} makes infinities")
        if magnitude(array) > MAX_MAGNITUDE:
            raise RefusedError(f"{op} makes large values")
        tiny = (array != 0) & (np.abs(array) < 1e-30)
        if tiny.any():
            raise RefusedError(f"{op} makes denormal values")


def _error(op: str, array: Array, moved: float, eps: float, scale: float) -> float:
    if array.dtype != np.float32:
        return 0.0
    err = moved + eps * max(scale, magnitude(array))
    if err > MAX_ERROR_OF_SCALE * max(magnitude(array), 0.1):
        raise RefusedError(f"{op} makes errors large")
    return err
