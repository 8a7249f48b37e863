"""A malformed file is a ModelError that names the field, and never anything else."""

from __future__ import annotations

import random
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.models import model_path
from tflite_vk.dtypes import DType
from tflite_vk.errors import Error, ModelError
from tflite_vk.frontend import checked
from tflite_vk.frontend.flatbuffer import load_model, read_model
from tflite_vk.ir import attributes as ir
from tflite_vk.ir.graph import Quantization
from tflite_vk.testing import ModelWriter, TensorSpec, serialize
from tflite_vk.testing.sparse import Dimension, Sparsity


def small():
    """A writer with a little of everything."""
    w = ModelWriter()
    x = w.input((1, 4, 4, 2), "x", shape_signature=(-1, 4, 4, 2))
    q = Quantization((0.5, 0.25, 0.125), (0, 0, 0))
    k = w.const(np.ones((3, 1, 1, 2), np.int8), "k", quantization=q)
    b = w.const(np.zeros(3, np.float32), "b")
    y = w.op("CONV_2D", [x, k, b], [(1, 4, 4, 3)], ir.Conv2DAttributes())
    z = w.op("MyOperator", [y, None], [(1, 4, 4, 3)], b"options")
    s = w.sparse_const(np.eye(4, 8, dtype=np.float32), {1: 4}, "s")
    t = w.const(["one", "two"], "t")
    i4 = w.const(np.array([1, -2, 3]), "i4", dtype=DType.INT4)
    v = w.variable((2,), "v")
    g = w.subgraph("other")
    c = g.input((2,))
    g.output(g.op("WHILE", [c], [(2,)], ir.SubgraphAttributes((0, 1))))
    w.output(z, s, t, i4, v)
    w.signature("run", {"x": x}, {"z": z})
    return w


def refused(data, match):
    with pytest.raises(ModelError, match=match) as caught:
        read_model(data, "m.tflite")
    assert str(caught.value).startswith("m.tflite: ")


def test_the_small_model_is_well_formed():
    assert len(read_model(small().build()).subgraphs) == 2


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"", "0 bytes are no TensorFlow Lite model .at least 8.: the file is empty"),
        (b"TFL3", "4 bytes are no TensorFlow Lite model"),
        (b"\x00" * 16, "file identifier b'.x00.x00.x00.x00' .b'TFL3' expected."),
        (b"\x10\0\0\0TFL3", "root table: bytes 16 to 20 lie outside the file of 8 bytes"),
        (b"\xff\xff\xff\xffTFL3" + bytes(8), "root table: bytes 4294967295 .* outside"),
        (b"version https://git-lfs.github.com/spec/v1", "a Git LFS pointer"),
        (b"PK\x03\x04" + bytes(20), "zip archive"),
        (b"\x1f\x8b" + bytes(20), "gzip-compressed"),
        (b"\x89HDF\r\n\x1a\n", "HDF5 file"),
    ],
)
def test_no_model_at_all(data, match):
    refused(data, match)


def test_model_errors_are_value_errors_and_ours():
    with pytest.raises(ValueError):
        read_model(b"")
    with pytest.raises(Error):
        read_model(b"")


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ModelError, match="can't read the model file: No such file"):
        load_model(tmp_path / "none.tflite")
    with pytest.raises(ModelError, match="can't read the model file: Is a directory"):
        load_model(tmp_path)


def set_op(w, index, **fields):
    w.operators[index] = replace(w.operators[index], **fields)


def set_spec(w, index, **fields):
    w.tensors[index].spec = replace(w.tensors[index].spec, **fields)


