"""LoweringContext: what an operator's `lower` works with. It collects buffers and dispatches."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tflite_vk.device_info import DeviceInfo, DeviceLimits
from tflite_vk.dtypes import DType
from tflite_vk.epilogue import build_epilogue
from tflite_vk.errors import ShaderError, UnsupportedOpError
from tflite_vk.ir.graph import Graph, Node, Tensor
from tflite_vk.layout import Storage, pack, storage_of, words_for
from tflite_vk.ops.launch import Groups, flat_groups, flat_local
from tflite_vk.ops.sizes import Choice, Effort, Offer, Size
from tflite_vk.program import Binding, Buffer, BufferKind, Dispatch, Kernel, Words
from tflite_vk.shader_library import shader_info
from tflite_vk.shape import num_vectors

_SATURATE = 2
"""How cast.comp narrows 64-bit indices."""

HOST_NODE = -1
"""Node index of a dispatch that serves no TFLite node."""


@dataclass
class _Draft:
    """A buffer while its program is being made; its kind may still change."""

    name: str
    words: int
    kind: BufferKind
    data: Words | None = None


def _initial_state(tensor: Tensor, words: int) -> Words:
    """What TFLite resets a variable to: its zero point where it is int8, else zeros."""
    zero = 0
    if tensor.dtype is DType.INT8 and tensor.quantization is not None:
        zero = tensor.quantization.zero_point[0] & 0xFF
    return np.full(words, zero * 0x01010101, np.uint32)


@dataclass
class LoweringContext:
    """Collects the program of one graph.

    Attributes:
        graph: the graph after all passes.
        device: the device the program is for; kernels are chosen by its limits.
        half: the node being lowered reads and writes run-time float tensors as float16.
        tuned: sizes that tuning found, by signature.
        effort: how many other sizes to note in `choices`.
        renewed: where the host keeps states, the buffer with each one's new content.
        choices: dispatches that could run in other sizes.
    """

    graph: Graph
    device: DeviceInfo
    half: bool = False
    tuned: Mapping[str, Size] = field(default_factory=dict)
    effort: Effort = "off"
    dispatches: list[Dispatch] = field(default_factory=list)
    choices: list[Choice] = field(default_factory=list)
    _drafts: list[_Draft] = field(default_factory=list)
    _of_tensor: dict[tuple[int, Storage], int] = field(default_factory=dict)
    _stored: dict[int, Storage] = field(default_factory=dict)
    _constants: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    renewed: dict[int, int] = field(default_factory=dict)

    @property
    def limits(self) -> DeviceLimits:
        """Limits of the device."""
        return self.device.limits

    @contextlib.contextmanager
    def precision(self, *, half: bool) -> Iterator[None]:
        """Read, write and choose kernels in one precision for a while."""
        before, self.half = self.half, half
        yield
        self.half = before

    # Buffers

    def _new(self, name: str, words: int, kind: BufferKind, data: Words | None = None) -> int:
        most = self.limits.max_storage_buffer_bytes
        if 4 * words > most:
            raise UnsupportedOpError(
                f"{name!r} takes {4 * words} bytes, the device binds at most {most} "
                "(maxStorageBufferRange)"
            )
        self._drafts.append(_Draft(name, words, kind, data))
        return len(self._drafts) - 1

    def storage(self, tensor: Tensor) -> Storage:
        """How the node being lowered reads or writes a tensor.

        Raises:
            ShaderError: the type has no storage; the registry should have declined the node.
        """
        storage = storage_of(tensor.dtype, half=self.half)
        if storage is None:
            raise ShaderError(
                f"tensor {tensor.id} {tensor.name!r}: no storage for {tensor.dtype.name}"
            )
        return storage

    def stored_as(self, tensor_id: int) -> Storage:
        """How a tensor was written; as the node being lowered would, where nothing has been yet."""
        return self._stored.get(tensor_id) or self.storage(self.graph.tensors[tensor_id])

    def buffer(self, tensor_id: int, storage: Storage | None = None) -> int:
        """The buffer that holds a tensor, in the padded layout; a constant is uploaded packed.

        A tensor that is stored otherwise, by a node of the other precision or as 64-bit indices, is
        converted first.

        Args:
            tensor_id: the tensor.
            storage: of a tensor that is read; None for that of the node being lowered.
        """
        tensor = self.graph.tensors[tensor_id]
        storage = storage or self.storage(tensor)
        if (tensor_id, storage) in self._of_tensor:
            return self._of_tensor[tensor_id, storage]
        if tensor.data is not None:
            buffer = self.constant(pack(tensor.data, storage), tensor.name)
        elif tensor_id in self._stored:
            buffer = self._converted(tensor, storage)
        else:
            kind: BufferKind = "state" if tensor.is_variable else "temporary"
            words = words_for(tensor.shape, storage)
            data = _initial_state(tensor, words) if tensor.is_variable else None
            buffer = self._new(tensor.name, words, kind, data)
        self._of_tensor[tensor_id, storage] = buffer
        self._stored.setdefault(tensor_id, storage)
        return buffer

    def _converted(self, tensor: Tensor, storage: Storage) -> int:
        """A buffer with a tensor's values in another storage, and the dispatch that fills it."""
        if tensor.is_variable:
            raise ShaderError(f"state {tensor.id} {tensor.name!r} is used in two precisions")
        before = self._stored[tensor.id]
        buffer = self.temporary(words_for(tensor.shape, storage), f"{tensor.name}/{storage}")
        vectors = num_vectors(tensor.shape)
        self.dispatch_flat(
            Node(HOST_NODE, "CONVERT", (tensor.id,), ()),
            f"cast_{before}_{storage}",
            [self._of_tensor[tensor.id, before], buffer],
            invocations=vectors,
            spec=(_SATURATE if before == "i64" else 0,),
            push=(vectors,),
        )
        return buffer

    def kept(self, tensor_id: int) -> tuple[int, int]:
        """Buffers with a state's content before and after the node being lowered.

        They are one where the device keeps the state. What is lowered later reads the new content.
        """
        before = self.buffer(tensor_id)
        if self._drafts[before].kind == "state":
            return before, before
        tensor = self.graph.tensors[tensor_id]
        words = words_for(tensor.shape, self.storage(tensor))
        after = self._new(f"{tensor.name}/after", words, "temporary")
        self.place(tensor_id, after)
        self.renewed[tensor_id] = after
        return before, after

    def alias(self, tensor_id: int, of: int) -> None:
        """Let a tensor live in the buffer of another."""
        self.place(tensor_id, self.buffer(of))

    def place(self, tensor_id: int, buffer: int) -> None:
        """Let a tensor live in a buffer that is there already, such as a constant."""
        storage = self.storage(self.graph.tensors[tensor_id])
        self._of_tensor[tensor_id, storage] = buffer
        self._stored.setdefault(tensor_id, storage)

    def mark(self, tensor_id: int, kind: BufferKind) -> int:
        """Make a tensor's buffer one the host writes ("input") or reads ("output")."""
        buffer = self.buffer(tensor_id)
        draft = self._drafts[buffer]
        if draft.kind == "temporary":
            draft.kind = kind
        return buffer

    def host_buffer(self, words: int, name: str, kind: BufferKind) -> int:
        """A buffer of its own that the host writes ("input") or reads ("output")."""
        return self._new(name, words, kind)

    def show(self, buffer: int) -> None:
        """Let the host read a buffer between dispatches after the run."""
        self._drafts[buffer].kind = "output"

    def is_temporary(self, tensor_id: int) -> bool:
        """True where a tensor's buffer belongs to no input, output, constant or state so far."""
        buffer = self.buffer(tensor_id, self.stored_as(tensor_id))
        return self._drafts[buffer].kind == "temporary"

    def constant(self, words: npt.NDArray[np.generic], name: str) -> int:
        """A constant buffer of 32-bit words; equal contents share one buffer."""
        flat = np.ascontiguousarray(words).reshape(-1).view(np.uint32)
        if flat.size < 4:
            flat = np.concatenate([flat, np.zeros(4 - flat.size, np.uint32)])
        same_sum = self._constants.setdefault((flat.size, zlib.crc32(flat.data)), [])
        for buffer in same_sum:
            held = self._drafts[buffer].data
            if held is not None and np.array_equal(flat, held):
                return buffer
        same_sum.append(self._new(name, flat.size, "constant", flat))
        return same_sum[-1]

    def temporary(self, words: int, name: str) -> int:
        """A buffer for values between dispatches of one node."""
        return self._new(name, max(4, words), "temporary")

    def unused(self) -> int:
        """What stands in a binding that the kernel doesn't read."""
        return self.constant(np.zeros(4, np.uint32), "unused")

    # Dispatches

    def dispatch(
        self,
        node: Node,
        shader: str,
        bindings: Sequence[int],
        *,
        groups: Groups,
        spec: Sequence[int] = (),
        push: Sequence[int] = (),
        flops: int = 0,
    ) -> None:
        """Add a dispatch.

        Args:
            node: the node it serves.
            shader: name in the shader library.
            bindings: buffers, binding 0 first; read or written as the shader declares.
            groups: workgroup counts.
            spec: every specialization constant, local size first.
            push: every push constant word.
            flops: operations, for the profiler.
        """
        access = shader_info(shader).access
        if len(access) != len(bindings):
            raise ShaderError(
                f"shader {shader} has {len(access)} bindings, {node.op} gives {len(bindings)}"
            )
        names = "+".join(node.ops)
        self.dispatches.append(
            Dispatch(
                kernel=Kernel(shader, tuple(spec)),
                bindings=tuple(Binding(b, a) for b, a in zip(bindings, access, strict=True)),
                push=tuple(push),
                groups=groups,
                label=f"{names} #{node.index}",
                node=node.index,
                flops=flops,
            )
        )

    def compute(
        self,
        node: Node,
        shader: str,
        inputs: Sequence[int],
        output: int,
        *,
        local: Groups,
        groups: Groups,
        spec: Sequence[int] = (),
        push: Sequence[int] = (),
        flops: int = 0,
        needs_full: bool = False,
    ) -> None:
        """Add a dispatch of a kernel that ends in the epilogue, with the node's fused steps.

        Args:
            node: the node; its steps go into the epilogue.
            shader: name of the plain float32 build; the float16 and the `_full` ones are chosen
                by themselves.
            inputs: buffers bound before the output.
            output: buffer of the output, bound behind the inputs.
            local: local size.
            groups: workgroup counts.
            spec: the kernel's own specialization constants, ids 11 and up.
            push: the kernel's own push words, behind the immediates.
            flops: operations, for the profiler.
            needs_full: the kernel itself uses an operator beyond epilogue.LIGHT_OPS.
        """
        shape = self.graph.output(node).shape
        packed = build_epilogue(node.steps, shape, self.graph.tensors)
        if packed is None:
            raise ShaderError(
                f"{node.op} #{node.index}: its {len(node.steps)} fused steps don't fit a kernel"
            )
        operands = [self.buffer(t) for t in packed.operands]
        operands += [self.unused()] * (3 - len(operands))
        self.dispatch(
            node,
            self.variant(shader, is_full=needs_full or not packed.is_light),
            [*inputs, output, *operands],
            groups=groups,
            spec=(*local, *packed.spec, *spec),
            push=(*packed.immediates, *push),
            flops=flops,
        )

    def add_sized(self, offer: Offer, add: Callable[[Size], None]) -> None:
        """Add a dispatch in the best size that is known, and note the others.

        Args:
            offer: the sizes.
            add: adds the dispatch in a size. The first time others may come before it, which
                convert what it reads; after that it is one.
        """
        chosen = offer.pick(self.tuned)
        add(chosen)
        position = len(self.dispatches) - 1
        others: dict[Size, Dispatch] = {}
        for size in offer.others(self.effort, chosen):
            add(size)
            others[size] = self.dispatches.pop()
        assert len(self.dispatches) == position + 1, offer.signature
        if others:
            self.choices.append(Choice(position, offer.signature, chosen, others))

    def compute_flat(
        self,
        node: Node,
        shader: str,
        inputs: Sequence[int],
        output: int,
        *,
        invocations: int,
        spec: Sequence[int] = (),
        push: Sequence[int] = (),
        flops: int = 0,
        needs_full: bool = False,
    ) -> None:
        """`compute` with one invocation for each of `invocations` flat indices."""
        local = flat_local(self.limits)
        groups = flat_groups(invocations, local, self.limits)
        self.compute(
            node,
            shader,
            inputs,
            output,
            local=local,
            groups=groups,
            spec=spec,
            push=push,
            flops=flops,
            needs_full=needs_full,
        )

    def dispatch_flat(
        self,
        node: Node,
        shader: str,
        bindings: Sequence[int],
        *,
        invocations: int,
        spec: Sequence[int] = (),
        push: Sequence[int] = (),
        flops: int = 0,
    ) -> None:
        """`dispatch` with one invocation for each of `invocations` flat indices."""
        local = flat_local(self.limits)
        groups = flat_groups(invocations, local, self.limits)
        self.dispatch(
            node, shader, bindings, groups=groups, spec=(*local, *spec), push=push, flops=flops
        )

    def variant(self, shader: str, *, is_full: bool = False) -> str:
        """Name of a shader's build for the storage of activations and the size of the epilogue."""
        name = f"{shader}_f16" if self.half else shader
        return f"{name}_full" if is_full else name

    def finish(self) -> tuple[tuple[Buffer, ...], tuple[Dispatch, ...]]:
        """Buffers and dispatches of the program."""
        buffers = tuple(
            Buffer(i, d.name, d.words, d.kind, d.data) for i, d in enumerate(self._drafts)
        )
        return buffers, tuple(self.dispatches)
