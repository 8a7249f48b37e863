"""Mesa's own shader cache, kept in `cache_dir` as well.

Most drivers hand out what they compiled as a VkPipelineCache, which `CachingDevice` keeps. Mesa's
software driver doesn't: its pipeline cache is a header without content, and the machine code goes
to Mesa's cache in the user's home, where there is one. A folder of the caller's choice can be
copied into a container; a home often can't.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

FOLDER_VARIABLE = "MESA_SHADER_CACHE_DIR"
_CHOICES = (FOLDER_VARIABLE, "MESA_SHADER_CACHE_DISABLE", "MESA_GLSL_CACHE_DIR")


@contextlib.contextmanager
def mesa_cache_in(folder: str | os.PathLike[str] | None) -> Iterator[None]:
    """While a device opens, have Mesa choose a folder for the cache of that device.

    Whatever the environment says about Mesa's cache, on or off, stays as it says.

    Args:
        folder: of the caller's caches; None leaves Mesa alone.
    """
    if folder is None or any(name in os.environ for name in _CHOICES):
        yield
        return
    with contextlib.suppress(OSError):  # Mesa makes the last folder of a path only
        Path(folder).mkdir(parents=True, exist_ok=True)
    # Mesa reads the variable when a driver starts. Only then, so that nothing else in this
    # process, nor any process it starts, is affected.
    os.environ[FOLDER_VARIABLE] = str(Path(folder).absolute() / "mesa")
    try:
        yield
    finally:
        os.environ.pop(FOLDER_VARIABLE, None)