BREAKAGES = {
    "no subgraphs": (lambda w: w.subgraphs.clear(), "subgraphs: the model has none"),
    "input out of range": (
        lambda w: w.inputs.append(99),
        r"subgraphs\[0\]\.inputs: entry 1 is tensor 99, the subgraph has 9 tensors",
    ),
    "input negative": (lambda w: w.inputs.append(-1), r"inputs: entry 1 is tensor -1"),
    "output out of range": (lambda w: w.outputs.append(-5), r"outputs: entry 5 is tensor -5"),
    "operator input": (
        lambda w: set_op(w, 0, inputs=(0, 1, 1000)),
        r"subgraphs\[0\]\.operators\[0\]\.inputs: entry 2 is tensor 1000",
    ),
    "operator input below -1": (
        lambda w: set_op(w, 0, inputs=(0, 1, -2)),
        r"operators\[0\]\.inputs: entry 2 is tensor -2",
    ),
    "operator output": (
        lambda w: set_op(w, 1, outputs=(10,)),
        r"operators\[1\]\.outputs: entry 0 is tensor 10",
    ),
    "operator output absent": (
        lambda w: set_op(w, 1, outputs=(-1,)),
        r"operators\[1\]\.outputs: entry 0 is tensor -1",
    ),
    "two writers": (
        lambda w: set_op(w, 1, outputs=(3,)),
        r"node 1 \(MyOperator\) writes tensor 3, written by node 0 \(CONV_2D\) already",
    ),
    "written twice": (
        lambda w: set_op(w, 1, outputs=(4, 4)),
        r"node 1 \(MyOperator\) writes tensor 4, written twice",
    ),
    "writes a constant": (
        lambda w: set_op(w, 1, outputs=(2,)),
        r"node 1 \(MyOperator\) writes tensor 2, a constant",
    ),
    "writes an input": (
        lambda w: set_op(w, 1, outputs=(0,)),
        r"node 1 \(MyOperator\) writes tensor 0, a subgraph input",
    ),
    "out of order": (
        lambda w: w.operators.reverse(),
        r"node 0 \(MyOperator\) reads tensor 3 .* before node 1 \(CONV_2D\) writes it",
    ),
    "cycle": (
        lambda w: set_op(w, 0, inputs=(0, 1, 4)),
        r"node 0 \(CONV_2D\) reads tensor 4 .* before node 1 \(MyOperator\) writes it",
    ),
    "own output": (
        lambda w: set_op(w, 0, inputs=(3, 1, 2)),
        r"node 0 \(CONV_2D\) reads tensor 3 .*, its own output",
    ),
    "never written": (
        lambda w: w.operators.pop(0),
        r"node 0 \(MyOperator\) reads tensor 3 'tensor_3', which nothing writes",
    ),
    "output never written": (
        lambda w: w.operators.pop(),
        r"subgraphs\[0\]\.outputs: entry 0: nothing writes tensor 4",
    ),
    "subgraph of control flow": (
        lambda w: w.subgraphs[1].operators.__setitem__(
            0, replace(w.subgraphs[1].operators[0], attributes=ir.SubgraphAttributes((0, 2)))
        ),
        r"subgraphs\[1\]\.operators\[0\]\.builtin_options: names subgraph 2, .* has 2 subgraphs",
    ),
    "control flow without options": (
        lambda w: w.subgraphs[1].operators.__setitem__(
            0, replace(w.subgraphs[1].operators[0], attributes=None)
        ),
        r"subgraphs\[1\]\.operators\[0\]\.builtin_options: WHILE names no subgraph",
    ),
    "negative dimension": (
        lambda w: set_spec(w, 0, shape=(1, -4, 4, 2)),
        r"tensors\[0\]\.shape: dimension 1 of \[1, -4, 4, 2\] is negative",
    ),
    "overflow": (
        lambda w: set_spec(w, 0, shape=(2**31 - 1,) * 4),
        r"tensors\[0\]\.shape: \[2147483647, .*\] of FLOAT32 is over 9223372036854775807 bytes",
    ),
    "shape larger than the buffer": (
        lambda w: set_spec(w, 2, shape=(4,)),
        r"tensors\[2\]\.buffer: buffer 2 holds 12 bytes, 4 elements of FLOAT32 take 16",
    ),
    "shape smaller than the buffer": (
        lambda w: set_spec(w, 2, shape=(2,)),
        r"buffer 2 holds 12 bytes, 2 elements of FLOAT32 take 8",
    ),
    "packed shape": (
        lambda w: set_spec(w, 7, shape=(5,)),
        r"holds 2 bytes, 5 elements of INT4 take 3",
    ),
    "another type": (
        lambda w: set_spec(w, 2, dtype=DType.INT64),
        r"buffer 2 holds 12 bytes, 3 elements of INT64 take 24",
    ),
    "constant resource": (
        lambda w: set_spec(w, 2, dtype=DType.RESOURCE),
        r"tensors\[2\]\.buffer: a RESOURCE tensor can't be constant",
    ),
    "buffer out of range": (
        lambda w: setattr(w.tensors[2], "buffer", 77),
        r"tensors\[2\]\.buffer: 77, the model has 6 buffers",
    ),
    "variable with a value": (
        lambda w: setattr(w.tensors[8], "buffer", 2),
        r"(holds 12 bytes|a variable can't have a value)",
    ),
    "signature of another rank": (
        lambda w: set_spec(w, 0, shape_signature=(-1, 4)),
        r"tensors\[0\]\.shape_signature: rank 2, the shape's is 4",
    ),
    "signature below -1": (
        lambda w: set_spec(w, 0, shape_signature=(-2, 4, 4, 2)),
        r"shape_signature: dimension 0 is -2",
    ),
    "zero points": (
        lambda w: set_spec(w, 1, quantization=Quantization((1.0, 1.0, 1.0), (0, 0))),
        r"tensors\[1\]\.quantization\.zero_point: 2 values for 3 scales",
    ),
    "no zero points": (
        lambda w: set_spec(w, 1, quantization=Quantization((1.0,), ())),
        r"quantization\.zero_point: 0 values for 1 scales",
    ),
    "scales": (
        lambda w: set_spec(w, 1, quantization=Quantization((1.0, 1.0), (0, 0))),
        r"quantization\.scale: 2 values for dimension 0 of \[3, 1, 1, 2\] \(3\)",
    ),
    "quantized axis": (
        lambda w: set_spec(w, 1, quantization=Quantization((1.0,) * 3, (0,) * 3, axis=4)),
        r"quantization\.quantized_dimension: 4, the tensor has 4 dimensions",
    ),
    "signature subgraph": (
        lambda w: setattr(w.signatures[0], "subgraph", 2),
        r"signature_defs\[0\]\.subgraph_index: 2, the model has 2 subgraphs",
    ),
    "signature input": (
        lambda w: setattr(w.signatures[0], "inputs", {"x": 1}),
        r"signature_defs\[0\]\.inputs\[0\]\.tensor_index: tensor 1 is no input",
    ),
    "signature twice": (
        lambda w: w.signatures.append(w.signatures[0]),
        r"signature_defs\[1\]\.signature_key: 'run' stands twice",
    ),
    "string count": (
        lambda w: w.pool.buffers.__setitem__(4, b"\xff\0\0\0" + bytes(16)),
        r"tensors\[6\]\.buffer: 255 strings do not fit 20 bytes",
    ),
    "string offsets": (
        lambda w: w.pool.buffers.__setitem__(4, np.array([2, 16, 99, 18], "<i4").tobytes() + b"ab"),
        r"string offsets run backwards or past 18 bytes",
    ),
    "strings and shape": (
        lambda w: set_spec(w, 6, shape=(3,)),
        r"tensors\[6\]\.buffer: 2 elements stored, 3 in the shape",
    ),
    "string buffer of three bytes": (
        lambda w: w.pool.buffers.__setitem__(4, b"abc"),
        r"3 bytes are no string buffer",
    ),
    "custom operator without a name": (
        lambda w: set_op(w, 1, code=(32, "", 1)),
        r"operator_codes\[1\]\.custom_code: is missing or empty for a custom operator",
    ),
}


