"""The interpreter with LiteRT's methods that needs no LiteRT while the device takes every operator."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy.typing as npt

from tflite_vk.cache.compile_cache import open_cache
from tflite_vk.frontend.flatbuffer import Signature
from tflite_vk.interpreter.details import numpy_type, tensor_details
from tflite_vk.interpreter.opening import read_and_open
from tflite_vk.interpreter.plan import SubgraphPlan, plan_for_shapes
from tflite_vk.interpreter.signature_runner import SignatureRunner, find_signature
from tflite_vk.interpreter.subgraph_runner import NotTakenError, SubgraphRunner, check_readable
from tflite_vk.ir.graph import Graph
from tflite_vk.options import DelegateOptions
from tflite_vk.passes.inline_composites import inline_composites
from tflite_vk.session import Session
from tflite_vk.shape import Shape
from tflite_vk.support_report import SupportReport

if TYPE_CHECKING:
    from tflite_vk.interpreter.litert import LiteRt

Array = npt.NDArray[Any]


class Interpreter:
    """Runs a TensorFlow Lite model on a Vulkan device.

    The methods, their dictionary keys and their errors are those of LiteRT's `Interpreter`. While
    the device takes every operator, nothing of LiteRT is used; otherwise LiteRT's interpreter runs
    the model with this package's delegate, so that the rest runs on its CPU kernels.

        it = tflite_vk.Interpreter(model_path="model.tflite")
        it.allocate_tensors()
        it.set_tensor(it.get_input_details()[0]["index"], image)
        it.invoke()
        result = it.get_tensor(it.get_output_details()[0]["index"])

    Other than LiteRT's, arrays from `tensor()` may be kept through `invoke()`; after a change of
    shape they belong to the old one.
    """

    def __init__(
        self,
        model_path: str | os.PathLike[str] | None = None,
        model_content: bytes | bytearray | memoryview | None = None,
        *,
        num_threads: int | None = None,
        options: DelegateOptions | None = None,
        **keywords: Any,
    ) -> None:
        """Read a model and decide what the device takes of it.

        Args:
            model_path: a .tflite file.
            model_content: the bytes of one, instead.
            num_threads: threads of LiteRT's CPU kernels, where they are needed.
            options: as for `VulkanDelegate`; or give its fields as keywords.
            **keywords: fields of `DelegateOptions`.

        Raises:
            ValueError: neither or both of path and content are given.
            ModelError: the file can't be read or is no well-formed model.
            OptionError: an option means nothing.
            DeviceError: there is no usable device.
            UnsupportedOpError: an operator needs the CPU and LiteRT is not installed.
        """
        _check_source(model_path, model_content)
        self._closed = False
        self._runners: dict[int, SubgraphRunner] = {}
        self._litert: LiteRt | None = None
        self._num_threads = num_threads
        o = self._options = DelegateOptions.from_keywords(options, keywords)
        self._content, self._model, self._device = read_and_open(model_path, model_content, o)
        self._cache = open_cache(self._options, self._device.info)
        runnable = {0, *(s.subgraph for s in self._model.signatures)}
        self._runners = {i: self._runner(self._model.subgraphs[i]) for i in sorted(runnable)}
        plans = {i: runner.plan() for i, runner in self._runners.items()}
        self._report = self._join(plans)
        if not all(p.is_taken for p in plans.values()):
            self._litert = self._open_litert(self._report)
            self._litert.start()

    def _runner(self, graph: Graph) -> SubgraphRunner:
        inlined = inline_composites(graph, self._model.subgraphs.__getitem__)

        def compile_graph(graph: Graph) -> Session:
            return Session.of(graph, self._device, self._options, self._cache)

        def plan(shapes: Mapping[int, Shape]) -> SubgraphPlan:
            return plan_for_shapes(
                graph, inlined, shapes, self._options, self._device.info, self._cache
            )

        return SubgraphRunner(graph, plan, compile_graph)

    def _join(self, plans: Mapping[int, SubgraphPlan]) -> SupportReport:
        count = self.num_subgraphs()
        return SupportReport.join(
            plans[i].report if i in plans else SupportReport() for i in range(count)
        )

    def _open_litert(self, report: SupportReport) -> LiteRt:
        # Most models run without LiteRT and the delegate, and start sooner without importing them.
        from tflite_vk.interpreter.litert import LiteRt

        return LiteRt(self._content, self._options, self._num_threads, report)

    def _hand_over(self, subgraph: int, refusal: NotTakenError) -> LiteRt:
        """Go on with LiteRT, from the shapes and inputs that subgraph 0 has."""
        litert = self._open_litert(self._join({subgraph: refusal.plan}))
        litert.exclude(subgraph, refusal.plan)
        litert.start()
        self._litert = litert
        runner = self._runners[0]
        shapes = {t: runner.current.tensors[t].shape for t in runner.graph.inputs}
        values = runner.values()
        for tensor_id in values:
            litert.interpreter.resize_tensor_input(tensor_id, shapes[tensor_id])
        if values:
            litert.run(0, runner.plan, lambda i: i.allocate_tensors())
        for tensor_id, value in values.items():
            if value.shape == shapes[tensor_id]:
                litert.interpreter.set_tensor(tensor_id, value)
        for each in self._runners.values():
            each.close()
        return litert

    @property
    def report(self) -> SupportReport:
        """What runs on the device, and why the rest does not."""
        return self._report if self._litert is None else self._litert.report

    @property
    def uses_litert(self) -> bool:
        """True where LiteRT's CPU kernels run a part of the model."""
        return self._litert is not None

    # Running

    def allocate_tensors(self) -> None:
        """Compile for the present input shapes. Needed once, and after each resize.

        Raises:
            RuntimeError: the shapes do not fit an operator; names it.
            DeviceError: the device has no memory left.
            UnsupportedOpError: with these shapes an operator needs the CPU and LiteRT is missing.
        """
        self._check_open()
        runner = self._runners[0]
        if self._litert is None:
            try:
                runner.allocate()
                return
            except NotTakenError as refusal:
                self._hand_over(0, refusal)
        assert self._litert is not None
        self._litert.run(0, runner.plan, lambda i: self._allocate_in(i, runner))

    def _allocate_in(self, litert: Any, runner: SubgraphRunner) -> None:
        """Allocate in LiteRT's interpreter, which may be a new one, with the present shapes."""
        for tensor_id in dict.fromkeys(runner.graph.inputs):
            tensor = runner.current.tensors[tensor_id]
            if not tensor.is_const:
                litert.resize_tensor_input(tensor_id, tensor.shape)
        litert.allocate_tensors()

    def invoke(self) -> None:
        """Run the model on the inputs as they are set.

        Raises:
            RuntimeError: tensors are not allocated.
            DeviceError: the device failed.
        """
        self._check_open()
        if self._litert is not None:
            self._litert.interpreter.invoke()
        else:
            self._runners[0].run()

    def set_tensor(self, tensor_index: int, value: npt.ArrayLike) -> None:
        """Copy a value into an input.

        Args:
            tensor_index: `index` of its details.
            value: array of exactly the input's shape and type.

        Raises:
            ValueError: another shape or type, or no such input.
        """
        self._check_open()
        if self._litert is not None:
            self._litert.interpreter.set_tensor(tensor_index, value)
        else:
            self._runners[0].set(operator.index(tensor_index), value)

    def get_tensor(self, tensor_index: int, subgraph_index: int = 0) -> Array:
        """A copy of the value of an output, an input or a constant.

        Args:
            tensor_index: `index` of its details.
            subgraph_index: the subgraph it is in.

        Raises:
            ValueError: no such tensor, not allocated yet, or an intermediate one.
        """
        self._check_open()
        graph = self._graph(subgraph_index)
        check_readable(graph, operator.index(tensor_index))
        if self._litert is not None:
            value: Array = self._litert.interpreter.get_tensor(tensor_index, subgraph_index)
            return value
        if subgraph_index not in self._runners:
            raise ValueError(f"Subgraph {subgraph_index} is not run by itself: it has no signature")
        return self._runners[subgraph_index].view(operator.index(tensor_index)).copy()

    def tensor(self, tensor_index: int) -> Callable[[], Array]:
        """A function that gives the array of an input, output or constant itself, not a copy.

        Args:
            tensor_index: `index` of its details.
        """
        self._check_open()
        if self._litert is not None:
            view: Callable[[], Array] = self._litert.interpreter.tensor(tensor_index)
            return view
        runner = self._runners[0]
        return lambda: runner.view(operator.index(tensor_index)).view()

    def resize_tensor_input(
        self, input_index: int, tensor_size: Sequence[int] | Array, strict: bool = False
    ) -> None:
        """Change the shape of an input; `allocate_tensors` must follow.

        Args:
            input_index: `index` of its details.
            tensor_size: new shape.
            strict: allow only dimensions that are -1 in `shape_signature` to change.

        Raises:
            RuntimeError: no such input, or a dimension that may not change.
        """
        self._check_open()
        size = [int(d) for d in tensor_size]
        self._runners[0].resize(operator.index(input_index), size, strict=strict)
        if self._litert is not None:
            self._litert.interpreter.resize_tensor_input(input_index, size)

    def reset_all_variables(self) -> None:
        """Set every variable back to its first value."""
        self._check_open()
        if self._litert is not None:
            self._litert.interpreter.reset_all_variables()
        else:
            for runner in self._runners.values():
                runner.reset_variables()

    # Describing

    def get_input_details(self) -> list[dict[str, Any]]:
        """Details of each input, in the model's order: see `get_tensor_details`."""
        if self._litert is not None:
            return list(self._litert.interpreter.get_input_details())
        return [self._details_of(i, 0) for i in self._model.subgraphs[0].inputs]

    def get_output_details(self) -> list[dict[str, Any]]:
        """Details of each output, in the model's order: see `get_tensor_details`."""
        if self._litert is not None:
            return list(self._litert.interpreter.get_output_details())
        return [self._details_of(i, 0) for i in self._model.subgraphs[0].outputs]

    def get_tensor_details(self, subgraph_index: int = 0) -> list[dict[str, Any]]:
        """Details of every tensor of a subgraph.

        Returns:
            For each a dictionary with `name`, `index`, `shape`, `shape_signature` (-1 for
            dimensions that may change), `dtype`, `quantization`, `quantization_parameters`
            (`scales`, `zero_points`, `quantized_dimension`) and `sparsity_parameters`.
        """
        graph = self._graph(subgraph_index)
        if self._litert is not None:
            return list(self._litert.interpreter.get_tensor_details(subgraph_index))
        return [
            self._details_of(i, subgraph_index)
            for i, tensor in graph.tensors.items()
            if numpy_type(tensor.dtype) is not None
        ]

    def _details_of(self, tensor_id: int, subgraph: int) -> dict[str, Any]:
        """Details with the present shape."""
        graph = self._graph(subgraph)
        if subgraph in self._runners:
            graph = self._runners[subgraph].current
        return tensor_details(graph.tensors[tensor_id])

    def _graph(self, subgraph: int) -> Graph:
        count = self.num_subgraphs()
        if not 0 <= subgraph < count:
            raise ValueError(
                f"subgraph_index is out of range: {subgraph} for the model,"
                f" which has {count} subgraphs."
            )
        return self._model.subgraphs[subgraph]

    def num_subgraphs(self) -> int:
        """Number of subgraphs of the model."""
        return len(self._model.subgraphs)

    def get_signature_list(self) -> dict[str, dict[str, list[str]]]:
        """Names of the inputs and outputs of each signature."""
        return {
            s.key: {"inputs": list(s.inputs), "outputs": list(s.outputs)}
            for s in self._model.signatures
        }

    def get_signature_runner(self, signature_key: str | None = None) -> SignatureRunner:
        """A function that runs a signature.

        Args:
            signature_key: which one; None where the model has only one.

        Raises:
            ValueError: no such signature, or None where there are several.
        """
        return SignatureRunner(self, find_signature(self._model.signatures, signature_key))

    def _run_signature(self, signature: Signature, values: Mapping[str, Array]) -> dict[str, Array]:
        """Outputs of a signature by name, its inputs resized to the values."""
        self._check_open()
        runner = self._runners[signature.subgraph]
        for name, value in values.items():
            runner.resize(signature.inputs[name], value.shape, strict=False)
        if self._litert is None:
            try:
                runner.allocate()
            except NotTakenError as refusal:
                self._hand_over(signature.subgraph, refusal)
        if self._litert is not None:
            results: dict[str, Array] = self._litert.run(
                signature.subgraph,
                runner.plan,
                lambda litert: litert.get_signature_runner(signature.key)(**values),
            )
            return results
        for name, value in values.items():
            runner.set(signature.inputs[name], value)
        runner.run()
        return {name: runner.view(i).copy() for name, i in signature.outputs.items()}

    def _signature_details(
        self, signature: Signature, tensors: Mapping[str, int]
    ) -> dict[str, dict[str, Any]]:
        """Details of tensors of a signature, by name."""
        self._check_open()
        if self._litert is None:
            return {n: self._details_of(i, signature.subgraph) for n, i in tensors.items()}
        every = {
            d["index"]: d for d in self._litert.interpreter.get_tensor_details(signature.subgraph)
        }
        return {name: every[i] for name, i in tensors.items()}

    # Closing

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("The interpreter is closed")

    def close(self) -> None:
        """Free device memory. Any later call that runs or reads raises RuntimeError."""
        for runner in self._runners.values():
            runner.close()
        self._runners = {}
        if self._litert is not None:
            self._report = self._litert.report
            self._litert.close()
            self._litert = None
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _check_source(path: object, content: object) -> None:
    if path is None and content is None:
        raise ValueError("`model_path` or `model_content` must be specified.")
    if path is not None and content is not None:
        raise ValueError("Can't both provide `model_path` and `model_content`")
