"""LiteRT's interpreter with our delegate, for models that the device does not run alone."""

from __future__ import annotations

import importlib
from typing import Any

from tflite_vk.delegate.delegate import VulkanDelegate
from tflite_vk.errors import UnsupportedOpError
from tflite_vk.options import DelegateOptions
from tflite_vk.support_report import SupportReport

INSTALL_HINT = "pip install 'tflite_vk[litert]'"
_MAX_LISTED = 20


def open_litert(
    content: bytes, options: DelegateOptions, num_threads: int | None, report: SupportReport
) -> tuple[Any, Any]:
    """LiteRT's interpreter on the model, and the delegate it holds.

    Args:
        content: the model.
        options: for the delegate.
        num_threads: of LiteRT's CPU kernels.
        report: why the device does not take the whole model.

    Raises:
        UnsupportedOpError: LiteRT is not installed; lists the operators and what to install.
    """
    try:
        litert = importlib.import_module("ai_edge_litert.interpreter")
    except ImportError as error:
        raise UnsupportedOpError(_missing(report, error)) from None
    delegate = VulkanDelegate(options=options)
    interpreter = litert.Interpreter(
        model_content=content, experimental_delegates=[delegate], num_threads=num_threads
    )
    return interpreter, delegate


def _missing(report: SupportReport, error: ImportError) -> str:
    left = [n for n in report.nodes if not n.delegated]
    lines = [
        f"{len(left)} of {report.num_nodes} operators do not run on the device, and LiteRT, whose"
        f" CPU kernels would take them, can't be imported ({error}):"
    ]
    for node in left[:_MAX_LISTED]:
        where = f" of subgraph {node.subgraph}" if node.subgraph else ""
        lines.append(f"  {node.op} #{node.index}{where}: {node.reason}")
    if len(left) > _MAX_LISTED:
        lines.append(f"  and {len(left) - _MAX_LISTED} more")
    lines.append(f"Install it with: {INSTALL_HINT}")
    return "\n".join(lines)
