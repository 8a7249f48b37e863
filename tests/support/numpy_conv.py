"""Convolutions by NumPy in float64, for shapes LiteRT's kernels get wrong."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tflite_vk.ir.attributes import Conv2DAttributes

Array = npt.NDArray[np.generic]


def conv_2d(x: Array, weights: Array, bias: Array | None, a: Conv2DAttributes) -> Array:
    """CONV_2D by its definition; SAME pads at least zero, the odd element behind."""
    n, h, w, _ = x.shape
    o, kh, kw, _ = weights.shape
    eh, ew = (kh - 1) * a.dilation_h_factor + 1, (kw - 1) * a.dilation_w_factor + 1
    if a.padding == "SAME":
        oh, ow = -(-h // a.stride_h), -(-w // a.stride_w)
        ph = max(0, (oh - 1) * a.stride_h + eh - h)
        pw = max(0, (ow - 1) * a.stride_w + ew - w)
    else:
        oh, ow = (h - eh) // a.stride_h + 1, (w - ew) // a.stride_w + 1
        ph = pw = 0
    rows = max(h + ph, (oh - 1) * a.stride_h + eh)
    columns = max(w + pw, (ow - 1) * a.stride_w + ew)
    padded = np.zeros((n, rows, columns, x.shape[3]))
    padded[:, ph // 2 : ph // 2 + h, pw // 2 : pw // 2 + w] = x
    y = np.zeros((n, oh, ow, o))
    for ky in range(kh):
        for kx in range(kw):
            top, left = ky * a.dilation_h_factor, kx * a.dilation_w_factor
            window = padded[
                :,
                top : top + (oh - 1) * a.stride_h + 1 : a.stride_h,
                left : left + (ow - 1) * a.stride_w + 1 : a.stride_w,
            ]
            y += np.einsum("nhwi,oi->nhwo", window, weights[:, ky, kx].astype(np.float64))
    if bias is not None:
        y += bias
    return y.astype(np.float32)
