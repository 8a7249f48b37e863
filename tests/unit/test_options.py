from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from tflite_vk.errors import Error, OptionError
from tflite_vk.options import DelegateOptions


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch):
    monkeypatch.delenv("TFLITE_VK_DEVICE", raising=False)
    monkeypatch.delenv("TFLITE_VK_DISPATCHER", raising=False)


def test_defaults_are_the_contract():
    o = DelegateOptions()
    assert (o.device, o.dispatcher, o.precision) == (None, "auto", "fp32")
    assert (o.max_delegated_partitions, o.min_nodes_per_partition) == (0, 1)
    assert (o.excluded_ops, o.excluded_nodes) == ((), ())
    assert (o.cache_dir, o.model_token, o.profiling) == (None, None, False)
    assert (o.tuning, o.fusion) == ("off", True)


def test_frozen_hashable_and_equal():
    with pytest.raises(FrozenInstanceError):
        DelegateOptions().device = 1
    assert DelegateOptions(excluded_ops=["ADD"]) == DelegateOptions(excluded_ops=("ADD",))
    assert hash(DelegateOptions(excluded_nodes=[1, 2])) == hash(
        DelegateOptions(excluded_nodes=(1, 2))
    )


@pytest.mark.parametrize(
    ("keywords", "parts"),
    [
        ({"device": -1}, ["device is -1", "0 and up", "devices()"]),
        ({"device": True}, ["device is True", "a bool"]),
        ({"device": 1.5}, ["a float"]),
        ({"device": " "}, ["empty name"]),
        ({"dispatcher": "opencl"}, ["dispatcher is 'opencl'", "auto, kompute, vulkan"]),
        ({"precision": "fp64"}, ["precision is 'fp64'", "fp32, fp16"]),
        ({"precision": None}, ["precision is None"]),
        ({"precision": ["fp16"]}, ["precision is ['fp16']"]),
        ({"tuning": "max"}, ["tuning is 'max'", "off, fast, exhaustive"]),
        ({"max_delegated_partitions": -1}, ["is -1", "0 and up"]),
        ({"max_delegated_partitions": True}, ["not an integer"]),
        ({"min_nodes_per_partition": 0}, ["is 0", "1 and up"]),
        ({"min_nodes_per_partition": "2"}, ["'2', not an integer"]),
        ({"excluded_ops": "CONV_2D"}, ["excluded_ops is 'CONV_2D'", '["CONV_2D"]']),
        ({"excluded_ops": [3]}, ["holds 3"]),
        ({"excluded_ops": None}, ["excluded_ops is None"]),
        ({"excluded_nodes": [-1]}, ["holds -1"]),
        ({"excluded_nodes": "12"}, ["'12'"]),
        ({"excluded_nodes": 3}, ["excluded_nodes is 3"]),
        ({"cache_dir": ""}, ["cache_dir"]),
        ({"cache_dir": 3}, ["cache_dir is 3"]),
        ({"model_token": "a/b"}, ["model_token", "file name"]),
        ({"model_token": ""}, ["model_token"]),
        ({"profiling": 1}, ["profiling is 1", "True, False"]),
        ({"fusion": "yes"}, ["fusion is 'yes'"]),
    ],
)
def test_bad_values(keywords, parts):
    with pytest.raises(OptionError) as caught:
        DelegateOptions(**keywords)
    assert isinstance(caught.value, Error)
    assert isinstance(caught.value, ValueError)
    for part in parts:
        assert part in str(caught.value)


def test_cache_dir_is_a_folder(tmp_path):
    assert DelegateOptions(cache_dir=tmp_path).cache_dir == str(tmp_path)
    assert DelegateOptions(cache_dir=tmp_path / "new").cache_dir == str(tmp_path / "new")
    file = Path(tmp_path / "file")
    file.write_text("")
    with pytest.raises(OptionError, match="is a file"):
        DelegateOptions(cache_dir=file)


def test_environment_stands_in_for_defaults_only(monkeypatch):
    monkeypatch.setenv("TFLITE_VK_DEVICE", "llvmpipe")
    monkeypatch.setenv("TFLITE_VK_DISPATCHER", "Vulkan")
    assert DelegateOptions().device == "llvmpipe"
    assert DelegateOptions(device=2).device == 2
    assert DelegateOptions().dispatcher == "vulkan"
    assert DelegateOptions(dispatcher="kompute").dispatcher == "kompute"
    monkeypatch.setenv("TFLITE_VK_DEVICE", "1")
    assert DelegateOptions().device == 1
    monkeypatch.setenv("TFLITE_VK_DEVICE", "")
    assert DelegateOptions().device is None
    monkeypatch.setenv("TFLITE_VK_DEVICE", "-3")
    with pytest.raises(OptionError, match="TFLITE_VK_DEVICE is -3"):
        DelegateOptions()
    monkeypatch.delenv("TFLITE_VK_DEVICE")
    monkeypatch.setenv("TFLITE_VK_DISPATCHER", "cuda")
    with pytest.raises(OptionError, match="TFLITE_VK_DISPATCHER is 'cuda'"):
        DelegateOptions()


