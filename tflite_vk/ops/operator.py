"""What an operator family tells the compiler."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from tflite_vk.device_info import DeviceInfo
from tflite_vk.dtypes import DType
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.shape import Shape

if TYPE_CHECKING:
    from tflite_vk.ops.context import LoweringContext

NO_DIFFERENCES: dict[str, str] = {}
"""For a family whose parent has some."""

FLOAT = frozenset({DType.FLOAT32})

Kind = Literal["plain", "quantized", "hybrid"]
"""Which nodes of an operator's name a family serves: "quantized" those that read or write int8,
uint8 or int16 while running, "hybrid" float ones with a quantized constant, "plain" the others, and
those of the other kinds that have no family of their own."""


class Operator(ABC):
    """A family of operators that share their checks and their lowering.

    Attributes:
        versions: TFLite name of each operator, and the newest version that is understood.
        dtypes: element types its run-time tensors may have.
        custom: True where the names are custom operators'.
        kind: which nodes of these names it serves.
        ends_in_epilogue: its kernel applies fused steps to output 0.
        notes: constraints, one sentence, for the generated docs/ops.md.
        differs: for some of its operators, where results differ from those of TFLite's kernels and why.
    """

    versions: ClassVar[Mapping[str, int]]
    dtypes: ClassVar[frozenset[DType]] = FLOAT
    custom: ClassVar[bool] = False
    kind: ClassVar[Kind] = "plain"
    ends_in_epilogue: ClassVar[bool] = False
    notes: ClassVar[str] = ""
    differs: ClassVar[Mapping[str, str]] = NO_DIFFERENCES

    def check(self, node: Node, graph: Graph) -> str | None:
        """Why this node can't run, in words; None where it can.

        The registry has already checked version, number of inputs and outputs, options, ranks,
        element types and static shapes. Any node accepted here must lower and run (decision D12).
        """
        del node, graph
        return None

    @abstractmethod
    def output_shapes(self, node: Node, graph: Graph) -> Sequence[Shape] | None:
        """Shapes of the outputs; None where they depend on run-time values.

        Raises:
            ValueError: input shapes that don't fit the operator; says which.
        """

    def is_alias(self, node: Node, graph: Graph) -> bool:
        """True where output 0 is input 0 in another shape, moving no element: no dispatch."""
        del node, graph
        return False

    def is_table(self, node: Node, graph: Graph) -> bool:
        """True for a function of one 8-bit value with 8-bit results."""
        del node, graph
        return False

    def takes_table(self, node: Node, graph: Graph) -> bool:
        """True where the kernel maps its 8-bit results through a table, as fused functions become."""
        del node, graph
        return False

    def joins(self, before: Node, node: Node, graph: Graph, device: DeviceInfo) -> bool:
        """True where one kernel computes this node and the one whose result it reads, and is faster."""
        del before, node, graph, device
        return False

    @abstractmethod
    def lower(self, node: Node, ctx: LoweringContext) -> None:
        """Add the node's dispatches to the program."""
