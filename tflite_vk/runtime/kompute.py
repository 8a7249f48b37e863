"""Programs dispatched by Kompute (`kp`). The only importer of that package.

What `kp` 0.9 can't do shapes this module: it has no device features, no sub-allocation (each
tensor is one allocation, bound whole), and one barrier only, TRANSFER to COMPUTE before each
dispatch. By the letter of the Vulkan specification that leaves dependent dispatches of one
submit unordered, while drivers execute them in order: the self-test below runs a dependent chain
on each device once, and strict mode submits every hazard-free run alone.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np

from tflite_vk.device_info import DeviceInfo
from tflite_vk.errors import DeviceError
from tflite_vk.memory import plan_memory
from tflite_vk.program import (
    Binding,
    Buffer,
    BufferKind,
    Dispatch,
    Kernel,
    MemoryPlan,
    Program,
    Words,
)
from tflite_vk.runtime.device import GUARD_WORD
from tflite_vk.runtime.kompute_times import KomputeTimes
from tflite_vk.runtime.schedule import hazard_free_runs
from tflite_vk.shader_library import spirv

STRICT_VARIABLE = "TFLITE_VK_STRICT_SUBMITS"
"""Environment variable: "1" submits each hazard-free run of dispatches by itself."""


def load_kp() -> Any:
    """The `kp` module.

    Raises:
        DeviceError: it isn't installed, or its libraries are missing.
    """
    try:
        import kp
    except (ImportError, OSError) as error:
        raise DeviceError(
            f"Kompute can't be imported ({error}); install it as README.md says, "
            'or use dispatcher="vulkan"'
        ) from error
    return kp


def _let_go(manager: object) -> None:
    """Called with what a tensor has kept alive."""


class Recording(NamedTuple):
    """A recorded submit, and for each of its operations whether it is a dispatch."""

    sequence: Any
    is_dispatch: tuple[bool, ...]


class KomputeExecutable:
    """One program recorded in `kp` sequences; see runtime/device.py for the methods."""

    def __init__(
        self,
        device: KomputeDevice,
        program: Program,
        plan: MemoryPlan,
        *,
        profiling: bool,
        guard_words: int,
        is_strict: bool,
    ) -> None:
        self._kp = device.kp
        self._manager: Any = device.manager
        self._program = program
        self._profiling = profiling
        self._guard_words = guard_words
        self._tensors: list[Any] = []
        self._views: dict[int, Words] = {}
        self._slot = plan.slot
        self._allocate(plan)
        self._program = program.without_constants()
        # Each Kompute algorithm makes a pipeline of its own: equal dispatches share one.
        self._algorithms: dict[Hashable, Any] = {}
        work = [self._algorithm(d) for d in program.dispatches]
        self._sequences = [self._record(ops) for ops in self._submits(work, plan, is_strict)]
        self._times = KomputeTimes(
            [recording.is_dispatch for recording in self._sequences], device.info.timestamp_ns
        )
        self._is_closed = False
        self._upload_constants()

    # Set-up

    def _allocate(self, plan: MemoryPlan) -> None:
        owners: dict[int, Buffer] = {}
        for buffer in self._program.buffers:
            owners.setdefault(plan.slot[buffer.id], buffer)
        for slot, words in enumerate(plan.slot_words):
            buffer = owners[slot]
            content = np.full(words + self._guard_words, GUARD_WORD, np.uint32)
            if buffer.data is not None:
                content[:words] = buffer.data
            elif not self._guard_words:
                content[:words] = 0
            # Temporaries need no host copy, unless the guards are to be read back.
            on_device_only = buffer.kind == "temporary" and not self._guard_words
            types = self._kp.TensorTypes
            try:
                tensor = self._manager.tensor_t(
                    content, types.storage if on_device_only else types.device
                )
            except RuntimeError as error:
                raise DeviceError(
                    f"no device memory for buffer {buffer.name!r} of {4 * words} bytes ({error}); "
                    "use a smaller batch, or leave some operators on the CPU (excluded_ops)"
                ) from error
            self._tensors.append(tensor)
        for buffer in self._program.buffers:
            if buffer.kind in ("input", "output", "state"):
                tensor = self._tensors[plan.slot[buffer.id]]
                # The array is a view of Kompute's mapped staging memory; it keeps the tensor alive,
                # and that the manager, which frees whatever it has made when it goes.
                self._views[buffer.id] = tensor.data()[: buffer.words]
                weakref.finalize(tensor, _let_go, self._manager).atexit = False

    def _algorithm(self, dispatch: Dispatch) -> Any:
        slots = tuple(self._slot[b.buffer] for b in dispatch.bindings)
        key = (dispatch.kernel, slots, dispatch.push, dispatch.groups)
        if key not in self._algorithms:
            spec = np.array(dispatch.kernel.spec, np.uint32)
            push = np.array(dispatch.push, np.uint32)
            tensors = [self._tensors[slot] for slot in slots]
            module = spirv(dispatch.kernel.shader)
            try:
                self._algorithms[key] = self._manager.algorithm(
                    tensors, module, list(dispatch.groups), spec, push
                )
            except RuntimeError as error:
                raise DeviceError(
                    f"no pipeline for {dispatch.label}, shader {dispatch.kernel.shader} ({error})"
                ) from error
        return self._algorithms[key]

    def _submits(self, algorithms: list[Any], plan: MemoryPlan, is_strict: bool) -> list[list[Any]]:
        """Kompute operations of each submit: one in all, or one per hazard-free run."""
        kp = self._kp
        # A state travels both ways, so that the host's view of it is always the present one.
        upload = [kp.OpTensorSyncDevice(t) for t in [self._tensors_of("input", "state")] if t]
        download = [kp.OpTensorSyncLocal(t) for t in [self._tensors_of("output", "state")] if t]
        work = [kp.OpAlgoDispatch(a) for a in algorithms]
        if not is_strict:
            submits = [[*upload, *work, *download]]
        else:
            runs = hazard_free_runs(self._program, plan)
            submits = [upload, *[[work[i] for i in run] for run in runs], download]
        self._work = set(map(id, work))
        return [ops for ops in submits if ops]

    def _tensors_of(self, *kinds: BufferKind) -> list[Any]:
        return [self._tensors[self._slot[b.id]] for b in self._program.buffers if b.kind in kinds]

    def _record(self, ops: list[Any]) -> Recording:
        count = len(ops) + 1 if self._profiling else 0
        sequence = self._manager.sequence(total_timestamps=count)
        for op in ops:
            sequence.record(op)
        return Recording(sequence, tuple(id(op) in self._work for op in ops))

    def _upload_constants(self) -> None:
        """Send constants, states and guards once."""
        tensors = [t for t in self._tensors if t.tensor_type() == self._kp.TensorTypes.device]
        if tensors:
            self._manager.sequence().record(self._kp.OpTensorSyncDevice(tensors)).eval()

    # Protocol

    def _check_open(self) -> None:
        if self._is_closed:
            raise DeviceError("the executable is closed; compile the program again")

    def input_words(self, buffer: int) -> Words:
        self._check_open()
        return self._views[buffer]

    def output_words(self, buffer: int) -> Words:
        self._check_open()
        return self._views[buffer]

    def run(self) -> None:
        self._check_open()
        try:
            for recording in self._sequences:
                recording.sequence.eval()
        except RuntimeError as error:
            raise DeviceError(
                f"the device failed while running {self._program.name!r}: {error}"
            ) from error
        self._times.note_run()

    def reset_states(self) -> None:
        self._check_open()
        for buffer in self._program.buffers:
            if buffer.kind == "state":
                self._views[buffer.id][:] = 0 if buffer.data is None else buffer.data

    def dispatch_us(self) -> list[float]:
        self._check_open()
        if not self._profiling:
            raise DeviceError("compiled without profiling; pass profiling=True")
        self._times.check_run()
        return self._times.spans_us([r.sequence.get_timestamps() for r in self._sequences])

    def check_guards(self) -> list[str]:
        self._check_open()
        if not self._guard_words or not self._tensors:
            return []
        self._manager.sequence().record(self._kp.OpTensorSyncLocal(self._tensors)).eval()
        names = {self._slot[b.id]: b.name for b in self._program.buffers}
        return [
            names[slot]
            for slot, tensor in enumerate(self._tensors)
            if (tensor.data()[-self._guard_words :] != GUARD_WORD).any()
        ]

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._views.clear()
        for recording in self._sequences:
            recording.sequence.destroy()
        for algorithm in self._algorithms.values():
            algorithm.destroy()
        self._sequences, self._algorithms = [], {}
        # Freed with the last reference: at once, or with the last array that looks into one.
        self._tensors, self._manager = [], None


class KomputeDevice:
    """A device opened through `kp.Manager`."""

    dispatcher = "kompute"

    def __init__(self, info: DeviceInfo, *, is_strict: bool | None = None) -> None:
        """Open a device and try it.

        Args:
            info: which one; its index is Kompute's.
            is_strict: one submit per hazard-free run; None reads TFLITE_VK_STRICT_SUBMITS.

        Raises:
            DeviceError: Kompute is missing, the device can't be opened, or it fails the self-test.
        """
        self.info = info
        self.kp = load_kp()
        self._is_strict = os.environ.get(STRICT_VARIABLE) == "1" if is_strict is None else is_strict
        self._is_closed = False
        self._executables: weakref.WeakSet[KomputeExecutable] = weakref.WeakSet()
        try:
            self.manager: Any = self.kp.Manager(info.index)
        except RuntimeError as error:
            raise DeviceError(
                f"Kompute can't open device {info.index} {info.name!r}: {error}"
            ) from error
        self._self_test()

    def compile(
        self, program: Program, plan: MemoryPlan, *, profiling: bool = False, guard_words: int = 0
    ) -> KomputeExecutable:
        if self._is_closed:
            raise DeviceError(f"device {self.info.name!r} is closed; open it again")
        executable = KomputeExecutable(
            self,
            program,
            plan,
            profiling=profiling,
            guard_words=guard_words,
            is_strict=self._is_strict,
        )
        self._executables.add(executable)
        return executable

    @property
    def is_closed(self) -> bool:
        """True after `close`."""
        return self._is_closed

    def close(self) -> None:
        """Close every executable, then the device; it stays open while an array looks into it."""
        self._is_closed = True
        for executable in list(self._executables):
            executable.close()
        self.manager = None

    def _self_test(self) -> None:
        """Read a tensor back, then run a chain of dependent dispatches.

        Two faults are silent otherwise: `kp` built with a pybind11 too old for its NumPy reads
        every tensor as its first element repeated, and a driver could overlap the dispatches.
        """
        count = 4096
        start = np.arange(count, dtype=np.uint32)
        tensor = self.manager.tensor_t(start)
        self.manager.sequence().record(self.kp.OpTensorSyncDevice([tensor])).eval()
        tensor.data()[:] = 0
        self.manager.sequence().record(self.kp.OpTensorSyncLocal([tensor])).eval()
        if not np.array_equal(tensor.data(), start):
            raise DeviceError(
                "Kompute reads tensors back wrong: it was built with a pybind11 older than 2.12; "
                "rebuild it as README.md says"
            )
        tensor.destroy()
        program = self_test_program(count)
        executable = self.compile(program, plan_memory(program))
        executable.input_words(0).view(np.float32)[:] = start
        executable.run()
        got = executable.output_words(len(program.buffers) - 2).view(np.float32).copy()
        executable.close()
        want = start.astype(np.float32) + SELF_TEST_LENGTH
        if not np.array_equal(got, want):
            raise DeviceError(
                f"device {self.info.name!r} runs dependent dispatches out of order under Kompute; "
                f'set {STRICT_VARIABLE}=1, or use dispatcher="vulkan"'
            )


SELF_TEST_LENGTH = 16


def self_test_program(count: int) -> Program:
    """A chain of dependent dispatches, each adding 1 to `count` float32 values."""
    one, add_immediate = 0x3F800000, 32 | 5 << 10  # OP_ADD with MODE_IMMEDIATE of epilogue.glsl
    last = SELF_TEST_LENGTH
    buffers = [
        Buffer(i, f"chain{i}", count, "input" if i == 0 else "output" if i == last else "temporary")
        for i in range(last + 1)
    ]
    unused = last + 1
    buffers.append(Buffer(unused, "unused", 4, "constant", np.zeros(4, np.uint32)))
    kernel = Kernel("elementwise", (64, 1, 1, add_immediate, *[0] * 7))
    groups = count // 4
    dispatches = tuple(
        Dispatch(
            kernel=kernel,
            bindings=(
                Binding(i, "r"),
                Binding(i + 1, "w"),
                *[Binding(unused, "r")] * 3,
            ),
            push=(one, 0, 0, 0, groups, groups),
            groups=(-(-groups // 64), 1, 1),
            label=f"self-test {i}",
            node=i,
        )
        for i in range(last)
    )
    return Program("self-test", tuple(buffers), dispatches)
