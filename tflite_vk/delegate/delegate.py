"""VulkanDelegate: what a user passes to LiteRT's Interpreter as one of experimental_delegates."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field

from tflite_vk import tflite_abi as abi
from tflite_vk.cache.compile_cache import open_cache
from tflite_vk.delegate.abi import replace_nodes
from tflite_vk.delegate.callbacks import (
    forget_delegate,
    make_registration,
    propagate_no_shapes,
    register_delegate,
)
from tflite_vk.delegate.kernel import Kernel
from tflite_vk.delegate.subgraph import SubgraphPlan, Target
from tflite_vk.errors import DeviceError
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.ops.registry import unsupported_reason
from tflite_vk.options import DelegateOptions
from tflite_vk.runtime.open import open_device
from tflite_vk.session import Session
from tflite_vk.support_report import SupportReport

logger = logging.getLogger("tflite_vk")


@dataclass
class _InterpreterReports:
    """Reports of one interpreter's subgraphs, in the order TFLite shows them: 0 first."""

    contexts: list[int] = field(default_factory=list)
    subgraphs: list[SupportReport] = field(default_factory=list)

    def index_of(self, context: int) -> int:
        """The subgraph behind a context; a new one where it was not seen before."""
        if context not in self.contexts:
            self.contexts.append(context)
            self.subgraphs.append(SupportReport())
        return self.contexts.index(context)


class GraphDelegate:
    """A TFLite delegate that runs partitions anywhere.

    May be given to several interpreters, one after another or side by side; `report` is then about
    the one made last.
    """

    def __init__(self, target: Target, options: DelegateOptions) -> None:
        """Make a delegate.

        Args:
            target: where partitions run.
            options: limits and exclusions.
        """
        self._target = target
        self._options = options
        self._core = _Core(target, options)
        self._address = register_delegate(self._core)
        self._finalizer = weakref.finalize(self, _release, self._core, self._address)
        # At exit the process gives memory back by itself, and interpreters may still be alive.
        self._finalizer.atexit = False

    def _get_native_delegate_pointer(self) -> int:
        """Address of the TfLiteDelegate; the interpreter asks for it right before it uses it."""
        if self._core.is_closed:
            raise DeviceError("this delegate is closed; make a new one")
        self._core.begin_interpreter()
        return self._address

    @property
    def options(self) -> DelegateOptions:
        """The options in force."""
        return self._options

    @property
    def report(self) -> SupportReport:
        """What was taken of the last interpreter's model; empty before an interpreter is made."""
        return self._core.report

    def close(self) -> None:
        """Free device memory now. Interpreters that use the delegate fail at their next invoke."""
        self._core.close()


def _release(core: _Core, address: int) -> None:
    """Forget a delegate nobody holds; kernels that TFLite still holds go on by themselves."""
    forget_delegate(address, was_seen=core.was_seen)


