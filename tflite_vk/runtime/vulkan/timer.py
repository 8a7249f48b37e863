"""Timer: device timestamps around each dispatch."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_vk.errors import DeviceError
from tflite_vk.runtime.vulkan.handle import DeviceHandle

_BOTTOM_OF_PIPE = 0x2000
_TIMESTAMP = 2
_RESULT_64 = 1
_RESULT_WAIT = 2


class Timer:
    """One timestamp before the first dispatch and one behind each.

    Raises:
        DeviceError: the device's queue has no timestamps.
    """

    def __init__(self, handle: DeviceHandle, dispatches: int) -> None:
        if not handle.timestamp_bits:
            raise DeviceError(
                f"{handle.info.name!r} has no timestamps on its compute queue; profile without "
                "device times, or with another device"
            )
        api = handle.api
        self._handle = handle
        self._count = dispatches + 1
        info = api.struct("VkQueryPoolCreateInfo", queryType=_TIMESTAMP, queryCount=self._count)
        create = api.lib.vkCreateQueryPool
        self._pool = api.create(create, "VkQueryPool", handle.device, info, "making a query pool")

    def record_start(self, commands: Any) -> None:
        """Record the reset of all timestamps, and the first of them."""
        self._handle.api.lib.vkCmdResetQueryPool(commands, self._pool, 0, self._count)
        self.record(commands, 0)

    def record(self, commands: Any, index: int) -> None:
        """Record timestamp `index`, taken when everything before it is done."""
        write = self._handle.api.lib.vkCmdWriteTimestamp
        write(commands, _BOTTOM_OF_PIPE, self._pool, index)

    def spans_us(self) -> list[float]:
        """Microseconds between neighbouring timestamps of the last run.

        Raises:
            DeviceError: the device failed.
        """
        handle, api = self._handle, self._handle.api
        ticks: npt.NDArray[np.uint64] = np.zeros(self._count, np.uint64)
        get = api.lib.vkGetQueryPoolResults
        result = get(
            handle.device,
            self._pool,
            0,
            self._count,
            ticks.nbytes,
            api.ffi.from_buffer(ticks),
            8,
            _RESULT_64 | _RESULT_WAIT,
        )
        api.check(result, "reading timestamps")
        mask = np.uint64((1 << handle.timestamp_bits) - 1)
        # Unsigned and masked, so that a counter that wraps around gives the right difference.
        spans: list[float] = ((np.diff(ticks) & mask) * handle.timestamp_us).tolist()
        return spans

    def destroy(self) -> None:
        """Free it."""
        api = self._handle.api
        api.lib.vkDestroyQueryPool(self._handle.device, self._pool, api.ffi.NULL)
