"""VulkanDelegate in LiteRT's interpreter on a real device, against TFLite's reference kernels."""

import gc
import threading

import numpy as np
import pytest

import tflite_vk
from fetch_models import CACHE, SHARED
from tests.delegate.fake import random, run
from tflite_vk.ir.attributes import BinaryAttributes, Conv2DAttributes
from tflite_vk.testing.model_writer import ModelWriter, TensorSpec

litert = pytest.importorskip("ai_edge_litert.interpreter")

pytestmark = pytest.mark.usefixtures("device")

REFERENCE = litert.OpResolverType.BUILTIN_REF


def small_net(batch=1, half=False):
    w = ModelWriter()
    signature = (-1, 9, 7, 3)
    x = w.input((batch, 9, 7, 3), shape_signature=signature)
    const = w.half_const if half else w.const
    kernel, bias = const(random(8, 3, 3, 3)), const(random(8))
    out = TensorSpec((batch, 9, 7, 8), shape_signature=(-1, 9, 7, 8))
    y = w.op("CONV_2D", [x, kernel, bias], [out], Conv2DAttributes("RELU"))
    z = w.op("ADD", [y, y], [out], BinaryAttributes())
    w.output(w.op("MUL", [z, const(random(8, seed=5))], [out], BinaryAttributes()), y)
    return w.build()


def load(content, delegates=(), **keywords):
    i = litert.Interpreter(
        model_content=content, experimental_delegates=list(delegates), **keywords
    )
    i.allocate_tensors()
    return i


def assert_close(got, expected):
    for a, b in zip(got, expected, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5 * max(1.0, np.abs(b).max()))


def test_resize_there_and_back():
    delegate = tflite_vk.VulkanDelegate()
    pair = load(small_net(), [delegate]), load(small_net(), experimental_op_resolver_type=REFERENCE)
    assert delegate.report.is_fully_delegated
    assert delegate.report.device
    for batch in (1, 3, 1, 2):
        for i in pair:
            i.resize_tensor_input(0, (batch, 9, 7, 3))
            i.allocate_tensors()
        x = random(batch, 9, 7, 3)
        assert_close(*(run(i, x) for i in pair))


@pytest.mark.parametrize(
    "excluded", [{}, {"excluded_ops": ("ADD",)}, {"excluded_ops": ("CONV_2D",)}]
)
def test_half_weights_with_a_part_on_the_cpu(excluded):
    delegate = tflite_vk.VulkanDelegate(**excluded)
    i = load(small_net(half=True), [delegate])
    reference = load(small_net(half=True), experimental_op_resolver_type=REFERENCE)
    x = random(1, 9, 7, 3)
    assert_close(run(i, x), run(reference, x))
    unsupported = [n for n in delegate.report.nodes if not n.supported]
    assert unsupported == []


def test_options_as_strings():
    delegate = tflite_vk.load_delegate(
        options={"is_precision_loss_allowed": "0", "max_delegated_partitions": "1"}
    )
    i = load(small_net(), [delegate])
    assert delegate.options.precision == "fp32"
    x = random(1, 9, 7, 3)
    assert_close(run(i, x), run(load(small_net()), x))


def test_interpreters_on_two_threads():
    x = random(1, 9, 7, 3)
    expected = run(load(small_net(), experimental_op_resolver_type=REFERENCE), x)
    failures = []

    def work():
        try:
            i = load(small_net(), [tflite_vk.VulkanDelegate()])
            for _ in range(20):
                assert_close(run(i, x), expected)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
    assert not failures


def test_made_and_dropped_again_and_again():
    x = random(1, 9, 7, 3)
    first = run(load(small_net(), [tflite_vk.VulkanDelegate()]), x)
    for _ in range(5):
        again = run(load(small_net(), [tflite_vk.VulkanDelegate()]), x)
        gc.collect()
        for a, b in zip(first, again, strict=True):
            np.testing.assert_array_equal(a, b)


def test_close_frees_and_says_so():
    delegate = tflite_vk.VulkanDelegate()
    i = load(small_net(), [delegate])
    delegate.close()
    with pytest.raises(RuntimeError, match="the delegate is closed"):
        run(i, random(1, 9, 7, 3))


def find(name):
    for folder in (SHARED, CACHE):
        if (folder / f"{name}.tflite").exists():
            return (folder / f"{name}.tflite").read_bytes()
    pytest.skip(f"{name}.tflite is not here; tools/fetch_models.py brings it")


@pytest.mark.parametrize("name", ["face_detection_short_range"])
def test_real_model(name):
    content = find(name)
    delegate = tflite_vk.VulkanDelegate()
    i = load(content, [delegate])
    reference = load(content, experimental_op_resolver_type=REFERENCE)
    assert str(delegate.report).startswith("All 164 operations will run on the GPU")
    values = [random(*d["shape"]) for d in i.get_input_details()]
    assert_close(run(i, *values), run(reference, *values))


def test_pipelines_are_kept_in_a_folder(tmp_path, caplog):
    pytest.importorskip("vulkan")
    x = random(1, 9, 7, 3)
    results = []
    for _ in range(2):
        delegate = tflite_vk.VulkanDelegate(
            dispatcher="vulkan", cache_dir=tmp_path / "cache", model_token="net"
        )
        results.append(run(load(small_net(), [delegate]), x)[0])
        assert [p for p in (tmp_path / "cache").rglob("*") if p.is_file()]
    np.testing.assert_array_equal(*results)
    assert "cache_dir does nothing" not in caplog.text
