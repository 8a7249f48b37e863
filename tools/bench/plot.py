"""The results as an SVG picture: a bar for each engine, grouped by network."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from bench.results import Row, number

_WIDTH = 860
_LABELS = 190
_BAR = 18
_GAP = 6
_HEAD = 34
_OURS, _OTHERS, _INK = "#2a6fbb", "#9aa5b1", "#222"


def svg(rows: Sequence[Row], title: str) -> str:
    """A picture of the medians, with a line to the 90th percentile.

    Each network has a scale of its own: the slowest engine fills it.
    """
    networks = list(dict.fromkeys(r.network for r in rows if r.wall is not None))
    parts: list[str] = [_text(10, 22, title, size=15)]
    y = 2 * _HEAD
    for network in networks:
        group = [r for r in rows if r.network == network and r.wall is not None]
        parts.append(_text(10, y, network, size=13))
        y += _GAP
        parts += _bars(group, y)
        y += len(group) * (_BAR + _GAP) + _HEAD
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{y}" '
        f'font-family="sans-serif" viewBox="0 0 {_WIDTH} {y}">'
    )
    background = f'<rect width="{_WIDTH}" height="{y}" fill="#fff"/>'
    return "\n".join([head, background, *parts, "</svg>"]) + "\n"


def _bars(rows: Sequence[Row], top: int) -> list[str]:
    longest = max((r.wall.p90 for r in rows if r.wall is not None), default=1.0)
    room = _WIDTH - _LABELS - 150
    out: list[str] = []
    for i, row in enumerate(rows):
        assert row.wall is not None
        y = top + i * (_BAR + _GAP)
        middle = y + _BAR // 2
        width = max(1.0, row.wall.median / longest * room)
        end = max(width, row.wall.p90 / longest * room)
        colour = _OURS if row.engine.startswith("tflite_vk") else _OTHERS
        out += [
            _text(_LABELS - 8, middle + 4, row.engine, anchor="end"),
            f'<rect x="{_LABELS}" y="{y}" width="{width:.1f}" height="{_BAR}" fill="{colour}"/>',
            f'<line x1="{_LABELS + width:.1f}" x2="{_LABELS + end:.1f}" y1="{middle}" '
            f'y2="{middle}" stroke="{_INK}"/>',
            _text(_LABELS + end + 6, middle + 4, _label(row)),
        ]
    return out


def _label(row: Row) -> str:
    assert row.wall is not None
    ratio = "" if row.ratio is None or row.ratio == 1.0 else f" ({row.ratio:.2f}×)"
    return f"{number(row.wall.median)} ms{ratio}"


def _text(x: float, y: float, text: str, *, size: int = 11, anchor: str = "start") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" '
        f'fill="{_INK}">{escape(text)}</text>'
    )