def test_from_keywords():
    given = DelegateOptions(device=1)
    assert DelegateOptions.from_keywords(given, {}) is given
    assert DelegateOptions.from_keywords(None, {"device": 1}) == given
    with pytest.raises(OptionError, match=r"both options= and device"):
        DelegateOptions.from_keywords(given, {"device": 1})
    with pytest.raises(OptionError, match=r"unknown option 'devise'; known: device, "):
        DelegateOptions.from_keywords(None, {"devise": 1})
    with pytest.raises(OptionError, match=r"options is a dict.*load_delegate"):
        DelegateOptions.from_keywords({"device": 1}, {})


@pytest.mark.parametrize(
    ("options", "precision"),
    [
        ({}, "fp32"),
        ({"is_precision_loss_allowed": "0"}, "fp32"),
        ({"is_precision_loss_allowed": "1"}, "fp16"),
        ({"is_precision_loss_allowed": True}, "fp16"),
        ({"is_precision_loss_allowed": -1}, "fp32"),
        ({"is_precision_loss_allowed": 0, "inference_priority1": 2}, "fp32"),
        ({"inference_priority1": "1"}, "fp32"),
        ({"inference_priority1": "2"}, "fp16"),
        ({"inference_priority1": "2", "inference_priority2": "1"}, "fp16"),
        ({"inference_priority1": 3, "inference_priority2": 2, "inference_priority3": 1}, "fp16"),
        ({"precision": "fp16"}, "fp16"),
    ],
)
def test_tflite_precision(options, precision):
    assert DelegateOptions.from_tflite(options).precision == precision


def test_tflite_other_names(tmp_path):
    o = DelegateOptions.from_tflite(
        {
            "inference_preference": "1",
            "experimental_flags": "9",
            "max_delegated_partitions": "3",
            "serialization_dir": str(tmp_path),
            "model_token": "net",
        }
    )
    assert (o.tuning, o.max_delegated_partitions) == ("exhaustive", 3)
    assert (o.cache_dir, o.model_token) == (str(tmp_path), "net")
    assert DelegateOptions.from_tflite({"serialization_dir": "d"}).cache_dir == "d"
    flags = {"serialization_dir": "d", "experimental_flags": "1"}
    assert DelegateOptions.from_tflite(flags).cache_dir is None
    assert DelegateOptions.from_tflite({"inference_preference": 2}).tuning == "fast"
    assert (
        DelegateOptions.from_tflite({"max_delegated_partitions": -1}).max_delegated_partitions == 0
    )


def test_own_names_as_text():
    o = DelegateOptions.from_tflite(
        {
            "device": "0",
            "dispatcher": "vulkan",
            "min_nodes_per_partition": "2",
            "fp32_ops": "SOFTMAX",
            "excluded_ops": "ADD, CONV_2D",
            "excluded_nodes": "1,2",
            "profiling": True,
            "fusion": "0",
        }
    )
    assert (o.device, o.dispatcher, o.min_nodes_per_partition) == (0, "vulkan", 2)
    assert (o.excluded_ops, o.excluded_nodes) == (("ADD", "CONV_2D"), (1, 2))
    assert o.fp32_ops == ("SOFTMAX",)
    assert (o.profiling, o.fusion) == (True, False)
    assert DelegateOptions.from_tflite({"device": "llvm"}).device == "llvm"


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"is_precision_los_allowed": "1"}, "unknown delegate option 'is_precision_los_allowed'"),
        ({"is_precision_loss_allowed": "maybe"}, "'maybe', not an integer"),
        ({"is_precision_loss_allowed": "-2"}, "-2 (allowed"),
        ({"inference_preference": "3"}, "inference_preference is 3 (allowed: 0 to 2)"),
        ({"inference_priority1": "4"}, "inference_priority1 is 4"),
        ({"inference_priority1": "0"}, "contradict"),
        ({"inference_priority1": "1", "inference_priority2": "1"}, "contradict"),
        ({"inference_priority1": "1", "inference_priority3": "2"}, "contradict"),
        ({"experimental_flags": "16"}, "experimental_flags is 16"),
        ({"profiling": "perhaps"}, "profiling is 'perhaps'"),
    ],
)
def test_tflite_bad(options, part):
    with pytest.raises(OptionError) as caught:
        DelegateOptions.from_tflite(options)
    assert part in str(caught.value)
