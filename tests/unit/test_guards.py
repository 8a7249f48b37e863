"""Nodes as no converter writes them: an operator says why not, or runs; it never raises."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest

from tflite_vk.dtypes import DType
from tflite_vk.frontend.builtin_options import OPTIONS
from tflite_vk.ir import attributes as ir
from tflite_vk.ir.graph import NO_TENSOR, Graph, Node, Quantization, Tensor
from tflite_vk.lowering import lower
from tflite_vk.ops import registry
from tflite_vk.ops.signatures import SIGNATURES
from tflite_vk.runtime.null import NULL_DEVICE
from tflite_vk.shape import Shape

OWN = {"ELEMENTWISE", "SEPARABLE_CONV_2D"}
"""Made by passes only."""
FAMILIES = sorted(key for key in registry.operators() if key[0] not in OWN)
SHAPES: tuple[Shape, ...] = ((), (3,), (2, 3), (1, 2, 3, 4), (0, 2), (1, 1, 1, 1, 1, 1, 1))
MOST_LOWERED = 12
CUSTOM_ATTRIBUTES: dict[str, ir.Attributes] = {
    "Convolution2DTransposeBias": ir.TransposeConvAttributes(),
    "MaxPoolingWithArgmax2D": ir.Pool2DAttributes(),
    "MaxUnpooling2D": ir.Pool2DAttributes(),
    "Resampler": ir.CustomAttributes(),
    "TFLite_Detection_PostProcess": ir.DetectionPostProcessAttributes(),
}


def attributes_of(name: str) -> ir.Attributes:
    """The options that the frontend would read."""
    if name in CUSTOM_ATTRIBUTES:
        return CUSTOM_ATTRIBUTES[name]
    return OPTIONS[name].attributes() if name in OPTIONS else ir.NoAttributes()


def tensor(i: int, shape: Shape, dtype: DType, *, const: bool, scaled: bool) -> Tensor:
    kind = np.dtype(object) if dtype is DType.STRING else dtype.numpy
    data = np.zeros(shape, kind) if const else None
    quantization = Quantization((0.5,), (0,)) if scaled and dtype.is_quantized else None
    return Tensor(i, f"t{i}", shape, dtype, data, quantization)


def graph_of(node: Node, tensors: Sequence[Tensor]) -> Graph:
    run_time = tuple(t.id for t in tensors if t.id in node.reads and not t.is_const)
    return Graph("one", {t.id: t for t in tensors}, (node,), run_time, node.outputs)


def nodes(name: str, is_custom: bool, attributes: ir.Attributes) -> Iterator[tuple[Node, Graph]]:
    """Inputs and outputs as many as it has, and one less or more, of every type and rank."""
    kinds = (
        DType.FLOAT32,
        DType.INT32,
        DType.INT8,
        DType.INT16,
        DType.BOOL,
        DType.INT64,
        DType.STRING,
    )
    signature = SIGNATURES[name]
    least, most = signature.inputs
    counts = sorted(
        {max(least - 1, 0), least, min(most, least + 1), min(most, 24), min(most, 24) + 1}
    )
    least_outputs, most_outputs = signature.outputs
    for count, dtype, shape, first_const in itertools.product(counts, kinds, SHAPES, (0, 1, 99)):
        for outputs, scaled in (
            (least_outputs - 1, True),
            (least_outputs, True),
            (least_outputs, False),
            (min(most_outputs, 3), True),
            (least_outputs + 1, True),
        ):
            is_odd = not least_outputs <= outputs <= most_outputs or not least <= count <= most
            if (is_odd and shape != (2, 3)) or (not scaled and not dtype.is_quantized):
                continue
            ids = tuple(range(count + outputs))
            node = Node(0, name, ids[:count], ids[count:], attributes, is_custom=is_custom)
            tensors = [
                tensor(i, shape, dtype, const=first_const <= i < count, scaled=scaled) for i in ids
            ]
            yield node, graph_of(node, tensors)
            if count and shape == (2, 3):
                absent = replace(node, inputs=(*node.inputs[:-1], NO_TENSOR))
                yield absent, graph_of(absent, tensors)


def declared(node: Node, graph: Graph) -> Graph:
    """The graph with the output shapes that the operator makes, where it makes as many."""
    shapes = registry.infer_shapes(node, graph) or []
    if len(shapes) != len(node.outputs):
        return graph
    pairs = zip(node.outputs, shapes, strict=True)
    return graph.with_(tensors=[replace(graph.tensors[t], shape=s) for t, s in pairs])


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f"{f[0]}-{f[2]}")
def test_no_node_raises(family: registry.Key) -> None:
    name, is_custom, _ = family
    lowered = 0
    for node, made in nodes(name, is_custom, attributes_of(name)):
        graph = made
        try:
            graph = declared(node, graph)
        except ValueError as error:
            assert str(error)
        reason = registry.unsupported_reason(node, graph)
        assert reason is None or reason.strip(), node
        if reason is None and lowered < MOST_LOWERED:
            lowered += 1
            lower(graph, NULL_DEVICE)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f"{f[0]}-{f[2]}")
def test_other_options_than_its_own_are_declined(family: registry.Key) -> None:
    name, is_custom, _ = family
    for node, graph in itertools.islice(nodes(name, is_custom, ir.ShapeAttributes()), 0, None, 50):
        reason = registry.unsupported_reason(node, graph)
        has_options = not isinstance(attributes_of(name), ir.NoAttributes | ir.CustomAttributes)
        assert reason or not has_options or name == "SHAPE"


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f"{f[0]}-{f[2]}")
def test_nothing_at_all_is_declined(family: registry.Key) -> None:
    name, is_custom, _ = family
    for node in (
        Node(0, name, (), (), attributes_of(name), is_custom=is_custom),
        Node(0, name, (NO_TENSOR,) * 5, (), attributes_of(name), is_custom=is_custom),
    ):
        reason = registry.unsupported_reason(node, graph_of(node, []))
        assert reason is not None
        assert "input" in reason or reason == "no kernel for this operator", reason
