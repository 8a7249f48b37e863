"""Resources: everything one executable owns on the device, made and freed together."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from tflite_vk.errors import DeviceError
from tflite_vk.program import Buffer, BufferKind, Kernel, MemoryPlan, Program, Words
from tflite_vk.runtime.device import GUARD_WORD
from tflite_vk.runtime.vulkan.descriptors import Descriptors, Range
from tflite_vk.runtime.vulkan.handle import DeviceHandle
from tflite_vk.runtime.vulkan.levels import dispatch_levels
from tflite_vk.runtime.vulkan.memory import HOST_KINDS
from tflite_vk.runtime.vulkan.pipelines import Pipeline, Pipelines
from tflite_vk.runtime.vulkan.placement import Place, place_buffers
from tflite_vk.runtime.vulkan.recorder import Recorder, Work
from tflite_vk.runtime.vulkan.regions import Copies, RegionMemory
from tflite_vk.runtime.vulkan.submission import Submission
from tflite_vk.runtime.vulkan.timer import Timer
from tflite_vk.runtime.vulkan.transfer import download, fill, upload, write


class Resources:
    """Memory, pipelines, descriptors and the recorded commands of one program.

    Attributes:
        lock: held by a run, and while freeing.
        views: what the host sees of inputs, outputs and states, by buffer.
        is_profiling: each dispatch is timed.
        is_closed: freed; nothing may be used any more.
    """

    def __init__(
        self,
        handle: DeviceHandle,
        pipelines: Pipelines,
        program: Program,
        plan: MemoryPlan,
        *,
        profiling: bool,
        guard_words: int,
        staged: frozenset[BufferKind],
    ) -> None:
        """Make them.

        Raises:
            DeviceError: memory or a pipeline could not be made; nothing is left behind then.
        """
        self.lock = threading.Lock()
        self.views: dict[int, Words] = {}
        self._submission: Submission | None = None
        self.is_profiling = profiling
        self._timer: Timer | None = None
        self.is_closed = False
        self._has_run = False
        self._handle = handle
        self._pipelines = pipelines
        self._program = program
        self._guard_words = guard_words
        self._placement = place_buffers(program, plan, handle.info.limits, guard_words)
        self._memory: list[RegionMemory] = []
        self._kernels: list[Kernel] = []
        self._descriptors: Descriptors | None = None
        handle.retain()
        try:
            for region in self._placement.regions:
                memory = RegionMemory(handle, region, is_staged=region.kind in staged)
                self._memory.append(memory)
            self._see()
            # A driver compiles while weights are copied: neither needs all processors all the time.
            with ThreadPoolExecutor(1, thread_name_prefix="tflite_vk-kernels") as pool:
                acquiring = pool.submit(self._acquire, [d.kernel for d in program.dispatches])
                self._write_contents()
            self._program = program.without_constants()
            self._record(acquiring.result())
        except BaseException:
            self.destroy()
            raise

    def _acquire(self, kernels: list[Kernel]) -> list[Pipeline]:
        pipelines = self._pipelines.acquire(kernels)
        self._kernels = kernels
        return pipelines

    def _see(self) -> None:
        for buffer in self._program.buffers:
            place = self._placement.places.get(buffer.id)
            if place is None or buffer.kind not in HOST_KINDS:
                continue
            words = self._memory[place.region].words
            assert words is not None
            self.views[buffer.id] = words[place.offset // 4 : place.end // 4]

    def _write_contents(self) -> None:
        """Guards, constants, first contents of states; padding of inputs is zero as in `pack`."""
        for memory in self._memory:
            if self._guard_words:
                fill(self._handle, memory.device, GUARD_WORD)
            if memory.words is not None:
                memory.words[:] = GUARD_WORD if self._guard_words else 0
        self.reset_states()
        for number, memory in enumerate(self._memory):
            if memory.region.kind != "constant":
                continue
            what, constants = str(memory.region), self._constants(number)
            if memory.takes_writes:
                write(memory.device, constants, what)
            else:
                upload(self._handle, memory.device, constants, what)

    def _constants(self, region: int) -> list[tuple[int, Words]]:
        places = self._placement.places
        return [
            (places[b.id].offset, b.data)
            for b in self._program.buffers
            if b.data is not None and b.id in places and places[b.id].region == region
        ]

    def run(self) -> None:
        """Run once and wait.

        Raises:
            DeviceError: the device was lost, or took longer than it may.
        """
        if self._submission is not None:
            self._submission.run()
            self._has_run = True

    def reset_states(self) -> None:
        """Give every state its first content."""
        for buffer in self._program.buffers:
            if buffer.kind == "state":
                self.views[buffer.id][:] = 0 if buffer.data is None else buffer.data

    def _record(self, pipelines: Sequence[Pipeline]) -> None:
        program = self._program
        uploads = self._copies([m.is_uploaded for m in self._memory])
        downloads = self._copies([m.is_downloaded for m in self._memory])
        work = self._work(pipelines)
        if not (work or uploads or downloads):
            return
        if self.is_profiling:
            # Alone, in order: a timestamp between dispatches that overlap would mean nothing.
            levels = [[i] for i in range(len(work))]
            self._timer = Timer(self._handle, len(work))
        else:
            levels = dispatch_levels(program, self._placement)
        recorder = Recorder(
            api=self._handle.api,
            work=work,
            levels=levels,
            uploads=uploads,
            downloads=downloads,
            keeps_state=any(b.kind == "state" for b in program.buffers),
            timer=self._timer,
        )
        self._submission = Submission(self._handle, recorder.record, repr(program.name))

    def _copies(self, is_wanted: Sequence[bool]) -> list[Copies]:
        by_region: dict[int, list[Place]] = {}
        for place in self._placement.places.values():
            by_region.setdefault(place.region, []).append(place)
        return [
            Copies(self._handle, memory, by_region[number])
            for number, memory in enumerate(self._memory)
            if is_wanted[number]
        ]

    def _work(self, pipelines: Sequence[Pipeline]) -> list[Work]:
        dispatches = self._program.dispatches
        if not dispatches:
            return []
        # Dispatches that bind the same buffers share a set.
        bound = [tuple(b.buffer for b in d.bindings) for d in dispatches]
        layouts = {key: p.layout.set_layout for key, p in zip(bound, pipelines, strict=True)}
        number = {key: i for i, key in enumerate(layouts)}
        self._descriptors = Descriptors(
            self._handle,
            [(layout, [self._range(b) for b in key]) for key, layout in layouts.items()],
        )
        array = self._handle.api.ffi.new
        return [
            Work(
                pipeline,
                array("VkDescriptorSet[]", [self._descriptors.sets[number[key]]]),
                dispatch.push,
                dispatch.groups,
            )
            for pipeline, key, dispatch in zip(pipelines, bound, dispatches, strict=True)
        ]

    def _range(self, buffer: int) -> Range:
        place = self._placement.places[buffer]
        # With the guard words: a driver that checks bounds would hide a write behind the buffer.
        size = place.size + 4 * self._guard_words
        return self._memory[place.region].device.buffer, place.offset, size

    def spans_us(self) -> list[float]:
        """Microseconds of each dispatch of the last run, where profiling.

        Raises:
            DeviceError: the device failed, or there was no run yet.
        """
        if self._timer is None:
            return []
        if not self._has_run:
            raise DeviceError("no run to have timed yet; run the program first")
        return self._timer.spans_us()

    def overwritten(self) -> list[Buffer]:
        """Buffers behind which a guard word has changed."""
        found = []
        for number, memory in enumerate(self._memory):
            words = download(self._handle, memory.device, "guard words")
            for buffer in self._program.buffers:
                place = self._placement.places.get(buffer.id)
                if place is None or place.region != number:
                    continue
                guard = words[place.end // 4 : place.end // 4 + self._guard_words]
                if np.any(guard != GUARD_WORD):
                    found.append(buffer)
        return found

    def destroy(self) -> None:
        """Free everything, after a run in progress; again does nothing."""
        if self._handle.is_inherited:
            return
        with self.lock:
            if self.is_closed:
                return
            self.is_closed = True
            self.views.clear()
            # What the device may still be writing to can't be freed; the handle then stays, too.
            if self._submission is not None and not self._submission.destroy():
                return
            if self._timer is not None:
                self._timer.destroy()
            if self._descriptors is not None:
                self._descriptors.destroy()
            for kernel in self._kernels:
                self._pipelines.release(kernel)
            for memory in self._memory:
                memory.destroy()
            self._handle.release()
