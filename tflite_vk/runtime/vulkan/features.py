"""Optional device features: what SPIR-V capabilities need, what a device has, how to enable them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tflite_vk.shader_library import shader_info, shader_names


@dataclass(frozen=True)
class Feature:
    """One feature bit of Vulkan.

    Attributes:
        name: the member of its structure, as DeviceInfo.features spells it.
        struct: the structure that holds it; None for the core VkPhysicalDeviceFeatures.
        extension: the device extension to enable with it; None in Vulkan 1.1 itself.
    """

    name: str
    struct: str | None = None
    extension: str | None = None


_FLOAT16_INT8 = ("VkPhysicalDeviceShaderFloat16Int8Features", "VK_KHR_shader_float16_int8")
_MEMORY_MODEL = ("VkPhysicalDeviceVulkanMemoryModelFeatures", "VK_KHR_vulkan_memory_model")
_DOT = Feature(
    "shaderIntegerDotProduct",
    "VkPhysicalDeviceShaderIntegerDotProductFeatures",
    "VK_KHR_shader_integer_dot_product",
)

BY_CAPABILITY: dict[str, Feature] = {
    "Int16": Feature("shaderInt16"),
    "Int64": Feature("shaderInt64"),
    "Float64": Feature("shaderFloat64"),
    "Float16": Feature("shaderFloat16", *_FLOAT16_INT8),
    "Int8": Feature("shaderInt8", *_FLOAT16_INT8),
    "StorageBuffer16BitAccess": Feature(
        "storageBuffer16BitAccess", "VkPhysicalDevice16BitStorageFeatures"
    ),
    "StorageBuffer8BitAccess": Feature(
        "storageBuffer8BitAccess", "VkPhysicalDevice8BitStorageFeatures", "VK_KHR_8bit_storage"
    ),
    "DotProduct": _DOT,
    "DotProductInput4x8BitPacked": _DOT,
    "DotProductInput4x8Bit": _DOT,
    "DotProductInputAll": _DOT,
    "VulkanMemoryModel": Feature("vulkanMemoryModel", *_MEMORY_MODEL),
    "VulkanMemoryModelDeviceScope": Feature("vulkanMemoryModelDeviceScope", *_MEMORY_MODEL),
    "CooperativeMatrixKHR": Feature(
        "cooperativeMatrix",
        "VkPhysicalDeviceCooperativeMatrixFeaturesKHR",
        "VK_KHR_cooperative_matrix",
    ),
}
"""SPIR-V capability to the feature that allows it. Subgroup operations need no enabling."""

_SUBGROUP_BITS = {
    "subgroupBasic": (1, "GroupNonUniform"),
    "subgroupVote": (2, "GroupNonUniformVote"),
    "subgroupArithmetic": (4, "GroupNonUniformArithmetic"),
    "subgroupBallot": (8, "GroupNonUniformBallot"),
    "subgroupShuffle": (16, "GroupNonUniformShuffle"),
    "subgroupShuffleRelative": (32, "GroupNonUniformShuffleRelative"),
    "subgroupClustered": (64, "GroupNonUniformClustered"),
    "subgroupQuad": (128, "GroupNonUniformQuad"),
}
_COMPUTE_STAGE = 0x20
_SUBGROUP_CAPABILITY = {capability: name for name, (_, capability) in _SUBGROUP_BITS.items()}


def all_features() -> list[Feature]:
    """Every feature a kernel may need, each once."""
    return list(dict.fromkeys(BY_CAPABILITY.values()))


def subgroup_features(properties: Any) -> Iterator[str]:
    """Names for the subgroup operations compute shaders may use, from the device's properties."""
    if properties.supportedStages & _COMPUTE_STAGE:
        for name, (bit, _) in _SUBGROUP_BITS.items():
            if properties.supportedOperations & bit:
                yield name


def without_enabling(features: Iterable[str]) -> frozenset[str]:
    """Features that work on a device opened with none enabled, as Kompute opens it."""
    return frozenset(f for f in features if f in _SUBGROUP_BITS)


def feature_of(capability: str) -> str | None:
    """Name of the feature a SPIR-V capability needs; None where every device has it.

    An unknown capability is its own name, which no device has.
    """
    if capability == "Shader":
        return None
    if capability in BY_CAPABILITY:
        return BY_CAPABILITY[capability].name
    return _SUBGROUP_CAPABILITY.get(capability, capability)


def wanted_by_library(available: frozenset[str]) -> list[Feature]:
    """Features that any shader of the package needs and the device has; none for the base set."""
    capabilities = {c for name in shader_names() for c in shader_info(name).capabilities}
    return [
        f
        for f in all_features()
        if f.name in available and any(BY_CAPABILITY.get(c) == f for c in capabilities)
    ]


@dataclass(frozen=True)
class FeatureChain:
    """The structures of a list of features, linked by pNext.

    Attributes:
        core: a VkPhysicalDeviceFeatures2, the head of the chain.
        members: every structure, by name; None for the core one. They keep the chain alive.
    """

    core: Any
    members: dict[str | None, Any]


def feature_chain(vk: Any, features: Iterable[Feature], *, enable: bool) -> FeatureChain:
    """Structures for a list of features: all zero, to be filled by a query, or with their bits on."""
    core = vk.ffi.new("VkPhysicalDeviceFeatures2*")
    core.sType = vk.VkPhysicalDeviceFeatures2.__defaults__[0]
    members: dict[str | None, Any] = {None: core.features}
    tail = core
    for feature in features:
        if feature.struct not in members:
            struct = vk.ffi.new(f"{feature.struct}*")
            struct.sType = getattr(vk, str(feature.struct)).__defaults__[0]
            tail.pNext = struct
            tail = members[feature.struct] = struct
        if enable:
            setattr(members[feature.struct], feature.name, 1)
    return FeatureChain(core, members)


def available_features(vk: Any, device: Any, extensions: frozenset[str]) -> frozenset[str]:
    """Names of the features a physical device offers.

    Args:
        vk: the `vulkan` module.
        device: a VkPhysicalDevice of Vulkan 1.1 or newer.
        extensions: its device extensions.
    """
    queried = [f for f in all_features() if f.extension is None or f.extension in extensions]
    chain = feature_chain(vk, queried, enable=False)
    vk.lib.vkGetPhysicalDeviceFeatures2(device, chain.core)
    return frozenset(f.name for f in queried if getattr(chain.members[f.struct], f.name))
