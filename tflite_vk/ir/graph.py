"""Graph: tensors, nodes and their order, as frozen data. Passes return new graphs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from tflite_vk.dtypes import DType
from tflite_vk.ir.attributes import Attributes, NoAttributes, SeparableConv2DAttributes
from tflite_vk.shape import Shape, num_elements

NO_TENSOR = -1
"""Stands in a node's inputs where an optional input is absent."""


@dataclass(frozen=True)
class Quantization:
    """Affine quantization: real = scale * (stored - zero_point).

    Attributes:
        scale: one value per tensor, or one per slice along `axis`.
        zero_point: as many values as `scale`.
        axis: quantized dimension; meaningful with more than one scale.
    """

    scale: tuple[float, ...]
    zero_point: tuple[int, ...]
    axis: int = 0

    @property
    def is_per_tensor(self) -> bool:
        """True where one scale serves all elements."""
        return len(self.scale) == 1


@dataclass(frozen=True, eq=False)
class Tensor:
    """One value of the graph.

    Attributes:
        id: key in `Graph.tensors`; below the subgraph's tensor count it is TFLite's index.
        name: TFLite's name; may be empty, need not be unique.
        shape: static shape for this compile; dimensions >= 0.
        dtype: element type.
        data: array of the constant's value in `shape`, None for a run-time value. A FLOAT32 constant
            may be a float16 array, when the model stores it so.
        quantization: None where the tensor carries none.
        shape_signature: shape with -1 for dimensions the caller may change; None where all are fixed.
        is_variable: state kept between invokes.
        is_dynamic: TFLite learns the shape only while running.
        is_sparse: constant in TFLite's sparse encoding, `data` holds it expanded.
    """

    id: int
    name: str
    shape: Shape
    dtype: DType
    data: npt.NDArray[np.generic] | None = field(default=None, repr=False)
    quantization: Quantization | None = None
    shape_signature: Shape | None = None
    is_variable: bool = False
    is_dynamic: bool = False
    is_sparse: bool = False

    @property
    def is_const(self) -> bool:
        """True where the value is known before running."""
        return self.data is not None

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def num_elements(self) -> int:
        """Logical elements."""
        return num_elements(self.shape)


@dataclass(frozen=True)
class Step:
    """One fused elementwise operator at the end of a node (brief: decision D6).

    Attributes:
        op: TFLite operator name, such as RELU6 or ADD.
        operand: tensor of the second operand; None for a function of one value.
        operand_first: True where the operand stands on the left (const - x).
        attributes: the operator's own, such as alpha of LEAKY_RELU.
        source: index of the TFLite node it came from; None for a fused_activation_function.
        result: of a function of an 8-bit integer, the tensor it makes; None for floats.
    """

    op: str
    operand: int | None = None
    operand_first: bool = False
    attributes: Attributes = field(default_factory=NoAttributes)
    source: int | None = None
    result: int | None = None


@dataclass(frozen=True)
class Node:
    """One operator.

    Attributes:
        index: TFLite's node index (of the first one, for a fused node).
        op: TFLite operator name (CONV_2D); for a custom operator its custom name.
        inputs: tensor ids, NO_TENSOR where an optional one is absent.
        outputs: tensor ids.
        attributes: the operator's options.
        version: operator version that the model asks for.
        is_custom: True for a custom operator.
        steps: elementwise operators fused onto output 0, first to last.
        sources: TFLite node indices this node stands for, where there are more than its own.
        is_inlined: it comes out of a composite's decomposition, and has the composite's index.
        intermediates: scales of an LSTM's values in between, in TFLite's order.
        made: tensor that it would write without its steps, where these are functions of integers.
    """

    index: int
    op: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    attributes: Attributes = field(default_factory=NoAttributes)
    version: int = 1
    is_custom: bool = False
    steps: tuple[Step, ...] = ()
    sources: tuple[int, ...] = ()
    is_inlined: bool = False
    intermediates: tuple[Quantization | None, ...] = ()
    made: int | None = None

    @property
    def reads(self) -> tuple[int, ...]:
        """Every tensor read: inputs that are present, then operands of the fused steps."""
        operands = (s.operand for s in self.steps if s.operand is not None)
        return (*(i for i in self.inputs if i != NO_TENSOR), *operands)

    @property
    def origins(self) -> tuple[int, ...]:
        """TFLite node indices this node stands for."""
        return self.sources or (self.index,)

    @property
    def ops(self) -> tuple[str, ...]:
        """Names of the operators it computes, first to last."""
        own: tuple[str, ...] = (self.op,)
        if isinstance(self.attributes, SeparableConv2DAttributes):
            between = filter(None, (self.attributes.between,))
            own = ("DEPTHWISE_CONV_2D", *between, "CONV_2D")
        return (*own, *(s.op for s in self.steps))

    def has_input(self, position: int) -> bool:
        """True where the input at `position` is given."""
        return position < len(self.inputs) and self.inputs[position] != NO_TENSOR


@dataclass(frozen=True)
class Graph:
    """A subgraph in execution order.

    Attributes:
        name: for people.
        tensors: by id.
        nodes: execution order: a node stands after the producers of all it reads.
        inputs: tensor ids in the model's order; may repeat, may be constants.
        outputs: tensor ids in the model's order; may repeat, may be inputs or constants.
        folded: for a constant computed before running, the TFLite nodes it replaces.
    """

    name: str
    tensors: Mapping[int, Tensor]
    nodes: tuple[Node, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    folded: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    def input(self, node: Node, position: int) -> Tensor:
        """The tensor at an input position that is present."""
        return self.tensors[node.inputs[position]]

    def optional_input(self, node: Node, position: int) -> Tensor | None:
        """The tensor at an input position, None where it is absent."""
        return self.input(node, position) if node.has_input(position) else None

    def made(self, node: Node) -> Tensor:
        """What a node computes in integers before its fused steps; output 0 where it has none."""
        return self.output(node) if node.made is None else self.tensors[node.made]

    def output(self, node: Node, position: int = 0) -> Tensor:
        """The tensor at an output position."""
        return self.tensors[node.outputs[position]]

    def producers(self) -> dict[int, Node]:
        """The node that writes each tensor."""
        return {t: n for n in self.nodes for t in n.outputs}

    def consumers(self) -> dict[int, list[Node]]:
        """The nodes that read each tensor, in order; a node that reads it twice stands once."""
        out: dict[int, list[Node]] = {}
        for node in self.nodes:
            for t in dict.fromkeys(node.reads):
                out.setdefault(t, []).append(node)
        return out

    def next_tensor_id(self) -> int:
        """An id that no tensor has."""
        return max(self.tensors, default=-1) + 1

    def with_(
        self,
        *,
        nodes: Iterable[Node] | None = None,
        tensors: Iterable[Tensor] = (),
        outputs: tuple[int, ...] | None = None,
        folded: Mapping[int, tuple[int, ...]] | None = None,
    ) -> Graph:
        """A copy with other nodes or outputs and with `tensors` added or replaced by id."""
        changed = {t.id: t for t in tensors}
        return replace(
            self,
            nodes=self.nodes if nodes is None else tuple(nodes),
            tensors={**self.tensors, **changed} if changed else self.tensors,
            outputs=self.outputs if outputs is None else outputs,
            folded=self.folded if folded is None else folded,
        )

    def live_tensors(self) -> Iterator[Tensor]:
        """Tensors that a node, an input or an output names, by id."""
        used = {*self.inputs, *self.outputs}
        for node in self.nodes:
            used.update(node.reads, node.outputs)
        return (self.tensors[i] for i in sorted(used))
