"""Entry point: `python -m tools.bench`, or `python tools/bench`."""

from __future__ import annotations

import sys
from pathlib import Path

# This tool's package, and the checkout's own tflite_vk.
TOOLS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TOOLS), str(TOOLS.parent)]

from bench.cli import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
