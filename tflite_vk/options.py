"""DelegateOptions: what a user may choose, checked when it is made, and where it may come from."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal, get_args

from tflite_vk.errors import OptionError

Dispatcher = Literal["auto", "kompute", "vulkan"]
Precision = Literal["fp32", "fp16"]
Tuning = Literal["off", "fast", "exhaustive"]

DEVICE_VARIABLE = "TFLITE_VK_DEVICE"
DISPATCHER_VARIABLE = "TFLITE_VK_DISPATCHER"


@dataclass(frozen=True)
class DelegateOptions:
    """Options of the delegate and of the interpreter, all checked on construction.

    Environment variables stand in for what is left at its default: TFLITE_VK_DEVICE for
    `device=None`, TFLITE_VK_DISPATCHER for `dispatcher="auto"`.

    Attributes:
        device: None for the best GPU, else a software driver; an index of `tflite_vk.devices()`,
            or a part of the device's name in any case.
        dispatcher: what runs the shaders; "auto" takes Kompute where it is installed.
        precision: element type of floating activations and weights on the device; sums are
            kept in fp32 either way.
        fp32_ops: operators that keep fp32 in "fp16", and all that is fused with them, by TFLite's
            name; sums of squares always do.
        max_delegated_partitions: how many partitions may go to the device, the largest ones
            first; 0 for no limit.
        min_nodes_per_partition: smaller partitions stay on the CPU.
        excluded_ops: operators forced to the CPU, by TFLite's name or a custom operator's own.
        excluded_nodes: nodes of the main subgraph forced to the CPU, by TFLite's index.
        cache_dir: folder that keeps what was compiled, packed and tuned, for the next process to
            start sooner; None keeps nothing on disk.
        model_token: a name for this model in the cache: a new version of the model then takes the
            place of the old one.
        profiling: record the device time of each dispatch.
        tuning: how much time may go into trying other sizes of the kernels on the device, for
            models that run long. Worth it with cache_dir, which remembers the result.
        fusion: join adjacent operators into one dispatch.

    Raises:
        OptionError: a value means nothing.
    """

    device: int | str | None = None
    dispatcher: Dispatcher = "auto"
    precision: Precision = "fp32"
    fp32_ops: tuple[str, ...] = ()
    max_delegated_partitions: int = 0
    min_nodes_per_partition: int = 1
    excluded_ops: tuple[str, ...] = ()
    excluded_nodes: tuple[int, ...] = ()
    cache_dir: str | os.PathLike[str] | None = None
    model_token: str | None = None
    profiling: bool = False
    tuning: Tuning = "off"
    fusion: bool = True

    def __post_init__(self) -> None:
        self._set("device", _check_device("device", self.device))
        if self.device is None and os.environ.get(DEVICE_VARIABLE):
            self._set("device", _device_of_text(DEVICE_VARIABLE, os.environ[DEVICE_VARIABLE]))
        _check_choice("dispatcher", self.dispatcher, get_args(Dispatcher))
        if self.dispatcher == "auto" and os.environ.get(DISPATCHER_VARIABLE):
            from_environment = os.environ[DISPATCHER_VARIABLE].strip().lower()
            _check_choice(DISPATCHER_VARIABLE, from_environment, get_args(Dispatcher))
            self._set("dispatcher", from_environment)
        _check_choice("precision", self.precision, get_args(Precision))
        self._set("fp32_ops", _check_names("fp32_ops", self.fp32_ops))
        _check_choice("tuning", self.tuning, get_args(Tuning))
        _check_integer("max_delegated_partitions", self.max_delegated_partitions, least=0)
        _check_integer("min_nodes_per_partition", self.min_nodes_per_partition, least=1)
        self._set("excluded_ops", _check_names("excluded_ops", self.excluded_ops))
        self._set("excluded_nodes", _check_indices("excluded_nodes", self.excluded_nodes))
        if self.cache_dir is not None:
            self._set("cache_dir", _check_folder("cache_dir", self.cache_dir))
        if self.model_token is not None:
            _check_token("model_token", self.model_token)
        _check_bool("profiling", self.profiling)
        _check_bool("fusion", self.fusion)

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    @classmethod
    def from_keywords(
        cls, options: DelegateOptions | None, keywords: Mapping[str, object]
    ) -> DelegateOptions:
        """The options object given, or one made of keywords; both at once is an error.

        Raises:
            OptionError: both were given, or a keyword is no option.
        """
        if options is not None and keywords:
            raise OptionError(
                f"both options= and {_list(sorted(keywords))} given; pass one DelegateOptions "
                "or keywords"
            )
        if options is not None:
            if not isinstance(options, cls):
                raise OptionError(
                    f"options is a {type(options).__name__}; pass a tflite_vk.DelegateOptions, or "
                    "keywords; for TFLite's string options use tflite_vk.load_delegate"
                )
            return options
        known = [f.name for f in fields(cls)]
        for name in keywords:
            if name not in known:
                raise OptionError(f"unknown option {name!r}; known: {_list(known)}")
        return cls(**keywords)  # type: ignore[arg-type]  # __post_init__ checks every value

    @classmethod
    def from_tflite(cls, options: Mapping[str, object]) -> DelegateOptions:
        """Options from strings under the names of TFLite's GPU delegate, or under our own.

        The names are those that TFLite's plugin reads; `load_delegate` documents them. Values
        may be anything whose str() is right, as in TFLite's own `load_delegate`.

        * Precision: fp32 where MAX_PRECISION is the first priority (the default), or where
          is_precision_loss_allowed is 0; else fp16.
        * inference_preference: FAST_SINGLE_ANSWER (0) tunes nothing, BALANCED (2) little,
          SUSTAINED_SPEED (1) thoroughly.
        * max_delegated_partitions: as the option of that name; 0 or less is no limit, and so is
          leaving it out, where TFLite takes one.
        * experimental_flags: ENABLE_QUANT (1), CL_ONLY (2) and GL_ONLY (4) choose nothing here;
          without ENABLE_SERIALIZATION (8) a flags value that is given turns the cache off.

        Raises:
            OptionError: an unknown name, or a value that TFLite would refuse too.
        """
        return cls(**_tflite_keywords(options))  # type: ignore[arg-type]


def _tflite_keywords(options: Mapping[str, object]) -> dict[str, object]:
    texts = {str(name): str(value).strip() for name, value in options.items()}
    for name in texts:
        if name not in _TFLITE_NAMES and name not in _OWN_NAMES:
            known = _list([*_TFLITE_NAMES, *_OWN_NAMES])
            raise OptionError(f"unknown delegate option {name!r}; known: {known}")
    own = {name: _OWN_NAMES[name](name, text) for name, text in texts.items() if name in _OWN_NAMES}
    out: dict[str, object] = {"precision": _tflite_precision(texts)}
    preference = _ranged(texts, "inference_preference", 0, 0, 2)
    out["tuning"] = ("off", "exhaustive", "fast")[preference]
    if "max_delegated_partitions" in texts:
        out["max_delegated_partitions"] = max(0, _integer(texts, "max_delegated_partitions"))
    flags = _ranged(texts, "experimental_flags", 1 | _ENABLE_SERIALIZATION, 0, 15)
    if texts.get("serialization_dir") and flags & _ENABLE_SERIALIZATION:
        out["cache_dir"] = texts["serialization_dir"]
    if texts.get("model_token"):
        out["model_token"] = texts["model_token"]
    return {**out, **own}


_ENABLE_SERIALIZATION = 8
_MAX_PRECISION = 1


def _tflite_precision(texts: Mapping[str, str]) -> Precision:
    """TFLite's map, with fp16 where TFLite takes F32_F16 or F16."""
    first = _ranged(texts, "inference_priority1", _MAX_PRECISION, 0, 3)
    second = _ranged(texts, "inference_priority2", 0, 0, 3)
    third = _ranged(texts, "inference_priority3", 0, 0, 3)
    given = [p for p in (first, second, third) if p]
    if not first or (third and not second) or len(set(given)) != len(given):
        raise OptionError(
            f"inference priorities {first}, {second}, {third} contradict: the first must not be "
            "AUTO (0), none may stand twice, and AUTO comes last; "
            "give for example inference_priority1=1 (MAX_PRECISION) alone"
        )
    text = texts.get("is_precision_loss_allowed", "-1").lower()
    words = {"true": 1, "false": 0}
    allowed = words[text] if text in words else _integer(texts, "is_precision_loss_allowed", -1)
    if allowed < -1:
        raise OptionError(
            f"is_precision_loss_allowed is {allowed} (allowed: 0, 1, or -1 to go by the priorities)"
        )
    if allowed >= 0:
        return "fp16" if allowed else "fp32"
    return "fp32" if first == _MAX_PRECISION else "fp16"


