"""Tuning, on a device that only pretends to take time."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.test_sizes import GPU, layers
from tflite_vk import compiler
from tflite_vk.cache.compile_cache import CompileCache
from tflite_vk.cache.sizes import TunedSizes, decode_sizes, encode_sizes
from tflite_vk.compiler import CompileSettings, compile_graph
from tflite_vk.errors import DeviceError
from tflite_vk.lowering import lower
from tflite_vk.program import Dispatch, MemoryPlan, Program
from tflite_vk.runtime.null import NullDevice, NullExecutable
from tflite_vk.tuning import tune

Clock = Callable[[Dispatch], float]


class TimedExecutable(NullExecutable):
    """Takes as long as its device says."""

    def __init__(self, program: Program, clock: Clock) -> None:
        super().__init__(program)
        self._times = [clock(d) for d in program.dispatches]

    def dispatch_us(self) -> list[float]:
        return self._times


class TimedDevice(NullDevice):
    """A GPU whose dispatches take what a function says; it counts what it compiles."""

    dispatcher = "timed"

    def __init__(self, clock: Clock) -> None:
        super().__init__(GPU)
        self._clock = clock
        self.compiled = 0

    def compile(
        self, program: Program, plan: MemoryPlan, *, profiling: bool = False, guard_words: int = 0
    ) -> TimedExecutable:
        del plan, guard_words
        assert profiling
        self.compiled += 1
        return TimedExecutable(program, self._clock)


def _wide(dispatch: Dispatch) -> float:
    """The more invocations along x, the faster."""
    return 100.0 / dispatch.kernel.spec[0]


def _narrow(dispatch: Dispatch) -> float:
    """The fewer invocations along x, the faster."""
    return float(dispatch.kernel.spec[0])


def test_the_fastest_size_wins() -> None:
    lowered = lower(layers(), GPU, effort="exhaustive")
    found = tune(lowered.program, lowered.choices, TimedDevice(_wide), "exhaustive")
    assert found.keys() == {c.signature for c in lowered.choices}
    for choice in lowered.choices:
        sizes = {choice.chosen: lowered.program.dispatches[choice.dispatch], **choice.others}
        widest = max(d.kernel.spec[0] for d in sizes.values())
        assert sizes[found[choice.signature]].kernel.spec[0] == widest


def test_a_little_faster_is_noise() -> None:
    lowered = lower(layers(), GPU, effort="exhaustive")
    own = {lowered.program.dispatches[c.dispatch].kernel for c in lowered.choices}

    def clock(dispatch: Dispatch) -> float:
        return 100.0 if dispatch.kernel in own else 98.0

    found = tune(lowered.program, lowered.choices, TimedDevice(clock), "exhaustive")
    assert found == {c.signature: c.chosen for c in lowered.choices}


def test_a_refused_size_loses_and_spoils_no_other() -> None:
    lowered = lower(layers(), GPU, effort="exhaustive")
    own = {lowered.program.dispatches[c.dispatch].kernel for c in lowered.choices}

    def refuse(dispatch: Dispatch) -> float:
        shader, width = dispatch.kernel.shader, dispatch.kernel.spec[0]
        if shader.startswith("conv_2d") and dispatch.kernel not in own:
            raise DeviceError("no such pipeline")
        return float(width)

    found = tune(lowered.program, lowered.choices, TimedDevice(refuse), "exhaustive")
    for choice in lowered.choices:
        sizes = {choice.chosen: lowered.program.dispatches[choice.dispatch], **choice.others}
        if choice.signature.startswith("conv_2d "):
            assert found[choice.signature] == choice.chosen
        else:
            least = min(d.kernel.spec[0] for d in sizes.values())
            assert sizes[found[choice.signature]].kernel.spec[0] == least


def test_equal_layers_are_timed_once() -> None:
    lowered = lower(layers(), GPU, effort="fast")
    device = TimedDevice(_wide)
    tune(lowered.program, lowered.choices, device, "fast")
    once = device.compiled
    tune(lowered.program, [*lowered.choices, *lowered.choices], device, "fast")
    assert device.compiled == 2 * once


def test_compiling_tunes_and_the_cache_remembers(tmp_path: Path) -> None:
    device, settings = TimedDevice(_narrow), CompileSettings(tuning="fast")
    cache = CompileCache(tmp_path, "model", GPU)
    first, _ = compile_graph(layers(), device, settings, cache)
    assert device.compiled
    device.compiled = 0
    again, _ = compile_graph(layers(), device, settings, CompileCache(tmp_path, "model", GPU))
    assert again.program.dispatches == first.program.dispatches
    other, _ = compile_graph(layers(), device, settings, CompileCache(tmp_path, "other", GPU))
    assert other.program.dispatches == first.program.dispatches
    assert not device.compiled, "another model with the same layers is tuned again"
    plain, _ = compile_graph(layers(), device, CompileSettings(), cache)
    assert plain.program.dispatches != first.program.dispatches
    compile_graph(layers(), device, CompileSettings(tuning="exhaustive"), cache)
    assert device.compiled, "little effort does not stand for much"


def test_without_timestamps_the_rule_stays(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_timestamps(dispatch: Dispatch) -> float:
        raise DeviceError("no timestamps")

    with caplog.at_level(logging.WARNING, "tflite_vk"):
        got, _ = compile_graph(layers(), TimedDevice(no_timestamps), CompileSettings(tuning="fast"))
    assert "tuning is left out: no timestamps" in caplog.text
    plain, _ = compile_graph(layers(), TimedDevice(no_timestamps), CompileSettings())
    assert got.program.dispatches == plain.program.dispatches
    monkeypatch.setattr(compiler, "tune", None)
    compile_graph(layers(), NullDevice(), CompileSettings(tuning="fast"))


def test_sizes_come_back_as_they_were() -> None:
    sizes = TunedSizes()
    sizes.add("fast", {"a": (1, 2), "b": (3,)})
    sizes.add("exhaustive", {"b": (4,)})
    found = decode_sizes(memoryview(encode_sizes(sizes)))
    assert found == sizes
    assert found.known("fast") == {"a": (1, 2), "b": (4,)}
    assert found.known("exhaustive") == {"b": (4,)}


@pytest.mark.parametrize(
    "content", [b"", b"[]", b'{"a": ["much", [1]]}', b'{"a": ["fast", ["x"]]}']
)
def test_sizes_that_make_no_sense_are_none(tmp_path: Path, content: bytes) -> None:
    cache = CompileCache(tmp_path, None, GPU)
    cache._sizes_file().write(content)
    assert cache.load_sizes() == TunedSizes()
