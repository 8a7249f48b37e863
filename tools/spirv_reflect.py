"""Read the interface of a compute shader out of its SPIR-V binary.

The manifest that the runtime and the tests rely on is made from what the compiler emitted, not from
what the GLSL text seems to say: defines, includes and dead code cannot mislead it. Only the handful
of instructions that make up the interface are decoded; function bodies are never looked at.

Numbers of instructions, decorations and storage classes: SPIR-V specification 1.6, section 3.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

MAGIC = 0x07230203

# Vulkan guarantees 128 bytes of push constants, and many drivers give no more.
MAX_PUSH_WORDS = 32

# A capability turns into a device feature that must be switched on, so one that nobody has thought
# about may not slip through as a bare number.
CAPABILITIES = {
    0: "Matrix",
    1: "Shader",
    9: "Float16",
    10: "Float64",
    11: "Int64",
    12: "Int64Atomics",
    22: "Int16",
    39: "Int8",
    61: "GroupNonUniform",
    62: "GroupNonUniformVote",
    63: "GroupNonUniformArithmetic",
    64: "GroupNonUniformBallot",
    65: "GroupNonUniformShuffle",
    66: "GroupNonUniformShuffleRelative",
    67: "GroupNonUniformClustered",
    68: "GroupNonUniformQuad",
    4433: "StorageBuffer16BitAccess",
    4434: "UniformAndStorageBuffer16BitAccess",
    4435: "StoragePushConstant16",
    4448: "StorageBuffer8BitAccess",
    4449: "UniformAndStorageBuffer8BitAccess",
    4450: "StoragePushConstant8",
    4464: "DenormPreserve",
    4465: "DenormFlushToZero",
    4466: "SignedZeroInfNanPreserve",
    4467: "RoundingModeRTE",
    4468: "RoundingModeRTZ",
    5345: "VulkanMemoryModel",
    5346: "VulkanMemoryModelDeviceScope",
    6016: "DotProductInputAll",
    6017: "DotProductInput4x8Bit",
    6018: "DotProductInput4x8BitPacked",
    6019: "DotProduct",
    6022: "CooperativeMatrixKHR",
    6033: "AtomicFloat32AddEXT",
}

_OP_CAPABILITY = 17
_OP_TYPE_BOOL, _OP_TYPE_INT, _OP_TYPE_FLOAT = 20, 21, 22
_OP_TYPE_VECTOR, _OP_TYPE_MATRIX = 23, 24
_OP_TYPE_ARRAY, _OP_TYPE_RUNTIME_ARRAY, _OP_TYPE_STRUCT, _OP_TYPE_POINTER = 28, 29, 30, 32
_TYPES = frozenset({20, 21, 22, 23, 24, 28, 29, 30, 32})
_OP_CONSTANT = 43
_OP_SPEC_TRUE, _OP_SPEC_FALSE, _OP_SPEC_CONSTANT, _OP_SPEC_COMPOSITE = 48, 49, 50, 51
_OP_FUNCTION, _OP_VARIABLE = 54, 59
_OP_DECORATE, _OP_MEMBER_DECORATE = 71, 72

_SPEC_ID, _BUFFER_BLOCK, _ARRAY_STRIDE, _MATRIX_STRIDE, _BUILT_IN = 1, 3, 6, 7, 11
_NON_WRITABLE, _NON_READABLE, _BINDING, _DESCRIPTOR_SET, _OFFSET = 24, 25, 33, 34, 35
_BUILT_IN_WORKGROUP_SIZE = 25

_UNIFORM_CONSTANT, _UNIFORM, _WORKGROUP, _PUSH_CONSTANT, _STORAGE_BUFFER = 0, 2, 4, 9, 12


class ReflectError(ValueError):
    """The binary is not SPIR-V, or its interface breaks a rule of this project."""


@dataclass(frozen=True)
class Interface:
    """What a dispatch has to provide for one shader.

    Attributes:
        access: One of "r", "w", "rw" for each binding of descriptor set 0, in binding order.
        push_words: 32-bit words up to the end of the push constant block, inner padding included.
        spec_defaults: Default of each specialization constant as a 32-bit word, in id order.
        shared_bytes: Workgroup memory, or None where its size depends on specialization constants.
    """

    access: tuple[str, ...]
    push_words: int
    spec_defaults: tuple[int, ...]
    shared_bytes: int | None


@dataclass
class _Module:
    """The global section of a module, indexed by result id."""

    capabilities: list[int] = field(default_factory=list)
    types: dict[int, tuple[int, tuple[int, ...]]] = field(default_factory=dict)
    constants: dict[int, int] = field(default_factory=dict)
    spec_constants: dict[int, tuple[int, tuple[int, ...]]] = field(default_factory=dict)
    composites: dict[int, tuple[int, ...]] = field(default_factory=dict)
    variables: list[tuple[int, int, int]] = field(default_factory=list)  # id, pointer type, class
    decorations: dict[int, dict[int, int]] = field(default_factory=dict)
    member_decorations: dict[tuple[int, int], dict[int, int]] = field(default_factory=dict)

    def decoration(self, target: int, kind: int) -> int | None:
        return self.decorations.get(target, {}).get(kind)


def reflect(binary: bytes) -> Interface:
    """Return the declared interface of a compute shader.

    Give it the module as the compiler front end wrote it: the optimiser drops bindings and
    specialization constants that a variant does not use, while a pipeline layout and a list of
    specialization constants made for the declared interface fit the optimised module too.

    Raises:
        ReflectError: Not SPIR-V, or a rule is broken: buffers in descriptor set 0 only, bindings and
            specialization ids without a gap, 32-bit specialization constants, ids 0, 1 and 2 being
            the local size, at most 32 push words.
    """
    module = _parse(binary)
    defaults = _spec_defaults(module)
    _check_local_size(module)
    return Interface(
        access=_access(module),
        push_words=_push_words(module),
        spec_defaults=defaults,
        shared_bytes=_shared_bytes(module),
    )


def capabilities(binary: bytes) -> tuple[str, ...]:
    """Return the names of the capabilities that a module declares, in a stable order.

    Raises:
        ReflectError: A capability is not in `CAPABILITIES`.
    """
    numbers = sorted(set(_parse(binary).capabilities))
    for number in numbers:
        if number not in CAPABILITIES:
            raise ReflectError(
                f"the shader needs SPIR-V capability {number}, which has no name here: add it to "
                "CAPABILITIES in tools/spirv_reflect.py, and the device feature to the runtime"
            )
    return tuple(CAPABILITIES[number] for number in numbers)


def _instructions(binary: bytes) -> Iterator[tuple[int, tuple[int, ...]]]:
    if len(binary) < 20 or len(binary) % 4:
        raise ReflectError(f"{len(binary)} bytes are not a SPIR-V module")
    words = struct.unpack(f"<{len(binary) // 4}I", binary)
    if words[0] != MAGIC:
        raise ReflectError(f"starts with {words[0]:#010x}, not with SPIR-V's {MAGIC:#010x}")
    at = 5
    while at < len(words):
        count = words[at] >> 16
        if count == 0 or at + count > len(words):
            raise ReflectError(f"instruction at word {at} runs past the end of the module")
        yield words[at] & 0xFFFF, words[at + 1 : at + count]
        at += count


def _parse(binary: bytes) -> _Module:
    module = _Module()
    for op, args in _instructions(binary):
        if op == _OP_FUNCTION:
            break  # what follows are function bodies
        if op == _OP_CAPABILITY:
            module.capabilities.append(args[0])
        elif op in _TYPES:
            module.types[args[0]] = (op, args[1:])
        elif op == _OP_CONSTANT:
            module.constants[args[1]] = args[2]
        elif op in (_OP_SPEC_TRUE, _OP_SPEC_FALSE):
            module.spec_constants[args[1]] = (args[0], (int(op == _OP_SPEC_TRUE),))
        elif op == _OP_SPEC_CONSTANT:
            module.spec_constants[args[1]] = (args[0], args[2:])
        elif op == _OP_SPEC_COMPOSITE:
            module.composites[args[1]] = args[2:]
        elif op == _OP_VARIABLE:
            module.variables.append((args[1], args[0], args[2]))
        elif op == _OP_DECORATE:
            value = args[2] if len(args) > 2 else 1
            module.decorations.setdefault(args[0], {})[args[1]] = value
        elif op == _OP_MEMBER_DECORATE:
            value = args[3] if len(args) > 3 else 1
            module.member_decorations.setdefault((args[0], args[1]), {})[args[2]] = value
    return module


def _access(module: _Module) -> tuple[str, ...]:
    found: dict[int, tuple[bool, bool]] = {}  # binding -> (is read, is written)
    for variable, pointer, storage in module.variables:
        if storage not in (_UNIFORM_CONSTANT, _UNIFORM, _STORAGE_BUFFER):
            continue
        binding = module.decoration(variable, _BINDING)
        struct_type = module.types[pointer][1][1]
        if storage != _STORAGE_BUFFER or module.types[struct_type][0] != _OP_TYPE_STRUCT:
            raise ReflectError(
                f"binding {binding} is not one storage buffer: images, uniform blocks and arrays of "
                "buffers cannot be bound here; declare `buffer`"
            )
        descriptor_set = module.decoration(variable, _DESCRIPTOR_SET) or 0
        if descriptor_set != 0 or binding is None:
            raise ReflectError(f"binding {binding} is in descriptor set {descriptor_set}, not in 0")
        reads = not _has(module, variable, struct_type, _NON_READABLE)
        writes = not _has(module, variable, struct_type, _NON_WRITABLE)
        # Two blocks may name one binding, to see the same words as uint and as vec4.
        before = found.get(binding, (False, False))
        found[binding] = (before[0] or reads, before[1] or writes)
    if sorted(found) != list(range(len(found))):
        raise ReflectError(f"bindings are {sorted(found)}: number them 0, 1, 2, ... without a gap")
    names = {(True, False): "r", (False, True): "w", (True, True): "rw", (False, False): "r"}
    return tuple(names[found[binding]] for binding in range(len(found)))


def _has(module: _Module, variable: int, struct_type: int, kind: int) -> bool:
    """Return whether a buffer carries a decoration, on itself or on every member of its block."""
    if module.decoration(variable, kind) is not None:
        return True
    members = range(len(module.types[struct_type][1]))
    return all(kind in module.member_decorations.get((struct_type, i), {}) for i in members)


def _spec_defaults(module: _Module) -> tuple[int, ...]:
    found: dict[int, int] = {}
    for result, (type_id, words) in module.spec_constants.items():
        spec_id = module.decoration(result, _SPEC_ID)
        if spec_id is None:
            continue
        op, args = module.types[type_id]
        if op != _OP_TYPE_BOOL and args[0] != 32:
            raise ReflectError(f"specialization constant {spec_id} has {args[0]} bits, not 32")
        if spec_id in found:
            raise ReflectError(f"specialization id {spec_id} is declared twice")
        found[spec_id] = words[0]
    if sorted(found) != list(range(len(found))):
        raise ReflectError(
            f"specialization ids are {sorted(found)}: number them 0, 1, 2, ... without a gap"
        )
    return tuple(found[spec_id] for spec_id in range(len(found)))


def _check_local_size(module: _Module) -> None:
    for result, parts in module.composites.items():
        if module.decoration(result, _BUILT_IN) == _BUILT_IN_WORKGROUP_SIZE:
            if [module.decoration(part, _SPEC_ID) for part in parts] == [0, 1, 2]:
                return
            break
    raise ReflectError(
        "the local size is not in specialization constants 0, 1, 2: declare "
        "`layout(local_size_x_id = 0, local_size_y_id = 1, local_size_z_id = 2) in;`"
    )


def _push_words(module: _Module) -> int:
    blocks = [pointer for _, pointer, storage in module.variables if storage == _PUSH_CONSTANT]
    if not blocks:
        return 0
    end = max(_explicit_end(module, module.types[pointer][1][1]) for pointer in blocks)
    words = -(-end // 4)
    if words > MAX_PUSH_WORDS:
        raise ReflectError(f"the push constant block has {words} words, over {MAX_PUSH_WORDS}")
    return words


def _explicit_end(module: _Module, struct_type: int) -> int:
    """Return the byte after the last member of a block, by its Offset decorations."""
    end = 0
    for i, member in enumerate(module.types[struct_type][1]):
        decorations = module.member_decorations.get((struct_type, i), {})
        size = _explicit_size(module, member, decorations.get(_MATRIX_STRIDE))
        end = max(end, decorations.get(_OFFSET, 0) + size)
    return end


def _explicit_size(module: _Module, type_id: int, matrix_stride: int | None) -> int:
    op, args = module.types[type_id]
    if op == _OP_TYPE_STRUCT:
        return _explicit_end(module, type_id)
    if op == _OP_TYPE_MATRIX and matrix_stride is not None:
        return args[1] * matrix_stride
    if op == _OP_TYPE_ARRAY:
        stride = module.decoration(type_id, _ARRAY_STRIDE)
        length = module.constants.get(args[1])
        if stride is None or length is None:
            raise ReflectError("an array in the push constant block has no fixed size")
        return stride * length
    size = _size_and_alignment(module, type_id)
    if size is None:
        raise ReflectError("a member of the push constant block has no fixed size")
    return size[0]


def _shared_bytes(module: _Module) -> int | None:
    total = 0
    for _, pointer, storage in module.variables:
        if storage != _WORKGROUP:
            continue
        size = _size_and_alignment(module, module.types[pointer][1][1])
        if size is None:
            return None
        total = _align(total, size[1]) + size[0]
    return total


def _size_and_alignment(module: _Module, type_id: int) -> tuple[int, int] | None:
    """Return bytes and alignment by std430, the rule by which Vulkan counts workgroup memory.

    None where a length is a specialization constant.
    """
    op, args = module.types[type_id]
    if op == _OP_TYPE_BOOL:
        return 4, 4
    if op in (_OP_TYPE_INT, _OP_TYPE_FLOAT):
        return args[0] // 8, args[0] // 8
    if op == _OP_TYPE_STRUCT:
        end, widest = 0, 1
        for member in args:
            part = _size_and_alignment(module, member)
            if part is None:
                return None
            end = _align(end, part[1]) + part[0]
            widest = max(widest, part[1])
        return _align(end, widest), widest
    if op in (_OP_TYPE_VECTOR, _OP_TYPE_MATRIX, _OP_TYPE_ARRAY):
        element = _size_and_alignment(module, args[0])
        length = args[1] if op != _OP_TYPE_ARRAY else module.constants.get(args[1])
        if element is None or length is None:
            return None
        if op == _OP_TYPE_VECTOR:
            return element[0] * length, element[1] * (4 if length == 3 else length)
        return _align(element[0], element[1]) * length, element[1]
    raise ReflectError(f"a type of instruction {op} cannot be measured")


def _align(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment
