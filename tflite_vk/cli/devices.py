"""`tflite-vk devices`: what Vulkan devices there are, and where there are none, why."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from tflite_vk.analysis.doctor import Part, diagnose, missing
from tflite_vk.cli.arguments import add_output_arguments
from tflite_vk.cli.output import print_json, print_table, size
from tflite_vk.device_info import DeviceInfo
from tflite_vk.runtime.open import devices

if TYPE_CHECKING:
    from tflite_vk.cli.arguments import Subparsers


def add_parser(commands: Subparsers) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "devices",
        help="Vulkan devices, and what is missing where there are none",
        description="Lists Vulkan devices and everything the package needs to use them.",
    )
    add_output_arguments(parser)
    parser.set_defaults(execute=execute)


def execute(args: argparse.Namespace) -> int:
    """Run the command."""
    found = devices()
    parts = diagnose()
    lost = missing(parts)
    if args.json:
        print_json([device.to_dict() for device in found])
        if lost is not None:
            print(f"tflite-vk: {_advise(lost)}", file=sys.stderr)
        return 0
    if found:
        _print_devices(found)
        print()
    print_table(
        ("part", "", "what"),
        [(p.name, "yes" if p.is_there else "NO", p.detail) for p in parts],
        "lll",
    )
    for part in parts:
        if part.advice:
            print(f"\n{_advise(part)}")
    if not found:
        print("\nNo Vulkan device: models can be inspected, and nothing runs on a GPU.")
    elif all(device.is_software for device in found):
        print("\nOnly a software driver: it computes on the CPU, and is slower than LiteRT there.")
    return 0


def _advise(part: Part) -> str:
    return f"{part.name}: {part.detail}" + (f". What to do: {part.advice}" if part.advice else "")


def _print_devices(found: list[DeviceInfo]) -> None:
    columns = (
        "index", "name", "type", "driver", "API", "workgroup", "shared memory", "binding",
        "allocation", "subgroup",
    )  # fmt: skip
    rows = [
        (
            str(d.index),
            d.name,
            "software" if d.is_software else d.type,
            _driver(d),
            d.api_version,
            str(d.limits.max_workgroup_invocations),
            size(d.limits.shared_memory_bytes),
            size(d.limits.max_storage_buffer_bytes),
            size(d.limits.max_memory_allocation_bytes),
            str(d.limits.subgroup_size),
        )
        for d in found
    ]
    print_table(columns, rows, "rllllrrrrr")


def _driver(device: DeviceInfo) -> str:
    return f"{device.driver_name} {driver_version(device)}".strip()


def driver_version(device: DeviceInfo) -> str:
    """The driver's version; NVIDIA packs its own otherwise than Vulkan does."""
    v = device.driver_version
    if device.vendor_id == 0x10DE:
        return f"{v >> 22}.{v >> 14 & 0xFF}.{v >> 6 & 0xFF:02}"
    if v < 1 << 12:
        return str(v)
    return f"{v >> 22}.{v >> 12 & 0x3FF}.{v & 0xFFF}"
