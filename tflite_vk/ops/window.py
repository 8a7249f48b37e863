"""Sliding windows: output size and padding of convolutions and pools."""

from __future__ import annotations

from dataclasses import dataclass

from tflite_vk.ir.attributes import Padding
from tflite_vk.shape import ceil_div


@dataclass(frozen=True)
class Window:
    """One axis of a sliding window.

    Attributes:
        size: filter elements.
        stride: step between outputs.
        dilation: step between filter elements.
    """

    size: int
    stride: int = 1
    dilation: int = 1

    @property
    def extent(self) -> int:
        """Input elements between the first and the last tap, both included."""
        return (self.size - 1) * self.dilation + 1

    def output_size(self, input_size: int, padding: Padding) -> int:
        """Number of outputs.

        Source: ComputeOutSize of TFLite's tflite/kernels/padding.h.

        Raises:
            ValueError: the filter is larger than an unpadded input.
        """
        if padding == "SAME":
            return ceil_div(input_size, self.stride)
        if input_size and self.extent > input_size:
            raise ValueError(
                f"a VALID window of {self.extent} is larger than the input size {input_size}"
            )
        return max(0, (input_size + self.stride - self.extent) // self.stride)

    def pad_before(self, input_size: int, output_size: int) -> int:
        """Padding in front; the odd element of a SAME padding goes behind.

        Never negative, also where the stride passes the filter.
        """
        total = (output_size - 1) * self.stride + self.extent - input_size
        return max(0, total) // 2


def check_window(**values: int) -> str | None:
    """Reason where a stride, dilation or filter size isn't positive."""
    for name, value in values.items():
        if value < 1:
            return f"{name} is {value} (supported: 1 and more)"
    return None
