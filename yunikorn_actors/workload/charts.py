"""Charts as inline SVG, drawn by hand: lines over a scale, bars in groups, and bars in lanes.

Colours are classes of the page, so one drawing serves light and dark.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from math import ceil, floor, log10
from typing import Final, NamedTuple

WIDTH: Final = 640
WIDE: Final = 1280
HEIGHT: Final = 240
LEFT: Final = 56
RIGHT: Final = 14
TOP: Final = 24
BOTTOM: Final = 40
COLOURS: Final = 4
LANES_MAX: Final = 64
LANE: Final = 12
NEAR_END: Final = 0.97
"""What is written so far to the right ends at its mark, so that nothing is cut off."""
_TIMES: Final = ((86_400, "days"), (3_600, "hours"), (60, "minutes"), (1, "seconds"))

Point = tuple[float, float]
Thing = tuple[float, float, str]
"""What is in a lane: begin, end and name."""


class Axis(NamedTuple):
    """A scale from 0, or if it is logarithmic from 1; `unit` is what one of its numbers is."""

    name: str
    high: float
    unit: float = 1.0
    is_log: bool = False

    @property
    def step(self) -> float:
        """The distance of its marks: one, two or five of a power of ten."""
        rough = self.high / self.unit / 7
        power = 10.0 ** floor(log10(rough))
        return self.unit * power * next(it for it in (1, 2, 5, 10) if it * power >= rough)

    def ticks(self) -> list[float]:
        if self.is_log:
            return [10.0**power for power in range(max(1, ceil(log10(self.high))) + 1)]
        return [self.step * number for number in range(int(self.high / self.step + 1e-9) + 1)]

    def share(self, value: float) -> float:
        share = value / self.high
        if self.is_log:
            share = log10(max(value, 1.0)) / log10(self.ticks()[-1])
        return min(1.0, max(0.0, share))

    def written(self, value: float) -> str:
        return f"{value / self.unit:,.10g}"


def time_axis(end_s: float) -> Axis:
    unit, name = next((it for it in _TIMES if end_s >= 3 * it[0]), _TIMES[-1])
    return Axis(f"{name} since the first submit", end_s, unit)


def share_axis(name: str, high: float = 1.0) -> Axis:
    axis = Axis(f"% {name}", high, 0.01)
    return axis._replace(high=axis.step * ceil(high / axis.step - 1e-9))


def lines(title: str, drawn: Mapping[str, Sequence[Point]], x: Axis, y: Axis) -> str:
    parts = [*_along(x, HEIGHT, WIDTH)]
    for number, points in enumerate(drawn.values()):
        path = "L".join(f"{_x(x.share(a))} {_y(y.share(b))}" for a, b in points)
        parts.append(f'<path class="line s{number % COLOURS}" d="M{path}"/>' if path else "")
    return _plot(title, y, parts, drawn)


def bars(title: str, groups: Mapping[str, Sequence[float | None]], names: Sequence[str], x: str,
         y: Axis) -> str:  # fmt: skip
    """Draw bars in groups, one of each name in each group; what is 1 can be seen as well."""
    width, parts = (WIDTH - LEFT - RIGHT) / max(1, len(groups)), [_name_of_x(x, HEIGHT, WIDTH)]
    for at, (label, values) in enumerate(groups.items()):
        begin, each = LEFT + (at + 0.1) * width, width * 0.8 / max(1, len(values))
        for number, value in enumerate(values):
            if value is not None:
                top = min(_y(y.share(value)), HEIGHT - BOTTOM - 2)
                left = begin + number * each
                parts.append(_rect(number, left, top, each * 0.9, HEIGHT - BOTTOM - top))
        parts.append(_text(LEFT + (at + 0.5) * width, HEIGHT - BOTTOM + 16, label))
    return _plot(title, y, parts, names)


def lanes(title: str, rows: Sequence[tuple[str, Sequence[Thing]]], x: Axis) -> str:
    """Draw a bar from begin to end for each thing in a lane; its name shows under the pointer."""
    height = TOP + LANE * len(rows) + BOTTOM
    parts = [_text(0, 14, "node", "start"), *_along(x, height, WIDE)]
    for at, (name, things) in enumerate(rows):
        top = TOP + LANE * at
        parts.append(_text(LEFT - 6, top + 10, name, "end"))
        for number, (begin, end, thing) in enumerate(things):
            left, right = (_x(x.share(it), WIDE) for it in (begin, end))
            parts.append(_rect(number, left, top + 1, max(1.0, right - left), LANE - 2, thing))
    return _svg(title, parts, height, WIDE)


def _plot(title: str, y: Axis, parts: Sequence[str], names: Iterable[str]) -> str:
    key = (f'<li class="c{at % COLOURS}">{escape(name)}</li>' for at, name in enumerate(names))
    drawn = [*_up(y), *parts]
    return f'{_svg(title, drawn, HEIGHT, WIDTH)}<ul class="key">{"".join(key)}</ul>'


def _up(y: Axis) -> Iterator[str]:
    yield _text(0, 14, y.name, "start")
    for tick in y.ticks():
        at = _y(y.share(tick))
        yield f'<path class="grid" d="M{LEFT} {at}H{WIDTH - RIGHT}"/>'
        yield _text(LEFT - 6, at + 4, y.written(tick), "end")


def _along(x: Axis, height: float, width: float) -> Iterator[str]:
    bottom = height - BOTTOM
    yield f'<path class="axis" d="M{LEFT} {bottom}H{width - RIGHT}"/>'
    yield _name_of_x(x.name, height, width)
    for tick in x.ticks():
        at, anchor = _x(x.share(tick), width), "middle" if x.share(tick) < NEAR_END else "end"
        yield f'<path class="axis" d="M{at} {bottom}v4"/>'
        yield _text(at, bottom + 16, x.written(tick), anchor)


def _name_of_x(name: str, height: float, width: float) -> str:
    return _text(width - RIGHT, height - 6, name, "end")


def _x(share: float, width: float = WIDTH) -> float:
    return round(LEFT + share * (width - LEFT - RIGHT), 1)


def _y(share: float) -> float:
    return round(HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP), 1)


def _rect(number: int, x: float, y: float, width: float, height: float, name: str = "") -> str:
    size = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    title = f"<title>{escape(name)}</title>" if name else ""
    return f'<rect class="f{number % COLOURS}" {size}>{title}</rect>'


def _text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(title: str, parts: Sequence[str], height: float, width: float) -> str:
    size = f'viewBox="0 0 {width} {height:g}"'
    return f'<svg {size} role="img" aria-label="{escape(title)}">{"".join(parts)}</svg>'