class _Core:
    """The part of a delegate that TFLite's callbacks reach."""

    def __init__(self, target: Target, options: DelegateOptions) -> None:
        self._target = target
        self._options = options
        self._lock = threading.RLock()
        self._reports: _InterpreterReports | None = None
        self._seen: set[int] = set()
        self._plans: dict[int, SubgraphPlan] = {}
        self._kernels: weakref.WeakSet[Kernel] = weakref.WeakSet()
        self._said: set[str] = set()
        self.is_closed = False

    @property
    def was_seen(self) -> bool:
        """True where a TFLite interpreter may hold the delegate's address."""
        return self._reports is not None

    @property
    def report(self) -> SupportReport:
        """The last interpreter's report."""
        with self._lock:
            if self._reports is None or not self._reports.subgraphs:
                return SupportReport(device=self._target.name)
            return SupportReport.join(self._reports.subgraphs)

    def begin_interpreter(self) -> None:
        """The next subgraph shown is subgraph 0 of another interpreter."""
        with self._lock:
            self._reports = _InterpreterReports()

    def close(self) -> None:
        """Free device memory."""
        with self._lock:
            self.is_closed = True
            for kernel in list(self._kernels):
                kernel.close()

    def prepare(self, context: int, delegate: int) -> int:
        """Delegate Prepare for one subgraph; only what TFLite itself refuses is an error."""
        if self.is_closed:
            raise DeviceError("the delegate is closed; make a new one")
        with self._lock:
            reports = self._reports = self._reports or _InterpreterReports()
            index = reports.index_of(context)
            # TFLite shows a subgraph again where an input was resized under a delegate, ours or
            # another, that it had to undo for that.
            is_again = context in self._seen
            self._seen.add(context)
            try:
                plan = SubgraphPlan.make(
                    context, self._target, self._options, index, is_again=is_again
                )
            except Exception as error:  # whatever it is, the model runs on the CPU
                logger.warning(
                    "subgraph %d stays on the CPU, it can't be read: %s: %s",
                    index,
                    type(error).__name__,
                    error,
                )
                logger.debug("subgraph can't be read", exc_info=True)
                return abi.OK
            report = SupportReport.from_plan(plan.original, plan.plan, self._target.name)
            reports.subgraphs[index] = report
            self._say(index, report)
            if not plan.nodes_to_replace:
                return abi.OK
            if plan.has_custom:
                propagate_no_shapes(delegate)
            self._plans[context] = plan
            try:
                nodes = plan.nodes_to_replace
                return replace_nodes(context, make_registration(), nodes, delegate)
            finally:
                del self._plans[context]
                plan.release()

    def make_kernel(self, context: int, params: abi.DelegateParams) -> Kernel:
        """The kernel of one partition."""
        kernel = self._plans[context].make_kernel(params, self._target)
        self._kernels.add(kernel)
        return kernel

    def _say(self, index: int, report: SupportReport) -> None:
        """One message for each subgraph that is not wholly taken; a resize doesn't repeat it."""
        text = str(report) if index == 0 else f"Subgraph {index}: {report}"
        if text in self._said:
            return
        self._said.add(text)
        level = logging.INFO if report.is_fully_delegated else logging.WARNING
        logger.log(level, "%s", text)
        if index == 0:
            self._say_what_excludes_nothing(report)

    def _say_what_excludes_nothing(self, report: SupportReport) -> None:
        ops = {n.op for n in report.nodes}
        for option in ("excluded_ops", "fp32_ops"):
            for name in getattr(self._options, option):
                if name not in ops and name.upper() not in ops:
                    logger.warning("%s names %s, which the model does not have", option, name)
        indices = {n.index for n in report.nodes}
        for node in self._options.excluded_nodes:
            if node not in indices:
                logger.warning(
                    "excluded_nodes names node %d, the model has %d", node, report.num_nodes
                )


class VulkanDelegate(GraphDelegate):
    """A TFLite delegate that runs what it can on a Vulkan device.

    Example:
        delegate = tflite_vk.VulkanDelegate()
        interpreter = Interpreter(model_path="m.tflite", experimental_delegates=[delegate])
        print(delegate.report)
    """

    def __init__(self, options: DelegateOptions | None = None, **keywords: object) -> None:
        """Open a device.

        Args:
            options: all options at once; or
            **keywords: the fields of `DelegateOptions`.

        Raises:
            OptionError: an option means nothing, or names no device here.
            DeviceError: there is no device to open; says what to install.
        """
        chosen = DelegateOptions.from_keywords(options, keywords)
        device = open_device(
            chosen.device,
            chosen.dispatcher,
            cache_dir=chosen.cache_dir,
            model_token=chosen.model_token,
        )
        cache = open_cache(chosen, device.info)

        def compile_graph(graph: Graph) -> Session:
            return Session.of(graph, device, chosen, cache, host_states=True)

        def unsupported(node: Node, graph: Graph) -> str | None:
            return unsupported_reason(node, graph, device.info.limits)

        super().__init__(Target(compile_graph, unsupported, device.info.name, cache), chosen)


def load_delegate(options: Mapping[str, object] | None = None) -> VulkanDelegate:
    """A delegate from string options under TFLite's names for its GPU delegate.

    Args:
        options: is_precision_loss_allowed, inference_preference, inference_priority1 to 3,
            experimental_flags, max_delegated_partitions, serialization_dir, model_token with
            TFLite's meaning (see `DelegateOptions.from_tflite`); also device, dispatcher,
            precision, min_nodes_per_partition, fp32_ops, excluded_ops and excluded_nodes (these
            with commas), cache_dir, profiling, tuning and fusion.

    Raises:
        OptionError: an unknown name, or a value that means nothing.
        DeviceError: there is no device to open.
    """
    return VulkanDelegate(DelegateOptions.from_tflite(options or {}))
