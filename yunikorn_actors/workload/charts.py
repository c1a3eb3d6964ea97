"""Charts as inline SVG, drawn by hand: lines over a scale, bars in groups, and bars in lanes.

Colours are classes of the page, so one drawing serves light and dark.
"""

from collections.abc import Callable, Iterator, Sequence
from html import escape
from math import log10
from typing import Final, NamedTuple

WIDTH: Final = 640
WIDE: Final = 1280
HEIGHT: Final = 220
LEFT: Final = 52
BOTTOM: Final = 24
TOP: Final = 8
COLOURS: Final = 4
LANES_MAX: Final = 64

Point = tuple[float, float]
Group = tuple[str, Sequence[float]]
Lane = tuple[str, Sequence[tuple[float, float, str]]]
"""Its name, and what is in it: begin, end and name."""


class Line(NamedTuple):
    name: str
    points: Sequence[Point]


class Axis(NamedTuple):
    """A scale from `low` to `high`; how a value of it is written."""

    low: float
    high: float
    written: Callable[[float], str]
    is_log: bool = False

    def share(self, value: float) -> float:
        low, high, at = self.low, self.high, value
        if self.is_log:
            low, high, at = log10(low), log10(high), log10(max(value, low))
        return 0.0 if high <= low else min(1.0, max(0.0, (at - low) / (high - low)))

    def ticks(self) -> list[float]:
        if self.is_log:
            first, last = round(log10(self.low)), round(log10(self.high))
            return [10.0**power for power in range(first, last + 1)]
        return [self.low + (self.high - self.low) * part / 4 for part in range(5)]


def lines(title: str, drawn: Sequence[Line], x: Axis, y: Axis) -> str:
    parts = list(_frame(x, y))
    for number, line in enumerate(drawn):
        if line.points:
            path = "L".join(f"{_x(x, a)} {_y(y, b)}" for a, b in line.points)
            parts.append(f'<path class="line s{number % COLOURS}" d="M{path}"/>')
    return _svg(title, parts, HEIGHT) + key([line.name for line in drawn])


def bars(title: str, groups: Sequence[Group], names: Sequence[str], y: Axis) -> str:
    """Draw bars in groups, one of each name in each group."""
    width = (WIDTH - LEFT) / max(1, len(groups))
    parts = list(_frame(Axis(0, 1, lambda _: ""), y))
    for at, (label, values) in enumerate(groups):
        begin, each = LEFT + at * width + width * 0.1, width * 0.8 / max(1, len(values))
        for number, value in enumerate(values):
            top = _y(y, value)
            parts.append(
                f'<rect class="f{number % COLOURS}" x="{begin + number * each:.1f}" y="{top}" '
                f'width="{each * 0.9:.1f}" height="{max(0.0, HEIGHT - BOTTOM - top):.1f}"/>'
            )
        parts.append(_text(LEFT + (at + 0.5) * width, HEIGHT - 8, label, "middle"))
    return _svg(title, parts, HEIGHT) + key(names)


def lanes(title: str, rows: Sequence[Lane], x: Axis) -> str:
    """Draw a bar from begin to end for each thing in a lane; its name shows under the pointer."""
    each = 12
    height = TOP + each * len(rows) + BOTTOM
    parts = list(_scale(x, height, WIDE))
    for at, (name, things) in enumerate(rows):
        parts.append(_text(LEFT - 4, TOP + each * (at + 0.8), name, "end"))
        for number, (begin, end, thing) in enumerate(things):
            left, right = _x(x, begin, WIDE), _x(x, end, WIDE)
            parts.append(
                f'<rect class="f{number % COLOURS}" x="{left}" y="{TOP + each * at + 1}" '
                f'width="{max(1.0, right - left):.1f}" height="{each - 2}">'
                f"<title>{escape(thing)}</title></rect>"
            )
    return _svg(title, parts, height, WIDE)


def key(names: Sequence[str]) -> str:
    items = (f'<li class="c{at % COLOURS}">{escape(name)}</li>' for at, name in enumerate(names))
    return f'<ul class="key">{"".join(items)}</ul>'


def _frame(x: Axis, y: Axis) -> Iterator[str]:
    for tick in y.ticks():
        at = _y(y, tick)
        yield f'<path class="grid" d="M{LEFT} {at}H{WIDTH}"/>'
        yield _text(LEFT - 6, at + 4, y.written(tick), "end")
    yield from _scale(x, HEIGHT, WIDTH)
    yield f'<path class="axis" d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH}"/>'


def _scale(x: Axis, height: float, width: float) -> Iterator[str]:
    ticks = x.ticks()
    for number, tick in enumerate(ticks):
        anchor = "start" if number == 0 else "end" if number == len(ticks) - 1 else "middle"
        yield _text(_x(x, tick, width), height - 8, x.written(tick), anchor)


def _x(axis: Axis, value: float, width: float = WIDTH) -> float:
    return round(LEFT + axis.share(value) * (width - LEFT), 1)


def _y(axis: Axis, value: float) -> float:
    return round(HEIGHT - BOTTOM - axis.share(value) * (HEIGHT - BOTTOM - TOP), 1)


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(title: str, parts: Sequence[str], height: float, width: float = WIDTH) -> str:
    return (
        f'<svg viewBox="0 0 {width} {height:g}" role="img" aria-label="{escape(title)}">'
        f"{''.join(parts)}</svg>"
    )
