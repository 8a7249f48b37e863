"""Each rewrite on a small graph: what it does, and where it must not."""

from __future__ import annotations

import numpy as np

from tflite_vk.frontend.flatbuffer import read_model
from tflite_vk.ir.attributes import (
    BinaryAttributes,
    ConcatenationAttributes,
    Conv2DAttributes,
    ReshapeAttributes,
    ResizeAttributes,
)
from tflite_vk.ir.graph import Graph
from tflite_vk.ops.registry import ends_in_epilogue
from tflite_vk.passes.fold_constants import fold_constants
from tflite_vk.passes.fuse_elementwise import fuse_elementwise
from tflite_vk.passes.manager import run_passes
from tflite_vk.passes.remove_no_ops import remove_no_ops
from tflite_vk.passes.split_activations import split_activations
from tflite_vk.passes.to_elementwise import to_elementwise
from tflite_vk.testing.model_writer import ModelWriter

SHAPE = (1, 4, 4, 8)
WEIGHTS = np.ones((8, 1, 1, 8), np.float32)
BIAS = np.zeros(8, np.float32)


def _graph(w: ModelWriter) -> Graph:
    return read_model(w.build()).subgraphs[0]


def _conv(w: ModelWriter, x: int, activation: str = "NONE") -> int:
    attributes = Conv2DAttributes(fused_activation_function=activation)  # type: ignore[arg-type]
    return w.op("CONV_2D", [x, w.const(WEIGHTS), w.const(BIAS)], [SHAPE], attributes)


def _add(w: ModelWriter, a: int, b: int, activation: str = "NONE") -> int:
    attributes = BinaryAttributes(fused_activation_function=activation)  # type: ignore[arg-type]
    return w.op("ADD", [a, b], [SHAPE], attributes)


def _fused(graph: Graph) -> list[str]:
    return [
        "+".join((n.op, *(s.op for s in n.steps)))
        for n in run_passes(graph, ends_in_epilogue).nodes
    ]


def test_fold_constants_keeps_half_weights_as_they_are() -> None:
    w = ModelWriter()
    x = w.input(SHAPE)
    half = w.half_const(WEIGHTS)
    w.output(w.op("CONV_2D", [x, half, w.const(BIAS)], [SHAPE], Conv2DAttributes()))
    graph = fold_constants(_graph(w))
    assert [n.op for n in graph.nodes] == ["CONV_2D"]
    weights = graph.input(graph.nodes[0], 1)
    assert weights.data is not None
    assert weights.data.dtype == np.float16
    assert graph.folded == {weights.id: (0,)}


def test_split_activations_onto_the_kernel_or_behind_it() -> None:
    w = ModelWriter()
    x = w.input(SHAPE)
    conv = _conv(w, x, "RELU6")
    joined = w.op(
        "CONCATENATION",
        [conv, x],
        [(1, 4, 4, 16)],
        ConcatenationAttributes(axis=3, fused_activation_function="RELU"),
    )
    w.output(joined)
    graph = split_activations(_graph(w), ends_in_epilogue)
    assert [(n.op, [s.op for s in n.steps]) for n in graph.nodes] == [
        ("CONV_2D", ["RELU6"]),
        ("CONCATENATION", []),
        ("ELEMENTWISE", ["RELU"]),
    ]
    assert graph.outputs == (joined,)


def test_remove_no_ops_between_neighbours_but_not_at_an_output() -> None:
    w = ModelWriter()
    x = w.input(SHAPE)
    same = w.op("RESHAPE", [x], [SHAPE], ReshapeAttributes(new_shape=SHAPE))
    resized = w.op(
        "RESIZE_BILINEAR", [same, w.const(np.array([4, 4], np.int32))], [SHAPE], ResizeAttributes()
    )
    w.output(w.op("RELU", [resized], [SHAPE]))
    w.output(w.op("RESHAPE", [x], [SHAPE], ReshapeAttributes(new_shape=SHAPE)))
    graph = remove_no_ops(_graph(w))
    assert [(n.op, n.inputs[0]) for n in graph.nodes] == [("RELU", x), ("RESHAPE", x)]


def test_to_elementwise_leaves_middle_broadcasts_alone() -> None:
    w = ModelWriter()
    a, b = w.input((2, 3, 4)), w.input((2, 1, 4))
    w.output(w.op("ADD", [a, b], [(2, 3, 4)], BinaryAttributes()))
    w.output(w.op("ADD", [a, w.const(np.ones(4, np.float32))], [(2, 3, 4)], BinaryAttributes()))
    assert [n.op for n in to_elementwise(_graph(w)).nodes] == ["ADD", "ELEMENTWISE"]


