"""Charts as SVG for a report: no script, no font, nothing to be loaded."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

Points = Sequence[tuple[float, float]]

COLORS = ("#2f6fab", "#c4572e", "#3c8d5a", "#8a5ba6", "#b08a1e", "#4a9fb5", "#a34a6b", "#6b6b6b")
SERIES_MAX = len(COLORS)
_WIDTH, _HEIGHT = 560, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 12, 30, 40


def line_chart(title: str, series: Mapping[str, Points], *, x: str, y: str) -> str:
    """Lines over the same axes, as many as there are colors; `x` and `y` name the axes."""
    shown = dict(list(series.items())[:SERIES_MAX])
    points = [point for some in shown.values() for point in some]
    if not points:
        return ""
    frame = _Frame(
        min(point[0] for point in points),
        max(point[0] for point in points),
        max(max(point[1] for point in points), 0.0),
    )
    parts = frame.axes(title, x, y)
    for color, some in zip(COLORS, shown.values(), strict=False):
        path = " ".join(f"{frame.x(at):.1f},{frame.y(value):.1f}" for at, value in some)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="1.8"/>')
        if len(some) <= 40:
            parts += [
                f'<circle cx="{frame.x(at):.1f}" cy="{frame.y(value):.1f}" r="2.6" fill="{color}">'
                f"<title>{escape(f'{number(at)}: {number(value)}')}</title></circle>"
                for at, value in some
            ]
    return _svg(parts) + _legend(list(shown), len(series) - len(shown))


def bar_chart(title: str, bars: Sequence[tuple[str, float]], *, y: str) -> str:
    """Return a chart with one bar per name, in this order."""
    if not bars:
        return ""
    frame = _Frame(0, len(bars), max(max(value for _, value in bars), 0.0))
    parts = frame.axes(title, "", y, ticks=False)
    width = (frame.x(1) - frame.x(0)) * 0.7
    for place, (name, value) in enumerate(bars):
        left, top = frame.x(place + 0.5) - width / 2, frame.y(value)
        parts.append(
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{frame.y(0) - top:.1f}" '
            f'fill="{COLORS[0]}"><title>{escape(f"{name}: {number(value)}")}</title></rect>'
        )
        if len(bars) <= 16:
            parts.append(
                f'<text x="{left + width / 2:.1f}" y="{_HEIGHT - _BOTTOM + 14}" text-anchor="middle">'
                f"{escape(_short(name))}</text>"
            )
    return _svg(parts)


def number(value: float) -> str:
    """Return a number with four significant digits, grouped by thousands; whole ones as they are."""
    if isinstance(value, int) or value == int(value):
        return f"{int(value):,}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


class _Frame:
    """The place of the axes."""

    def __init__(self, low: float, high: float, top: float) -> None:
        self._low, self._high = (low, high) if high > low else (low - 0.5, low + 0.5)
        self._step = _step(top / 4) if top > 0 else 0.25
        self._top = self._step * max(1, math.ceil(top / self._step - 1e-9))

    def x(self, value: float) -> float:
        return _LEFT + (value - self._low) / (self._high - self._low) * (_WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        return _HEIGHT - _BOTTOM - value / self._top * (_HEIGHT - _TOP - _BOTTOM)

    def axes(self, title: str, x: str, y: str, *, ticks: bool = True) -> list[str]:
        parts = [
            f'<text x="{_LEFT}" y="16" class="title">{escape(title)}{escape(f" ({y})" if y else "")}</text>'
        ]
        for count in range(round(self._top / self._step) + 1):
            at = self.y(count * self._step)
            parts.append(
                f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{at:.1f}" y2="{at:.1f}" class="grid"/>'
            )
            label = number(count * self._step)
            parts.append(f'<text x="{_LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{label}</text>')
        if ticks:
            step = _step((self._high - self._low) / 6)
            first = math.ceil(self._low / step - 1e-9)
            last = math.floor(self._high / step + 1e-9)
            parts += [
                f'<text x="{self.x(count * step):.1f}" y="{_HEIGHT - _BOTTOM + 14}" text-anchor="middle">'
                f"{number(count * step)}</text>"
                for count in range(first, last + 1)
            ]
        middle = (_LEFT + _WIDTH - _RIGHT) / 2
        parts.append(f'<text x="{middle}" y="{_HEIGHT - 6}" text-anchor="middle">{escape(x)}</text>')
        return parts


def _step(rough: float) -> float:
    """Return a round number, 1, 2 or 5 times a power of ten, that is not smaller."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= rough * (1 - 1e-9))


def _svg(parts: Sequence[str]) -> str:
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">{"".join(parts)}</svg>'


def _legend(names: Sequence[str], left_out: int) -> str:
    if len(names) == 1 and not names[0]:
        return ""
    entries = [
        f'<span><i style="background:{color}"></i>{escape(name)}</span>'
        for color, name in zip(COLORS, names, strict=False)
    ]
    if left_out:
        entries.append(f"<span>and {left_out} more in the table</span>")
    return f'<p class="legend">{" ".join(entries)}</p>'


def _short(name: str) -> str:
    return name if len(name) <= 12 else name[:11] + "…"
