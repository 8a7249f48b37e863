"""A custom operator that LiteRT has no kernel for runs on the device, in LiteRT's interpreter."""

from __future__ import annotations

import numpy as np
import pytest

import tflite_vk
from tests.support.compare import assert_close
from tests.support.oracle import reference, run_interpreter
from tflite_vk.frontend.flatbuffer import read_model
from tflite_vk.ir.attributes import BinaryAttributes, TransposeConvAttributes
from tflite_vk.testing import ModelWriter, TensorSpec
from tflite_vk.testing.substitute import substitute

litert = pytest.importorskip("ai_edge_litert.interpreter")

pytestmark = pytest.mark.usefixtures("device")


def model() -> bytes:
    """ABS, the custom operator with float16 weights as MediaPipe stores them, ADD."""
    rng = np.random.default_rng(1)
    w = ModelWriter()
    x = w.input((1, 5, 4, 6), shape_signature=(1, -1, -1, 6))
    y = w.op("ABS", [x], [TensorSpec((1, 5, 4, 6), shape_signature=(1, -1, -1, 6))])
    filters = w.half_const(rng.uniform(-1, 1, (2, 2, 2, 6)))
    bias = w.half_const(rng.uniform(-1, 1, 2))
    attributes = TransposeConvAttributes(stride_w=2, stride_h=2)
    out = TensorSpec((1, 10, 8, 2), shape_signature=(1, -1, -1, 2))
    y = w.op("Convolution2DTransposeBias", [y, filters, bias], [out], attributes)
    w.output(w.op("ADD", [y, y], [out], BinaryAttributes()), y)
    return w.build()


def load(**options: object) -> tuple[object, tflite_vk.VulkanDelegate]:
    delegate = tflite_vk.VulkanDelegate(**options)
    return litert.Interpreter(model_content=model(), experimental_delegates=[delegate]), delegate


@pytest.mark.parametrize("options", [{}, {"excluded_ops": ("ADD",)}, {"excluded_ops": ("ABS",)}])
def test_it_runs_and_is_resized(options: dict[str, object]) -> None:
    interpreter, delegate = load(**options)
    custom = next(n for n in delegate.report.nodes if n.op == "Convolution2DTransposeBias")
    assert custom.delegated
    for shape in ((1, 5, 4, 6), (1, 3, 7, 6), (1, 5, 4, 6)):
        x = np.random.default_rng(2).uniform(-2, 2, shape).astype(np.float32)
        # A shape that is the file's already has its sizes from the file, as TFLite's has.
        other = substitute(read_model(model()), {0: shape})
        assert other is not None
        interpreter.resize_tensor_input(0, shape)
        oracle = litert.Interpreter(
            model_content=other.content,
            experimental_op_resolver_type=litert.OpResolverType.BUILTIN_REF,
        )
        oracle.resize_tensor_input(0, shape)
        for got, want in zip(
            run_interpreter(interpreter, [x]), run_interpreter(oracle, [x]), strict=True
        ):
            assert_close(got, want, 1e-4, 1e-5, f"input {list(shape)}")


def test_left_to_the_cpu_it_is_litert_s_error() -> None:
    interpreter, delegate = load(excluded_ops=("Convolution2DTransposeBias",))
    assert delegate.report.num_delegated > 0
    with pytest.raises(RuntimeError, match="unresolved custom op: Convolution2DTransposeBias"):
        interpreter.allocate_tensors()


def test_the_reference_is_the_same_without_a_delegate() -> None:
    """What the substitute says is what our own interpreter computes, float16 weights included."""
    other = substitute(read_model(model()))
    assert other is not None
    x = np.random.default_rng(3).uniform(-2, 2, (1, 5, 4, 6)).astype(np.float32)
    with tflite_vk.Interpreter(model_content=model()) as interpreter:
        got = run_interpreter(interpreter, [x])
    for a, b in zip(got, reference(other.content, [x]), strict=True):
        assert_close(a, b, 1e-4, 1e-5, "output")
