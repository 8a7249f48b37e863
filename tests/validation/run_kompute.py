"""Run a chain of dependent dispatches on Kompute, one submit for all of them or one for each.

    python -m tests.validation.run_kompute [profiling]

TFLITE_VK_STRICT_SUBMITS chooses. Run under the validation layer.
"""

from __future__ import annotations

import os
import sys

from tests.conformance.programs import chain, compile_program, random_program
from tflite_vk.runtime.open import open_device


def main() -> None:
    """Chains and programs with every kind of hazard."""
    device = open_device(os.environ.get("TFLITE_VK_DEVICE") or None, "kompute")
    for made in (chain(5), *map(random_program, range(3))):
        executable = compile_program(device, made, profiling="profiling" in sys.argv)
        executable.run()
        executable.run()
        if "profiling" in sys.argv:
            assert len(executable.dispatch_us()) == len(made.dispatches)
        executable.close()


if __name__ == "__main__":
    main()
