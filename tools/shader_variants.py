"""Which binaries a shader gives: the tables of defines beside shaders/*.comp.

A shader `conv_2d.comp` gives one variant `conv_2d`, unless `conv_2d.toml` lists more:

    [variants.conv_2d_f32]
    DTYPE = "F32"               # -DDTYPE=F32
    UNROLL = 3                  # -DUNROLL=3

    [variants.conv_2d_f16]
    DTYPE = "F16"

A shader that includes epilogue.glsl gives two binaries for each variant, `<name>` and `<name>_full`.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shader_toolchain import BuildError

EPILOGUE = "epilogue.glsl"
"""A shader that includes it is built twice, with few fused operators and with all."""

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_DEFINE = re.compile(r"[A-Z][A-Z0-9_]*")
_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]', re.MULTILINE)


@dataclass(frozen=True)
class Variant:
    """One SPIR-V binary to make: a source file with a set of defines."""

    name: str
    source: Path
    defines: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        place = f"{self.source.parent.name}/{self.source.name}"
        return place if self.name == self.source.stem else f"{place} (variant {self.name})"


def load_variants(shaders: Path) -> tuple[list[Variant], list[str]]:
    """Return every variant of every shader in a folder, sorted by name, and what is wrong with the rest.

    Raises:
        BuildError: There is no shader at all.
    """
    variants: dict[str, Variant] = {}
    errors = [
        f"{shaders.name}/{table.name}: there is no {table.stem}.comp beside it"
        for table in sorted(shaders.glob("*.toml"))
        if not table.with_suffix(".comp").exists()
    ]
    sources = sorted(shaders.glob("*.comp"))
    if not sources:
        raise BuildError(f"there is no *.comp in {shaders}")
    for source in sources:
        try:
            for variant in _with_full_epilogue(_variants_of(source)):
                if variant.name in variants:
                    raise BuildError(f"{variant}: {variants[variant.name]} makes the same name")
                variants[variant.name] = variant
        except BuildError as error:
            errors.append(str(error))
    return [variants[name] for name in sorted(variants)], errors


def included_files(source: Path) -> list[Path]:
    """Return a source and all it includes, directly or not, whatever the conditions around it.

    A name that is not found is left to the compiler to complain about.
    """
    include = source.parent / "include"
    found = [source]
    for path in found:  # grows while it is walked
        for name in _INCLUDE.findall(path.read_bytes()):
            for folder in (path.parent, include):
                candidate = folder / name.decode()
                if candidate.is_file():
                    if candidate not in found:
                        found.append(candidate)
                    break
    return found


def _with_full_epilogue(variants: list[Variant]) -> list[Variant]:
    """Add a second build, `<name>_full`, of each variant that ends in the epilogue.

    `shaders/include/epilogue.glsl` says why there are two.
    """
    source = variants[0].source
    included = {path.name for path in included_files(source)}
    if EPILOGUE not in included:
        return variants
    full = [
        Variant(f"{v.name}_full", v.source, {**v.defines, "EPILOGUE_FULL": "1"}) for v in variants
    ]
    return [*variants, *full]


def _variants_of(source: Path) -> list[Variant]:
    table = source.with_suffix(".toml")
    place = f"{table.parent.name}/{table.name}"
    if not table.exists():
        return [Variant(_checked(_NAME, source.stem, str(source.name)), source)]
    try:
        content = tomllib.loads(table.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BuildError(f"{place}: {error}") from error
    names = content.get("variants")
    if set(content) != {"variants"} or not isinstance(names, dict) or not names:
        raise BuildError(f"{place}: expected nothing but [variants.NAME] tables, at least one")
    return [_variant(source, name, keys, place) for name, keys in names.items()]


def _variant(source: Path, name: str, keys: Any, place: str) -> Variant:
    where = f"{place} (variant {name})"
    _checked(_NAME, name, place)
    if not isinstance(keys, dict):
        raise BuildError(f"{where}: expected a table of defines")
    defines = {}
    for key, value in keys.items():
        _checked(_DEFINE, key, where)
        if not isinstance(value, str | int | float):
            raise BuildError(f"{where}: {key} is neither a string, a number nor a boolean")
        defines[key] = str(int(value)) if isinstance(value, bool) else str(value)
    return Variant(name, source, defines)


def _checked(pattern: re.Pattern[str], name: str, place: str) -> str:
    if not pattern.fullmatch(name):
        raise BuildError(f"{place}: {name!r} does not match {pattern.pattern}")
    return name
