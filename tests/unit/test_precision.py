"""Which nodes keep float32 in fp16 mode, and what that makes of a program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.ops.cases.recurrent import CASES
from tflite_vk.frontend.flatbuffer import read_model
from tflite_vk.ir.attributes import ReducerAttributes
from tflite_vk.ir.graph import Graph
from tflite_vk.lowering import Lowered, lower
from tflite_vk.runtime.null import NULL_DEVICE
from tflite_vk.testing.model_writer import ModelWriter

SHAPE = (2, 3, 8)
ONE = (2, 3, 1)


def mean(w: ModelWriter, x: int, op: str = "MEAN") -> int:
    axis = w.const(np.array([-1], np.int32))
    return w.op(op, [x, axis], [ONE], ReducerAttributes(keep_dims=True))


def layer_norm(w: ModelWriter) -> None:
    x = w.input(SHAPE)
    centred = w.op("SUB", [x, mean(w, x)], [SHAPE])
    variance = mean(w, w.op("MUL", [centred, centred], [SHAPE]))
    root = w.op("RSQRT", [w.op("ADD", [variance, w.const(np.float32(1e-5))], [ONE])], [ONE])
    w.output(w.op("MUL", [centred, root], [SHAPE]))


def batch_statistics(w: ModelWriter) -> None:
    """The variance by SQUARED_DIFFERENCE, which is an output too."""
    x = w.input(SHAPE)
    w.output(mean(w, w.op("SQUARED_DIFFERENCE", [x, mean(w, x)], [SHAPE])))


def rms_norm(w: ModelWriter) -> None:
    x = w.input(SHAPE)
    power = mean(w, w.op("SQUARE", [x], [SHAPE]))
    w.output(w.op("DIV", [x, w.op("SQRT", [power], [ONE])], [SHAPE]))


def norm_of_a_reshaped_square(w: ModelWriter) -> None:
    x = w.input((2, 3, 4, 2))
    shape = w.const(np.array(SHAPE, np.int32))
    square = w.op("RESHAPE", [w.op("SQUARE", [x], [(2, 3, 4, 2)]), shape], [SHAPE])
    w.output(w.op("SQRT", [mean(w, square, "SUM")], [ONE]))


def plain_mean(w: ModelWriter) -> None:
    x = w.input(SHAPE)
    w.output(mean(w, w.op("ABS", [x], [SHAPE])))


def lowered(build: Callable[[ModelWriter], None], **options: object) -> Lowered:
    w = ModelWriter()
    build(w)
    return lower_half(read_model(w.build()).subgraphs[0], **options)


def lower_half(graph: Graph, **options: object) -> Lowered:
    return lower(graph, NULL_DEVICE, half=True, **options)  # type: ignore[arg-type]


def shaders(program: Lowered) -> list[str]:
    return [d.kernel.shader for d in program.program.dispatches]


def test_a_layer_norm_keeps_its_variance() -> None:
    assert shaders(lowered(layer_norm)) == [
        "reduce_final_f16",  # of the input, which is float32
        "cast_f32_f16",
        "elementwise_f16",
        "elementwise_wide_f16",  # the squares, in float32
        "reduce_final_f16",  # and their mean, up to its root
        "elementwise_f16",
        "cast_f16_f32",  # the output
    ]


def test_without_fusion_the_variance_is_kept_up_to_its_root() -> None:
    names = shaders(lowered(layer_norm, fusion=False))
    assert names[3:-1] == [
        "elementwise_wide_f16",
        "reduce",
        "elementwise",
        "elementwise",
        "cast_f32_f16",
        "elementwise_f16",
    ]


def test_an_output_of_float32_is_not_converted() -> None:
    assert shaders(lowered(batch_statistics))[-1] == "reduce"


def test_an_input_that_only_float32_reads_is_not_converted() -> None:
    names = shaders(lowered(norm_of_a_reshaped_square))
    assert names == ["elementwise", "repack", "reduce_final_f16", "cast_f16_f32"]


def test_a_root_mean_square() -> None:
    assert shaders(lowered(rms_norm)) == [
        "elementwise",
        "reduce_final_f16",
        "cast_f32_f16",
        "elementwise_f16",
        "cast_f16_f32",
    ]


def test_other_sums_stay() -> None:
    assert shaders(lowered(plain_mean))[1:-1] == ["elementwise_f16", "reduce_f16"]


@pytest.mark.parametrize("fusion", [False, True])
def test_operators_by_name(fusion: bool) -> None:
    names = shaders(lowered(plain_mean, fp32_ops=("ABS",), fusion=fusion))
    assert names == ["elementwise", "reduce_final_f16", "cast_f16_f32"]
    assert shaders(lowered(plain_mean, fp32_ops=("ABS", "MEAN"))) == ["elementwise", "reduce"]


def test_rows_with_padding_are_converted_while_they_are_moved() -> None:
    def build(w: ModelWriter) -> None:
        x = w.input((1, 50, 50, 3))
        w.output(w.op("ABS", [x], [(1, 50, 50, 3)]))

    assert shaders(lowered(build)) == ["convert_f32_f16", "elementwise_f16", "convert_f16_f32"]
    assert shaders(lowered(build, fp32_ops=("ABS",))) == ["repack", "elementwise", "repack"]


def test_what_only_changes_shape_keeps_every_bit() -> None:
    """E11: 0.5569 went through a model of one RESHAPE and came out as 0.5566."""

    def build(w: ModelWriter) -> None:
        x = w.input((2, 8))
        w.output(w.op("RESHAPE", [x, w.const(np.array([4, 4], np.int32))], [(4, 4)]))

    assert shaders(lowered(build)) == []


def test_a_named_product_of_one_value_is_found() -> None:
    """The passes make a SQUARE of it."""

    def build(w: ModelWriter) -> None:
        x = w.input(SHAPE)
        w.output(w.op("MUL", [x, x], [SHAPE]))

    assert shaders(lowered(build, fp32_ops=("mul",))) == ["elementwise"]


def test_a_state_that_the_host_sees_is_float32() -> None:
    """A state has one storage; a delegate may list one among the inputs of a partition."""
    w = ModelWriter()
    next(c for c in CASES if c.name == "SVDF_rank1").build(w)
    graph = read_model(w.build()).subgraphs[0]
    state = next(t.id for t in graph.tensors.values() if t.is_variable)
    assert "svdf_f16" in shaders(lower_half(graph))
    seen = replace(graph, inputs=(*graph.inputs, state))
    assert not any("16" in name for name in shaders(lower_half(seen)))


def test_float32_mode_has_no_precision_to_choose() -> None:
    w = ModelWriter()
    layer_norm(w)
    program = lower(read_model(w.build()).subgraphs[0], NULL_DEVICE, fp32_ops=("SUB",))
    assert not any("16" in name or name.startswith("cast") for name in shaders(program))
