"""LiteRT's interpreter with our delegate, for models that the device does not run alone."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from tflite_vk.delegate.delegate import VulkanDelegate
from tflite_vk.errors import UnsupportedOpError
from tflite_vk.interpreter.plan import SubgraphPlan
from tflite_vk.options import DelegateOptions
from tflite_vk.support_report import NodeReport, SupportReport

INSTALL_HINT = "pip install 'tflite_vk[litert]'"
_MAX_LISTED = 20

T = TypeVar("T")


class LiteRt:
    """LiteRT's interpreter and the delegate it holds, made anew where shapes outgrow the delegate.

    TFLite settles what a delegate runs when the interpreter is made, with the shapes in the file.
    A shape that a kernel declines comes too late for it, and allocation fails. Then the nodes in
    question are left to the CPU, and interpreter and delegate start over.

    Attributes:
        interpreter: LiteRT's.
    """

    def __init__(
        self,
        content: bytes,
        options: DelegateOptions,
        num_threads: int | None,
        report: SupportReport,
    ) -> None:
        """Check that LiteRT is there; `start` makes the interpreter.

        Args:
            content: the model.
            options: for the delegate.
            num_threads: of LiteRT's CPU kernels.
            report: why the device does not take the whole model.

        Raises:
            UnsupportedOpError: LiteRT is not installed; lists the operators and what to install.
        """
        self.interpreter: Any = None
        self._content = content
        self._options = options
        self._num_threads = num_threads
        self._delegate: VulkanDelegate | None = None
        self._late: dict[tuple[int, int], NodeReport] = {}
        try:
            self._module = importlib.import_module("ai_edge_litert.interpreter")
        except ImportError as error:
            raise UnsupportedOpError(_missing(report, error)) from None

    def start(self) -> None:
        """Make the interpreter with what is excluded by now."""
        late_nodes = tuple(index for subgraph, index in self._late if subgraph == 0)
        # The option for nodes is about subgraph 0; in others their operators are left out whole.
        late_ops = tuple(n.op for (subgraph, _), n in self._late.items() if subgraph)
        options = replace(
            self._options,
            excluded_nodes=(*self._options.excluded_nodes, *late_nodes),
            excluded_ops=(*self._options.excluded_ops, *late_ops),
        )
        self.interpreter = None  # before its delegate
        self._delegate = VulkanDelegate(options=options)
        self.interpreter = self._module.Interpreter(
            model_content=self._content,
            experimental_delegates=[self._delegate],
            num_threads=self._num_threads,
        )

    def exclude(self, subgraph: int, plan: SubgraphPlan) -> bool:
        """Leave to the CPU what the plan leaves there; True where that is more than by now."""
        taken: set[tuple[int, int]] | None = None
        if self._delegate is not None:
            nodes = self._delegate.report.nodes
            taken = {(n.subgraph, n.index) for n in nodes if n.delegated}
        late = {
            (subgraph, n.index): n
            for n in plan.report.nodes
            if not n.delegated and (taken is None or (subgraph, n.index) in taken)
        }
        self._late.update(late)
        return bool(late)

    def run(self, subgraph: int, plan: Callable[[], SubgraphPlan], call: Callable[[Any], T]) -> T:
        """Make a call that allocates; again, with more left to the CPU, where that is why it fails.

        Args:
            subgraph: which one it allocates.
            plan: what the device takes of it with its present shapes.
            call: given LiteRT's interpreter.

        Raises:
            RuntimeError: LiteRT's own failure, or shapes that do not fit an operator.
        """
        try:
            return call(self.interpreter)
        except RuntimeError:
            if not self.exclude(subgraph, plan()):
                raise
        self.start()
        return call(self.interpreter)

    @property
    def report(self) -> SupportReport:
        """The delegate's report, with the reasons of what was left to the CPU later on."""
        assert self._delegate is not None
        report = self._delegate.report
        nodes = [
            replace(n, reason=late.reason, supported=late.supported)
            if not n.delegated and (late := self._late.get((n.subgraph, n.index)))
            else n
            for n in report.nodes
        ]
        return replace(report, nodes=tuple(nodes))

    def close(self) -> None:
        """Let go of the interpreter, then of its delegate."""
        self.interpreter = None
        self._delegate = None


def _missing(report: SupportReport, error: ImportError) -> str:
    left = [n for n in report.nodes if not n.delegated]
    lines = [
        f"{len(left)} of {report.num_nodes} operators do not run on the device, and LiteRT, whose"
        f" CPU kernels would take them, can't be imported ({error}):"
    ]
    for node in left[:_MAX_LISTED]:
        where = f" of subgraph {node.subgraph}" if node.subgraph else ""
        lines.append(f"  {node.op} #{node.index}{where}: {node.reason}")
    if len(left) > _MAX_LISTED:
        lines.append(f"  and {len(left) - _MAX_LISTED} more")
    lines.append(f"Install it with: {INSTALL_HINT}")
    return "\n".join(lines)