@pytest.mark.parametrize("name", BREAKAGES)
def test_contradiction(name):
    breakage, match = BREAKAGES[name]
    w = small()
    breakage(w)
    refused(w.build(), match)


@pytest.mark.parametrize(
    ("table", "fields", "match"),
    [
        ("Model", {"Version": 2}, r"version: schema version 2 \(3 supported\)"),
        ("Tensor", {"Type": 99}, r"tensors\[0\]\.type: element type 99 is unknown here"),
        ("OperatorCode", {"BuiltinCode": -7, "DeprecatedBuiltinCode": -7}, "-7 is negative"),
        ("Operator", {"OpcodeIndex": 5}, r"operators\[0\]\.opcode_index: 5, the model has 3 codes"),
        (
            "Operator",
            {"LargeCustomOptionsOffset": 10_000_000, "LargeCustomOptionsSize": 8},
            r"operators\[1\]\.large_custom_options_offset: bytes 10000000 to 10000008 lie outside",
        ),
        (
            "Buffer",
            {"Offset": 2**63, "Size": 2**63},
            r"buffers\[1\]\.offset: bytes 9223372036854775808 to .* lie outside",
        ),
    ],
)
def test_field(monkeypatch, table, fields, match):
    original = serialize._table

    def change(b, name, **given):
        return original(b, name, **{**given, **(fields if name == table else {})})

    monkeypatch.setattr(serialize, "_table", change)
    refused(small().build(), match)


