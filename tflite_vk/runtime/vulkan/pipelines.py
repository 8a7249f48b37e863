"""Pipelines: one for each distinct kernel of a device, shared by everything that uses it."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from tflite_vk.errors import DeviceError
from tflite_vk.program import Kernel
from tflite_vk.runtime.vulkan.handle import DeviceHandle
from tflite_vk.shader_library import shader_info, spirv

MAX_IDLE = 256
"""Pipelines kept though no executable uses them, for the next model that does."""

MAX_THREADS = 8
"""Threads that make pipelines; a driver's locks leave little for more to do."""

_COMPUTE_STAGE = 0x20
_STORAGE_BUFFER = 7


@dataclass(frozen=True)
class PipelineLayout:
    """What pipelines of equally many bindings and push words have in common.

    Attributes:
        layout: VkPipelineLayout.
        set_layout: VkDescriptorSetLayout of set 0; one for each number of bindings.
    """

    layout: Any
    set_layout: Any


@dataclass
class Pipeline:
    """A compute pipeline.

    Attributes:
        pipeline: VkPipeline.
        layout: its layout.
        users: executables that hold it.
    """

    pipeline: Any
    layout: PipelineLayout
    users: int = 0


@dataclass(frozen=True)
class _Recipe:
    """What a pipeline is made from.

    Attributes:
        info: VkComputePipelineCreateInfo.
        layout: its layout.
        what: for messages.
        parts: what `info` points to, to be kept alive.
    """

    info: Any
    layout: PipelineLayout
    what: str
    parts: tuple[Any, ...]


@contextlib.contextmanager
def _threads(tasks: int) -> Iterator[Callable[..., Iterable[Any]]]:
    """A `map` that runs on as many threads as there are processors for so many tasks."""
    count = min(tasks, len(os.sched_getaffinity(0)), MAX_THREADS)
    if count < 2:
        yield map
        return
    with ThreadPoolExecutor(count, thread_name_prefix="tflite_vk-pipeline") as pool:
        yield pool.map


