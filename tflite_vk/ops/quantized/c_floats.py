"""The C library's functions of one float32, which TFLite's kernels call to fill their tables.

Some of their results are the second nearest float32, which now and then moves an entry by a step. So the
library that LiteRT is linked with is asked, and where there is none, as with musl, float64 rounded.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable

_LIBRARY = "libm.so.6"

Function = Callable[[float], float]


def _infinite_beyond(function: Function) -> Function:
    def safe(x: float) -> float:
        try:
            return function(x)
        except OverflowError:
            return math.inf

    return safe


_IN_FLOAT64: dict[str, Function] = {
    "erfc": math.erfc,
    "exp": _infinite_beyond(math.exp),
    "expm1": _infinite_beyond(math.expm1),
    "log": math.log,
    "tanh": math.tanh,
}


@functools.cache
def c_float(name: str) -> Function:
    """A function of <math.h> on float32.

    Args:
        name: "erfc", "exp", "expm1", "log" or "tanh".
    """
    try:
        found = getattr(ctypes.CDLL(_LIBRARY), f"{name}f")
    except (OSError, AttributeError):
        return _IN_FLOAT64[name]
    found.argtypes, found.restype = [ctypes.c_float], ctypes.c_float
    function: Function = found
    return function
