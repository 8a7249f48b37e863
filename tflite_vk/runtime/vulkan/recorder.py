"""Recording a program into a command buffer: uploads, dispatches with their barriers, downloads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tflite_vk.runtime.vulkan.api import Api
from tflite_vk.runtime.vulkan.barriers import Barriers
from tflite_vk.runtime.vulkan.pipelines import Pipeline
from tflite_vk.runtime.vulkan.regions import Copies
from tflite_vk.runtime.vulkan.timer import Timer

_COMPUTE = 1
_COMPUTE_STAGE = 0x20


@dataclass(frozen=True)
class Work:
    """One dispatch, ready to record.

    Attributes:
        pipeline: what runs.
        descriptors: a one-element array of its VkDescriptorSet.
        push: push constant words.
        groups: workgroup counts.
    """

    pipeline: Pipeline
    descriptors: Any
    push: tuple[int, ...]
    groups: tuple[int, int, int]


@dataclass(frozen=True)
class Recorder:
    """Everything one run of a program does, in order.

    Attributes:
        api: raw calls.
        work: every dispatch, in the program's order.
        levels: dispatches by index; a barrier stands between two levels.
        uploads, downloads: copies around them.
        keeps_state: memory is carried from run to run.
        timer: takes a timestamp behind each dispatch; levels then hold one dispatch each.
    """

    api: Api
    work: Sequence[Work]
    levels: Sequence[Sequence[int]]
    uploads: Sequence[Copies]
    downloads: Sequence[Copies]
    keeps_state: bool
    timer: Timer | None

    def record(self, commands: Any) -> None:
        """Record into a command buffer."""
        barriers = Barriers(self.api)
        if self.keeps_state:
            barriers.after_earlier_submits(commands)
        for copies in self.uploads:
            copies.record_upload(commands)
        if self.uploads:
            barriers.after_upload(commands)
        self._record_dispatches(commands, barriers)
        if self.downloads:
            barriers.before_download(commands)
        for copies in self.downloads:
            copies.record_download(commands)
        barriers.to_host(commands)

    def _record_dispatches(self, commands: Any, barriers: Barriers) -> None:
        lib, ffi = self.api.lib, self.api.ffi
        bound: Any = None
        if self.timer is not None:
            self.timer.record_start(commands)
        for number, level in enumerate(self.levels):
            if number:
                barriers.between_dispatches(commands)
            for index in level:
                work = self.work[index]
                layout = work.pipeline.layout.layout
                if work.pipeline is not bound:
                    lib.vkCmdBindPipeline(commands, _COMPUTE, work.pipeline.pipeline)
                    bound = work.pipeline
                lib.vkCmdBindDescriptorSets(
                    commands, _COMPUTE, layout, 0, 1, work.descriptors, 0, ffi.NULL
                )
                if work.push:
                    words = ffi.new("uint32_t[]", work.push)
                    lib.vkCmdPushConstants(
                        commands, layout, _COMPUTE_STAGE, 0, 4 * len(work.push), words
                    )
                lib.vkCmdDispatch(commands, *work.groups)
                if self.timer is not None:
                    self.timer.record(commands, index + 1)
