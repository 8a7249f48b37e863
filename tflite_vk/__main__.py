"""`python -m tflite_vk` is the command line `tflite-vk`."""

import sys

from tflite_vk.cli import main

if __name__ == "__main__":
    sys.exit(main())
