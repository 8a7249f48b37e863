"""A graph to what a device runs: out of the cache where it is there, else lowered and planned."""

from __future__ import annotations

from dataclasses import dataclass

from tflite_vk.cache.compile_cache import CompileCache
from tflite_vk.ir.graph import Graph
from tflite_vk.lowering import Lowered, lower
from tflite_vk.memory import plan_memory
from tflite_vk.program import MemoryPlan
from tflite_vk.runtime.device import Device


@dataclass(frozen=True)
class CompileSettings:
    """Options that change the program.

    Attributes:
        precision: "fp32" or "fp16".
        fusion: fuse elementwise operators.
        fp32_ops: operators that keep float32 in "fp16".
    """

    precision: str = "fp32"
    fusion: bool = True
    fp32_ops: tuple[str, ...] = ()


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
    lowered = lower(
        graph,
        device.info,
        half=settings.precision == "fp16",
        fusion=settings.fusion,
        fp32_ops=settings.fp32_ops,
    )
    plan = plan_memory(lowered.program)
    if cache is not None:
        cache.save_program(graph, key, lowered, plan)
    return lowered, plan