def test_a_constant_on_the_left_keeps_its_side() -> None:
    w = ModelWriter()
    x = w.input(SHAPE)
    w.output(w.op("SUB", [w.const(BIAS), x], [SHAPE], BinaryAttributes()))
    (node,) = to_elementwise(_graph(w)).nodes
    assert node.inputs == (x,)
    assert node.steps[0].operand_first


def test_a_residual_block_is_one_node() -> None:
    w = ModelWriter()
    x = w.input(SHAPE)
    w.output(_add(w, x, _conv(w, x, "RELU"), "RELU6"))
    assert _fused(_graph(w)) == ["CONV_2D+RELU+ADD+RELU6"]


def test_two_convolutions_into_one_add_fuse_once() -> None:
    w = ModelWriter()
    x = w.input(SHAPE)
    w.output(_add(w, _conv(w, x), _conv(w, x)))
    assert _fused(_graph(w)) == ["CONV_2D", "CONV_2D+ADD"]


def test_a_value_used_twice_is_not_fused_away() -> None:
    w = ModelWriter()
    conv = _conv(w, w.input(SHAPE))
    w.output(_add(w, w.op("RELU", [conv], [SHAPE]), conv))
    assert _fused(_graph(w)) == ["CONV_2D", "ELEMENTWISE+RELU+ADD"]


def test_a_value_that_is_an_output_is_not_fused_away() -> None:
    w = ModelWriter()
    conv = _conv(w, w.input(SHAPE))
    w.output(conv, w.op("RELU", [conv], [SHAPE]))
    assert _fused(_graph(w)) == ["CONV_2D", "ELEMENTWISE+RELU"]


def test_a_value_added_to_itself_is_not_its_own_operand() -> None:
    w = ModelWriter()
    conv = _conv(w, w.input(SHAPE))
    w.output(_add(w, conv, conv))
    assert _fused(_graph(w)) == ["CONV_2D", "ELEMENTWISE+ADD"]


def test_a_broadcast_of_the_main_value_is_not_fused() -> None:
    # The convolution's result is the smaller operand: the sum has another shape.
    w = ModelWriter()
    conv = _conv(w, w.input(SHAPE))
    big = w.input((3, 4, 4, 8))
    w.output(w.op("ADD", [conv, big], [(3, 4, 4, 8)], BinaryAttributes()))
    assert _fused(_graph(w)) == ["CONV_2D", "ADD"]


def test_an_operand_made_after_the_producer_is_ready_at_the_fused_node() -> None:
    w = ModelWriter()
    x = w.input(SHAPE)
    first = _conv(w, x)
    other = w.op("TANH", [x], [SHAPE])
    w.output(w.op("MUL", [first, other], [SHAPE], BinaryAttributes()))
    # Either of the two may take the product in; it must stand behind the other.
    graph = run_passes(_graph(w), ends_in_epilogue)
    last = graph.nodes[-1]
    assert len(graph.nodes) == 2
    assert last.outputs == graph.outputs
    assert set(last.reads) & {first, other}


def test_a_reader_of_a_variable_stays_before_what_may_change_it() -> None:
    w = ModelWriter()
    x, state = w.input(SHAPE), w.variable(SHAPE)
    before = _add(w, x, state)
    w.output(_add(w, _add(w, before, x), x))
    assert _fused(_graph(w)) == ["ELEMENTWISE+ADD", "ELEMENTWISE+ADD+ADD"]


def test_fusion_can_be_switched_off() -> None:
    w = ModelWriter()
    conv = _conv(w, w.input(SHAPE))
    w.output(w.op("RELU", [conv], [SHAPE]))
    graph = run_passes(_graph(w), ends_in_epilogue, fusion=False)
    assert [n.op for n in graph.nodes] == ["CONV_2D", "ELEMENTWISE"]


def test_fused_nodes_remember_where_they_come_from() -> None:
    w = ModelWriter()
    conv = _conv(w, w.input(SHAPE))
    relu = w.op("RELU", [conv], [SHAPE])
    w.output(w.op("TANH", [relu], [SHAPE]))
    graph = fuse_elementwise(to_elementwise(_graph(w)), ends_in_epilogue)
    (node,) = graph.nodes
    assert node.origins == (0, 1, 2)