class Pipelines:
    """The pipelines of one device, safe for several threads.

    Attributes:
        cache: the VkPipelineCache that all are made with.
        num_made: pipelines made so far.
    """

    def __init__(self, handle: DeviceHandle) -> None:
        self._handle = handle
        # Reentrant: garbage collection inside may release another executable's pipelines.
        self._lock = threading.RLock()
        self._by_kernel: dict[Kernel, Pipeline] = {}
        self._idle: OrderedDict[Kernel, None] = OrderedDict()
        self._layouts: dict[tuple[int, int], PipelineLayout] = {}
        self._set_layouts: dict[int, Any] = {}
        self._modules: dict[str, Any] = {}
        self.num_made = 0
        self.cache = self.make_cache(b"")

    def make_cache(self, data: bytes) -> Any:
        """A VkPipelineCache with what the driver accepts of the data.

        Raises:
            DeviceError: no memory is left.
        """
        api = self._handle.api
        content = api.ffi.from_buffer(data)
        info = api.struct(
            "VkPipelineCacheCreateInfo", initialDataSize=len(data), pInitialData=content
        )
        create = api.lib.vkCreatePipelineCache
        return api.create(
            create, "VkPipelineCache", self._handle.device, info, "making a pipeline cache"
        )

    def merge(self, data: bytes) -> None:
        """Take in the content of another cache.

        Raises:
            DeviceError: no memory is left, or the driver refuses the data.
        """
        handle, api = self._handle, self._handle.api
        other = self.make_cache(data)
        try:
            sources = api.array("VkPipelineCache", [other])
            merge = api.lib.vkMergePipelineCaches
            with self._lock:
                api.check(merge(handle.device, self.cache, 1, sources), "merging pipeline caches")
        finally:
            api.lib.vkDestroyPipelineCache(handle.device, other, api.ffi.NULL)

    def cache_data(self) -> bytes:
        """Content of the cache.

        Raises:
            DeviceError: no memory is left.
        """
        handle, api = self._handle, self._handle.api
        size = api.ffi.new("size_t*")
        get = api.lib.vkGetPipelineCacheData
        with self._lock:
            api.check(get(handle.device, self.cache, size, api.ffi.NULL), "reading pipeline cache")
            data = api.ffi.new("char[]", max(1, size[0]))
            api.check(get(handle.device, self.cache, size, data), "reading pipeline cache")
        return bytes(api.ffi.buffer(data, size[0]))

    def acquire(self, kernels: Sequence[Kernel]) -> list[Pipeline]:
        """The pipeline of each kernel, for the caller to release as often as it is named here.

        What has to be made is made by several threads: a driver compiles in its caller's.

        Raises:
            DeviceError: the driver refuses one, or no memory is left; none is held then.
        """
        with self._lock:
            missing = [k for k in dict.fromkeys(kernels) if k not in self._by_kernel]
            made = self._make_all(missing)
            self._by_kernel.update(zip(missing, made, strict=True))
            found = [self._by_kernel[k] for k in kernels]
            for kernel, pipeline in zip(kernels, found, strict=True):
                pipeline.users += 1
                self._idle.pop(kernel, None)
            return found

    def release(self, kernel: Kernel) -> None:
        """Let go of a kernel's pipeline; the longest unused ones are destroyed."""
        with self._lock:
            entry = self._by_kernel[kernel]
            entry.users -= 1
            if entry.users:
                return
            self._idle[kernel] = None
            while len(self._idle) > MAX_IDLE:
                oldest, _ = self._idle.popitem(last=False)
                self._destroy_pipeline(self._by_kernel.pop(oldest))

    def _make_all(self, kernels: Sequence[Kernel]) -> list[Pipeline]:
        recipes = [self._recipe(kernel) for kernel in kernels]
        made: list[Pipeline] = []
        failures: list[DeviceError] = []
        with _threads(len(kernels)) as run:
            for outcome in run(self._cook, recipes):
                if isinstance(outcome, Pipeline):
                    made.append(outcome)
                else:
                    failures.append(outcome)
        self.num_made += len(made)
        if failures:
            for pipeline in made:
                self._destroy_pipeline(pipeline)
            raise failures[0]
        return made

    def _cook(self, recipe: _Recipe) -> Pipeline | DeviceError:
        """Have the driver compile; called by several threads, which share nothing but its cache."""
        api = self._handle.api
        out = api.ffi.new("VkPipeline*")
        make, device = api.lib.vkCreateComputePipelines, self._handle.device
        result = make(device, self.cache, 1, recipe.info, api.ffi.NULL, out)
        try:
            api.check(result, recipe.what)
        except DeviceError as error:
            return error
        return Pipeline(out[0], recipe.layout)

    def _recipe(self, kernel: Kernel) -> _Recipe:
        api = self._handle.api
        info = shader_info(kernel.shader)
        layout = self._layout(info.bindings, info.push_words)
        words = api.ffi.new("uint32_t[]", list(kernel.spec))
        entries = api.ffi.new("VkSpecializationMapEntry[]", len(kernel.spec))
        for i, entry in enumerate(entries):
            entry.constantID, entry.offset, entry.size = info.spec_ids[i], 4 * i, 4
        specialization = api.struct(
            "VkSpecializationInfo",
            mapEntryCount=len(kernel.spec),
            pMapEntries=entries,
            dataSize=4 * len(kernel.spec),
            pData=words,
        )
        entry_point = api.ffi.new("char[]", b"main")
        stage = api.struct(
            "VkPipelineShaderStageCreateInfo",
            stage=_COMPUTE_STAGE,
            module=self._module(kernel.shader),
            pName=entry_point,
            pSpecializationInfo=specialization,
        )
        create = api.struct(
            "VkComputePipelineCreateInfo",
            stage=stage[0],
            layout=layout.layout,
            basePipelineIndex=-1,
        )
        what = f"making a pipeline of shader {kernel.shader} {kernel.spec}"
        return _Recipe(create, layout, what, (words, entries, specialization, entry_point, stage))

    def _module(self, shader: str) -> Any:
        if shader not in self._modules:
            api = self._handle.api
            code = spirv(shader)
            words = api.ffi.new("uint32_t[]", len(code) // 4)
            api.ffi.memmove(words, code, len(code))
            info = api.struct("VkShaderModuleCreateInfo", codeSize=len(code), pCode=words)
            create = api.lib.vkCreateShaderModule
            self._modules[shader] = api.create(
                create, "VkShaderModule", self._handle.device, info, f"loading shader {shader}"
            )
        return self._modules[shader]

    def _layout(self, bindings: int, push_words: int) -> PipelineLayout:
        key = (bindings, push_words)
        if key not in self._layouts:
            self._layouts[key] = self._make_layout(bindings, push_words)
        return self._layouts[key]

    def _make_layout(self, bindings: int, push_words: int) -> PipelineLayout:
        handle, api = self._handle, self._handle.api
        set_layout = self._set_layout(bindings)
        set_layouts = api.array("VkDescriptorSetLayout", [set_layout])
        push = api.struct("VkPushConstantRange", stageFlags=_COMPUTE_STAGE, size=4 * push_words)
        info = api.struct(
            "VkPipelineLayoutCreateInfo",
            setLayoutCount=1,
            pSetLayouts=set_layouts,
            pushConstantRangeCount=1 if push_words else 0,
            pPushConstantRanges=push,
        )
        create = api.lib.vkCreatePipelineLayout
        what = f"making a pipeline layout of {bindings} bindings"
        return PipelineLayout(
            api.create(create, "VkPipelineLayout", handle.device, info, what), set_layout
        )

    def _set_layout(self, bindings: int) -> Any:
        if bindings not in self._set_layouts:
            handle, api = self._handle, self._handle.api
            slots = api.ffi.new("VkDescriptorSetLayoutBinding[]", bindings)
            for i, slot in enumerate(slots):
                slot.binding, slot.descriptorCount = i, 1
                slot.descriptorType, slot.stageFlags = _STORAGE_BUFFER, _COMPUTE_STAGE
            info = api.struct(
                "VkDescriptorSetLayoutCreateInfo", bindingCount=bindings, pBindings=slots
            )
            create = api.lib.vkCreateDescriptorSetLayout
            what = f"making a descriptor set layout of {bindings} bindings"
            self._set_layouts[bindings] = api.create(
                create, "VkDescriptorSetLayout", handle.device, info, what
            )
        return self._set_layouts[bindings]

    def _destroy_pipeline(self, pipeline: Pipeline) -> None:
        handle, api = self._handle, self._handle.api
        api.lib.vkDestroyPipeline(handle.device, pipeline.pipeline, api.ffi.NULL)

    def destroy(self) -> None:
        """Free everything; no executable may hold a pipeline any more."""
        handle, lib, null = self._handle, self._handle.api.lib, self._handle.api.ffi.NULL
        if handle.is_inherited:
            return
        with self._lock:
            for pipeline in self._by_kernel.values():
                self._destroy_pipeline(pipeline)
            for layout in self._layouts.values():
                lib.vkDestroyPipelineLayout(handle.device, layout.layout, null)
            for set_layout in self._set_layouts.values():
                lib.vkDestroyDescriptorSetLayout(handle.device, set_layout, null)
            for module in self._modules.values():
                lib.vkDestroyShaderModule(handle.device, module, null)
            lib.vkDestroyPipelineCache(handle.device, self.cache, null)
