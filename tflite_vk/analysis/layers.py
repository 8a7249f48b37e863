"""Which layer parts first: every intermediate value of the device against LiteRT's.

LiteRT keeps all of its tensors; on the device each partition is compiled with all of its tensors
as outputs, and gets the reference's values as inputs, so that nothing of the CPU's is in between.
A value that is an output can't be fused away: a fault that shows in the whole model but in no
layer is in fusion or in shared memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_vk.analysis.decision import Partition, decide
from tflite_vk.analysis.litert import allocate, litert_errors, reference_interpreter
from tflite_vk.analysis.metrics import Difference, Tolerance, measure
from tflite_vk.analysis.progress import Progress, silent
from tflite_vk.frontend.flatbuffer import Model
from tflite_vk.ir.graph import Graph, Node
from tflite_vk.options import DelegateOptions
from tflite_vk.partition import extract
from tflite_vk.runtime.device import Device
from tflite_vk.session import Session

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Layer:
    """One value of the model on the device.

    Attributes:
        node: TFLite's index of the operator that wrote it.
        op: its name.
        tensor: tensor index.
        name: of the tensor.
        shape: of the value.
        difference: from the reference, with all layers of its partition before it on the device.
        alone: the same for the operator by itself on the reference's values; None where not tried.
    """

    node: int
    op: str
    tensor: int
    name: str
    shape: tuple[int, ...]
    difference: Difference
    alone: Difference | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "node": self.node,
            "op": self.op,
            "tensor": self.tensor,
            "name": self.name,
            "shape": list(self.shape),
            "difference": self.difference.to_dict(),
            "alone": None if self.alone is None else self.alone.to_dict(),
        }


def compare_layers(
    content: bytes,
    model: Model,
    inputs: Mapping[int, Array],
    device: Device,
    options: DelegateOptions,
    tolerance: Tolerance,
    progress: Progress = silent,
) -> list[Layer]:
    """Compare every value that the device computes in subgraph 0, in execution order.

    The first layer that is not close is also run alone.

    Args:
        content: the model.
        model: the same, read.
        inputs: by tensor id.
        device: an open device.
        options: as for the delegate.
        tolerance: what counts as close, of each value's own scale.
        progress: told of each partition.

    Raises:
        Error: LiteRT is missing or can't run the model, or the device failed.
    """
    progress("reference kernels", 0, 1)
    interpreter, _ = reference_interpreter(content, preserve_all_tensors=True)
    allocate(interpreter, inputs)
    with litert_errors("LiteRT can't run the model"):
        interpreter.reset_all_variables()
        for tensor_id, value in inputs.items():
            interpreter.set_tensor(tensor_id, value)
        interpreter.invoke()
    shapes = {t: value.shape for t, value in inputs.items()}
    decision = decide(model, options, device.info, shapes)
    partitions = [p for p in decision.partitions if p.subgraph == 0]
    out: list[Layer] = []
    for done, partition in enumerate(partitions):
        progress("layers", done, len(partitions))
        found = _compare_partition(partition, interpreter, device, options, tolerance)
        if all(layer.difference.is_close for layer in out):
            found = _try_first_alone(found, partition, interpreter, device, options, tolerance)
        out.extend(found)
    return out


def first_parted(layers: list[Layer]) -> Layer | None:
    """The first layer that is not close."""
    return next((layer for layer in layers if not layer.difference.is_close), None)


def all_outputs(graph: Graph) -> Graph:
    """The graph with every value that its nodes write among the outputs."""
    written = tuple(dict.fromkeys(t for node in graph.nodes for t in node.outputs))
    more = tuple(t for t in written if t not in graph.outputs)
    return graph.with_(outputs=(*graph.outputs, *more))


def _compare_partition(
    partition: Partition,
    interpreter: Any,
    device: Device,
    options: DelegateOptions,
    tolerance: Tolerance,
) -> list[Layer]:
    graph = all_outputs(partition.graph)
    got = _run(graph, interpreter, device, options)
    out: list[Layer] = []
    for node in graph.nodes:
        for tensor_id in node.outputs:
            tensor = graph.tensors[tensor_id]
            if tensor_id not in got:
                continue
            want = np.asarray(interpreter.get_tensor(tensor_id))
            difference = measure(got[tensor_id], want, tolerance)
            out.append(Layer(node.index, node.op, tensor_id, tensor.name, tensor.shape, difference))
    return out


def _try_first_alone(
    layers: list[Layer],
    partition: Partition,
    interpreter: Any,
    device: Device,
    options: DelegateOptions,
    tolerance: Tolerance,
) -> list[Layer]:
    first = first_parted(layers)
    if first is None:
        return layers
    node = next(n for n in partition.graph.nodes if first.tensor in n.outputs)
    if _touches_variable(node, partition.graph):
        return layers
    graph = all_outputs(extract(partition.graph, {node.index}))
    got = _run(graph, interpreter, device, options)[first.tensor]
    want = np.asarray(interpreter.get_tensor(first.tensor))
    alone = Layer(
        first.node,
        first.op,
        first.tensor,
        first.name,
        first.shape,
        first.difference,
        measure(got, want, tolerance),
    )
    return [alone if layer is first else layer for layer in layers]


def _touches_variable(node: Node, graph: Graph) -> bool:
    return any(graph.tensors[t].is_variable for t in (*node.reads, *node.outputs))


def _run(
    graph: Graph, interpreter: Any, device: Device, options: DelegateOptions
) -> dict[int, Array]:
    """Values of a graph's outputs on the device, from the reference's values of its inputs."""
    with litert_errors("LiteRT can't give an intermediate value"):
        inputs = {
            t: np.asarray(interpreter.get_tensor(t))
            for t in graph.inputs
            if not graph.tensors[t].is_const
        }
    session = Session(
        graph,
        device,
        precision=options.precision,
        fp32_ops=options.fp32_ops,
        fusion=options.fusion,
    )
    try:
        wanted = [t for t in dict.fromkeys(graph.outputs) if not graph.tensors[t].is_variable]
        outputs = session.allocate_outputs(wanted)
        session.run(inputs, outputs)
    finally:
        session.close()
    return dict(outputs)