def _integer(texts: Mapping[str, str], name: str, default: int = 0) -> int:
    text = texts.get(name, str(default))
    try:
        return int(text)
    except ValueError:
        raise OptionError(f"{name} is {text!r}, not an integer; give a number as text") from None


def _ranged(texts: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    value = _integer(texts, name, default)
    if not least <= value <= most:
        raise OptionError(f"{name} is {value} (allowed: {least} to {most}); see TFLite's headers")
    return value


def _device_of_text(name: str, text: str) -> int | str | None:
    text = text.strip()
    return _check_device(name, int(text) if text.lstrip("-").isdigit() else text)


def _check_device(name: str, value: object) -> int | str | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise OptionError(
            f"{name} is {value!r}, a {type(value).__name__}; give an index of tflite_vk.devices(), "
            "a part of a device's name, or None"
        )
    if isinstance(value, int) and value < 0:
        raise OptionError(f"{name} is {value} (allowed: 0 and up); see tflite_vk.devices()")
    if isinstance(value, str) and not value.strip():
        raise OptionError(f"{name} is an empty name; give a part of a device's name, or None")
    return value


def _check_choice(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise OptionError(f"{name} is {value!r} (allowed: {_list(allowed)}); choose one of these")


def _check_integer(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise OptionError(f"{name} is {value!r}, not an integer; give {least} or more")
    if value < least:
        raise OptionError(f"{name} is {value} (allowed: {least} and up); raise it")


def _check_bool(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise OptionError(f"{name} is {value!r} (allowed: True, False); give one of these")


def _check_names(name: str, value: Iterable[str]) -> tuple[str, ...]:
    # A lone string would otherwise be taken letter by letter and exclude nothing.
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise OptionError(f'{name} is {value!r}; give a list of names, such as ["CONV_2D"]')
    names = tuple(value)
    for n in names:
        if not isinstance(n, str) or not n.strip():
            raise OptionError(f'{name} holds {n!r}; give names of operators, such as "CONV_2D"')
    return names


def _check_indices(name: str, value: Iterable[int]) -> tuple[int, ...]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise OptionError(f"{name} is {value!r}; give a list of node indices, such as [3, 4]")
    indices = tuple(value)
    for i in indices:
        if isinstance(i, bool) or not isinstance(i, int) or i < 0:
            raise OptionError(f"{name} holds {i!r} (allowed: 0 and up); give TFLite's node indices")
    return indices


def _check_folder(name: str, value: object) -> str:
    if not isinstance(value, str | os.PathLike) or not os.fspath(value):
        raise OptionError(f"{name} is {value!r}; give the path of a folder, or None")
    path = os.fsdecode(value)
    if Path(path).exists() and not Path(path).is_dir():
        raise OptionError(f"{name} {path!r} is a file; give the path of a folder, or None")
    return path


def _check_token(name: str, value: object) -> None:
    if not isinstance(value, str) or not value:
        raise OptionError(f"{name} is {value!r}; give a text that names the model, or None")
    if "/" in value or "\\" in value or "\0" in value or value in (".", ".."):
        raise OptionError(f"{name} {value!r} can't be part of a file name; use letters and digits")


def _list(names: Iterable[str]) -> str:
    return ", ".join(names)


def _own_text(name: str, text: str) -> object:
    return text or None


def _own_integer(name: str, text: str) -> object:
    return _integer({name: text}, name)


def _own_bool(name: str, text: str) -> object:
    words = {"1": True, "true": True, "0": False, "false": False}
    if text.lower() not in words:
        raise OptionError(f"{name} is {text!r} (allowed: {_list(words)}); give one of these")
    return words[text.lower()]


def _own_names(name: str, text: str) -> object:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _own_indices(name: str, text: str) -> object:
    return tuple(_integer({name: part}, name) for part in text.split(",") if part.strip())


_TFLITE_NAMES = (
    "is_precision_loss_allowed",
    "inference_preference",
    "inference_priority1",
    "inference_priority2",
    "inference_priority3",
    "experimental_flags",
    "max_delegated_partitions",
    "serialization_dir",
    "model_token",
)

_OWN_NAMES: Mapping[str, Callable[[str, str], object]] = {
    "device": _device_of_text,
    "dispatcher": _own_text,
    "precision": _own_text,
    "fp32_ops": _own_names,
    "min_nodes_per_partition": _own_integer,
    "excluded_ops": _own_names,
    "excluded_nodes": _own_indices,
    "cache_dir": _own_text,
    "profiling": _own_bool,
    "tuning": _own_text,
    "fusion": _own_bool,
}