def test_tensor_whose_value_is_in_another_file(monkeypatch):
    original = serialize._table

    def change(b, name, **given):
        if name != "Tensor":
            return original(b, name, **given)
        b.StartObject(11)  # as newer schemas do; slot 10 is external_buffer
        b.PrependUint32Slot(10, 3, 0)
        return b.EndObject()

    monkeypatch.setattr(serialize, "_table", change)
    refused(small().build(), r"tensors\[0\]: its value is in another file")


CSR = Dimension(0, (0, 1, 2, 3, 4), (0, 0, 1, 1))


@pytest.mark.parametrize(
    ("sparsity", "match"),
    [
        (Sparsity((0, 1), (1,), (Dimension(4), CSR, Dimension(4))), "is no permutation"),
        (Sparsity((0, 1, 1), (1,), (Dimension(4), CSR, Dimension(4))), "is no permutation"),
        (Sparsity((0, 1, 2), (1,), (Dimension(4), CSR)), "2 levels, 3 expected"),
        (Sparsity((0, 1, 2), (5,), (Dimension(4), CSR, Dimension(4))), "does not name dimensions"),
        (Sparsity((0, 1, 2), (1,), (Dimension(4), CSR, Dimension(0))), "size over 0"),
        (Sparsity((0, 1, 2), (1,), (Dimension(4), CSR, Dimension(3))), "do not divide 8"),
        (Sparsity((0, 1, 2), (1,), (Dimension(5), CSR, Dimension(4))), "5, the shape says 4"),
        (
            Sparsity((0, 1, 2), (1,), (Dimension(4), Dimension(0, (0, 4), (0,) * 4), Dimension(4))),
            "array_segments: 2 entries, 5 expected",
        ),
        (
            Sparsity(
                (0, 1, 2),
                (1,),
                (Dimension(4), replace(CSR, segments=(0, 3, 2, 3, 4)), Dimension(4)),
            ),
            "do not run from 0",
        ),
        (
            Sparsity(
                (0, 1, 2), (1,), (Dimension(4), replace(CSR, indices=(0, 0, 1, 9)), Dimension(4))
            ),
            "array_indices: outside 0 to 1",
        ),
        (
            Sparsity(
                (0, 1, 2),
                (1,),
                (Dimension(4), Dimension(0, (0, 0, 0, 0, 1), (0,)), Dimension(4)),
            ),
            "16 values stored, 4 places",
        ),
    ],
)
def test_sparsity(sparsity, match):
    w = small()
    w.tensors[5].sparsity = sparsity
    refused(w.build(), rf"tensors\[5\]\.sparsity.*{match}")


def test_a_kilobyte_does_not_become_gigabytes():
    w = ModelWriter()
    index = w.sparse_const(np.zeros((1, 1), np.float32) + 1)
    w.output(index)
    size = 2**30
    w.tensors[index].spec = TensorSpec((1, size))
    refused(w.build(), "sparse constants expand to over 1024 times the size of the file")


