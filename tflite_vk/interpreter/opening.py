"""The first steps of a start: a model is read while a device opens."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tflite_vk.cache.compile_cache import read_program_ahead
from tflite_vk.cache.digest import hash_ahead
from tflite_vk.frontend.flatbuffer import Model, read_file, read_model
from tflite_vk.options import DelegateOptions
from tflite_vk.runtime.device import Device
from tflite_vk.runtime.open import import_dispatcher, open_device


def read_and_open(
    model_path: str | os.PathLike[str] | None,
    model_content: bytes | bytearray | memoryview | None,
    options: DelegateOptions,
) -> tuple[bytes, Model, Device]:
    """The bytes of a model, what is in them, and the device to run it.

    Args:
        model_path: a .tflite file; None takes the content.
        model_content: the bytes of one.
        options: which device, and whether caches are used.

    Raises:
        ModelError: the file can't be read or is no well-formed model.
        OptionError: an option names no device or dispatcher.
        DeviceError: there is no usable device.
    """
    o = options
    # Starting a driver takes a tenth of a second, most of it outside of Python.
    with ThreadPoolExecutor(1, thread_name_prefix="tflite_vk-open") as pool:
        opening = pool.submit(
            open_device, o.device, o.dispatcher, cache_dir=o.cache_dir, model_token=o.model_token
        )
        if model_path is not None:
            content, source = read_file(model_path), Path(model_path).name
        else:
            content, source = bytes(model_content or b""), "model_content"
        import_dispatcher(o.dispatcher)
        model = read_model(content, source)
        if o.cache_dir is not None:
            hash_ahead(model.subgraphs)
            read_program_ahead(o)
        return content, model, opening.result()
