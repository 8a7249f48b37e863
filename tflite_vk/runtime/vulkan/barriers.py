"""The memory barriers of a program: one global barrier each, made once and recorded often."""

from __future__ import annotations

from typing import Any

from tflite_vk.runtime.vulkan.api import Api

_COMPUTE, _TRANSFER, _HOST = 0x800, 0x1000, 0x4000
_SHADER_READ, _SHADER_WRITE = 0x20, 0x40
_TRANSFER_READ, _TRANSFER_WRITE = 0x800, 0x1000
_HOST_READ = 0x2000


class Barriers:
    """Barriers by what stands before and behind them.

    A global barrier is as good as one per buffer here: a list of buffers would name them all.
    """

    def __init__(self, api: Api) -> None:
        self._api = api

        def make(before: int, behind: int) -> Any:
            return api.struct("VkMemoryBarrier", srcAccessMask=before, dstAccessMask=behind)

        self._shader_to_shader = make(_SHADER_WRITE, _SHADER_READ | _SHADER_WRITE)
        self._start = make(
            _SHADER_WRITE | _TRANSFER_WRITE,
            _SHADER_READ | _SHADER_WRITE | _TRANSFER_READ | _TRANSFER_WRITE,
        )
        self._upload_to_shader = make(
            _TRANSFER_WRITE, _SHADER_READ | _SHADER_WRITE | _TRANSFER_READ | _TRANSFER_WRITE
        )
        self._shader_to_copy = make(
            _SHADER_WRITE | _TRANSFER_WRITE, _TRANSFER_READ | _TRANSFER_WRITE
        )
        self._to_host = make(_SHADER_WRITE | _TRANSFER_WRITE, _HOST_READ)

    def _record(self, commands: Any, before: int, behind: int, barrier: Any) -> None:
        null = self._api.ffi.NULL
        self._api.lib.vkCmdPipelineBarrier(
            commands, before, behind, 0, 1, barrier, 0, null, 0, null
        )

    def between_dispatches(self, commands: Any) -> None:
        """Dispatches behind it see what those before it wrote, and overwrite what they read."""
        self._record(commands, _COMPUTE, _COMPUTE, self._shader_to_shader)

    def after_earlier_submits(self, commands: Any) -> None:
        """What earlier submits wrote is visible: a fence alone makes it so for the host only."""
        both = _COMPUTE | _TRANSFER
        self._record(commands, both, both, self._start)

    def after_upload(self, commands: Any) -> None:
        """Copies and fills before it are visible to dispatches and copies behind it."""
        self._record(commands, _TRANSFER, _COMPUTE | _TRANSFER, self._upload_to_shader)

    def before_download(self, commands: Any) -> None:
        """Copies behind it read what dispatches and copies before it wrote."""
        self._record(commands, _COMPUTE | _TRANSFER, _TRANSFER, self._shader_to_copy)

    def to_host(self, commands: Any) -> None:
        """The host may read what dispatches and copies wrote, once the fence is signalled."""
        self._record(commands, _COMPUTE | _TRANSFER, _HOST, self._to_host)
