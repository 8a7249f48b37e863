"""A graph to what a device runs: out of the cache where it is there, else lowered, tuned, planned."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from tflite_vk.cache.compile_cache import CompileCache
from tflite_vk.cache.sizes import TunedSizes
from tflite_vk.errors import DeviceError
from tflite_vk.ir.graph import Graph
from tflite_vk.lowering import Lowered, lower
from tflite_vk.memory import plan_memory
from tflite_vk.ops.sizes import Effort, Size
from tflite_vk.program import MemoryPlan
from tflite_vk.runtime.device import Device
from tflite_vk.runtime.open import open_scratch
from tflite_vk.tuning import tune

logger = logging.getLogger("tflite_vk")


@dataclass(frozen=True)
class CompileSettings:
    """Options that change the program.

    Attributes:
        precision: "fp32" or "fp16".
        fusion: make one kernel of several operators.
        fp32_ops: operators that keep float32 in "fp16".
        tuning: how many sizes of a kernel to try on the device.
        host_states: the host keeps variables.
    """

    precision: str = "fp32"
    fusion: bool = True
    fp32_ops: tuple[str, ...] = ()
    tuning: Effort = "off"
    host_states: bool = False


def compile_graph(
    graph: Graph, device: Device, settings: CompileSettings, cache: CompileCache | None = None
) -> tuple[Lowered, MemoryPlan]:
    """Compile a graph whose every node is supported.

    Args:
        graph: a verified graph.
        device: what the program is for.
        settings: options.
        cache: asked first, and told afterwards.

    Raises:
        UnsupportedOpError: a node that partitioning should have left out.
    """
    key = repr(settings)
    found = None if cache is None else cache.load_program(graph, key)
    if found is not None:
        return found
    tuned = _tuned_sizes(graph, device, settings, cache)
    lowered = _lower(graph, device, settings, tuned)
    plan = plan_memory(lowered.program)
    if cache is not None:
        cache.save_program(graph, key, lowered, plan)
    return lowered, plan


def _lower(
    graph: Graph,
    device: Device,
    settings: CompileSettings,
    tuned: Mapping[str, Size],
    effort: Effort = "off",
) -> Lowered:
    return lower(
        graph,
        device.info,
        half=settings.precision == "fp16",
        fusion=settings.fusion,
        fp32_ops=settings.fp32_ops,
        host_states=settings.host_states,
        tuned=tuned,
        effort=effort,
    )


def _tuned_sizes(
    graph: Graph, device: Device, settings: CompileSettings, cache: CompileCache | None
) -> dict[str, Size]:
    """Sizes for what is in a graph, found now where no earlier process has."""
    effort = settings.tuning
    if effort == "off" or device.dispatcher == "null":
        return {}
    sizes = TunedSizes() if cache is None else cache.load_sizes()
    known = sizes.known(effort)
    lowered = _lower(graph, device, settings, known, effort)
    new = [c for c in lowered.choices if c.signature not in known]
    if not new:
        return known
    try:
        # On a device of its own: what loses shall not stay in the pipeline cache.
        with open_scratch(device) as scratch:
            sizes.add(effort, tune(lowered.program, new, scratch, effort))
    except DeviceError as error:
        logger.warning("tuning is left out: %s", error)
        return known
    if cache is not None:
        cache.save_sizes(sizes)
    return sizes.known(effort)