def test_tables_that_overlap_are_read_in_bounded_time(monkeypatch):
    """A vector whose hundred thousand entries are one tensor costs the file only 400 kB."""
    original = serialize._tensor
    first = {}
    monkeypatch.setattr(
        serialize, "_tensor", lambda b, t, i: first.setdefault(0, None) or first.update(
            {0: original(b, t, 0)}
        ) or first[0]
    )  # fmt: skip
    w = ModelWriter()
    x = w.input((1,), "name" * 1000)
    w.output(x)
    w.tensors *= 100_000
    data = w.build()
    assert len(data) < 500_000
    start = time.monotonic()
    refused(data, "tables overlap: the file's .* bytes are visited more than 4 times")
    assert time.monotonic() - start < 10


def test_more_tables_than_tflites_verifier_takes(monkeypatch):
    monkeypatch.setattr(checked, "MAX_TABLES", 20)
    refused(small().build(), "more than 20 tables")


def test_vector_longer_than_the_file():
    w = ModelWriter()
    w.output(w.input((7, 7, 7)))
    data = bytearray(w.build())
    where = data.index(np.array([3, 7, 7, 7], "<i4").tobytes())
    data[where : where + 4] = (2**31 - 1).to_bytes(4, "little")
    refused(bytes(data), r"tensors\[0\]\.shape: bytes .* lie outside the file")


def only_model_errors(data):
    try:
        read_model(data)
    except ModelError:
        return True
    return False


def test_every_truncation_of_a_model():
    data = small().build()
    refusals = sum(only_model_errors(data[:n]) for n in range(len(data)))
    assert refusals > len(data) - 64


SMALL = small().build()


@settings(max_examples=800, deadline=None, derandomize=True)
@given(
    flips=st.lists(
        st.tuples(st.integers(0, len(SMALL) - 1), st.integers(0, 255)), min_size=1, max_size=8
    )
)
def test_flipped_bytes(flips):
    data = bytearray(SMALL)
    for position, value in flips:
        data[position] = value
    only_model_errors(bytes(data))


@settings(max_examples=800, deadline=None, derandomize=True)
@given(
    words=st.lists(
        st.tuples(
            st.integers(0, len(SMALL) // 4 - 1),
            st.one_of(
                st.integers(0, 2**32 - 1),
                st.integers(0, len(SMALL)),
                st.sampled_from([0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**32 - 4]),
            ),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_overwritten_words(words):
    data = bytearray(SMALL)
    for position, value in words:
        data[4 * position : 4 * position + 4] = value.to_bytes(4, "little")
    only_model_errors(bytes(data))


@settings(max_examples=300, deadline=None, derandomize=True)
@given(tail=st.binary(max_size=400))
def test_random_bytes_behind_a_header(tail):
    only_model_errors(b"\x08\0\0\0TFL3" + tail)


def test_damaged_real_model():
    """Byte flips, word overwrites and truncations of a model with 164 operators, for six seconds at most."""
    data = model_path("face_detection_short_range").read_bytes()
    rng = random.Random(11)
    refusals = 0
    slowest = 0.0
    end = time.monotonic() + 6
    cases = 0
    while cases < 1000 and time.monotonic() < end:
        damaged = bytearray(data)
        if rng.random() < 0.2:
            del damaged[rng.randrange(len(damaged)) :]
        else:
            for _ in range(rng.choice([1, 2, 4, 16])):
                # The structure stands in front of and behind the weights.
                near = rng.choice([4000, 60_000, len(data)])
                position = rng.choice(
                    [rng.randrange(near), len(data) - 4 - rng.randrange(near - 4)]
                )
                value = rng.choice(
                    [0, 2**32 - 1, 2**31, rng.randrange(2**32), rng.randrange(len(data))]
                )
                size = rng.choice([1, 4])
                damaged[position : position + size] = value.to_bytes(4, "little")[:size]
        start = time.monotonic()
        refusals += only_model_errors(bytes(damaged))
        slowest = max(slowest, time.monotonic() - start)
        cases += 1
    assert cases > 50
    assert refusals > cases // 10
    assert slowest < 5
