"""The command line `tflite-vk`: parses, calls `tflite_vk.analysis`, and formats what it says."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import traceback
from collections.abc import Sequence

import tflite_vk
from tflite_vk.cli import benchmark, compare, devices, inspect, profile, run
from tflite_vk.cli.arguments import Parser
from tflite_vk.errors import Error

EXIT_BAD_INPUT = 2
EXIT_INTERNAL = 70  # EX_SOFTWARE: not 1, which is a comparison that failed
EXIT_INTERRUPTED = 130

_COMMANDS = (devices, inspect, run, compare, benchmark, profile)

_EPILOG = """exit status: 0 good, 1 a comparison that failed, 2 bad usage or input, 70 a fault in
tflite-vk itself. TFLITE_VK_DEVICE and TFLITE_VK_DISPATCHER stand in for --device and
--dispatcher."""


def make_parser() -> Parser:
    """The parser of all commands."""
    parser = Parser(
        prog="tflite-vk", description="TensorFlow Lite models on any Vulkan GPU.", epilog=_EPILOG
    )
    parser.add_argument("--version", action="version", version=tflite_vk.__version__)
    commands = parser.add_subparsers(title="commands", dest="command", required=True)
    for command in _COMMANDS:
        command.add_parser(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    try:
        args = make_parser().parse_args(argv)
    except SystemExit as stop:  # of argparse: 0 for --help, 2 for bad usage
        return stop.code if isinstance(stop.code, int) else EXIT_BAD_INPUT
    handler = _log_to_stderr(is_verbose=args.verbose)
    try:
        status: int = args.execute(args)
        sys.stdout.flush()
    except Error as error:
        print(f"tflite-vk: error: {error}", file=sys.stderr)
        return EXIT_BAD_INPUT
    except BrokenPipeError:  # the reader, such as head, has had enough
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_BAD_INPUT
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"tflite-vk: error: {where}{error.strerror or error}", file=sys.stderr)
        return EXIT_BAD_INPUT
    except KeyboardInterrupt:
        print("tflite-vk: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except Exception:
        traceback.print_exc()
        print("tflite-vk: this is a fault in tflite-vk, please report it", file=sys.stderr)
        return EXIT_INTERNAL
    finally:
        logger = logging.getLogger("tflite_vk")
        logger.removeHandler(handler)
        logger.propagate = True
    return status


def _is_no_report(record: logging.LogRecord) -> bool:
    """The commands print what the device takes themselves."""
    return "operations will run on the" not in record.getMessage()


def _log_to_stderr(*, is_verbose: bool) -> logging.Handler:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("tflite-vk: %(levelname)s: %(message)s"))
    handler.setLevel(logging.INFO if is_verbose else logging.WARNING)
    logger = logging.getLogger("tflite_vk")
    if is_verbose:
        logger.setLevel(logging.INFO)
    else:
        handler.addFilter(_is_no_report)
    logger.addHandler(handler)
    logger.propagate = False  # a library may have given the root logger a handler as well
    return handler
