"""How the demo shows itself: redrawn in place on a terminal, in plain lines elsewhere."""

import os
import shutil
from collections.abc import Mapping
from types import TracebackType
from typing import Final, Protocol, Self, TextIO

from yunikorn_actors.cli.demo.company import MILLI
from yunikorn_actors.cli.demo.picture import Line, glyphs_for, painted, picture
from yunikorn_actors.cli.demo.totals import Books

_HIDE_CURSOR: Final = "\x1b[?25l"
_SHOW_CURSOR: Final = "\x1b[?25h"
_CLEAR_LINE: Final = "\x1b[K"
_CLEAR_BELOW: Final = "\x1b[J"


class Display(Protocol):
    @property
    def every_s(self) -> float:
        """The time between two pictures."""

    def show(self, books: Books, now_s: float) -> None: ...

    def note(self, text: str, now_s: float) -> None:
        """Print a line that stays."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...


def display_for(out: TextIO, environment: Mapping[str, str] = os.environ) -> Display:
    """Return the display for a terminal, or the one for plain lines."""
    if out.isatty() and environment.get("TERM", "dumb") != "dumb":
        return Screen(out, colour=not environment.get("NO_COLOR"))
    return LineDisplay(out)


class LineDisplay:
    every_s = 1.0

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing: plain lines need no cleaning up."""

    def show(self, books: Books, now_s: float) -> None:
        root = books.root
        vcore = f"{root.used // MILLI:3}/{root.room // MILLI} vcore"
        tasks = f"tasks {root.at_work:3} running {root.waiting:3} waiting {root.done:3} done"
        applications = f"apps {root.running:2} running {root.completed:2} done"
        self._say(now_s, f"{vcore}  {tasks}  {applications}")

    def note(self, text: str, now_s: float) -> None:
        self._say(now_s, text)

    def _say(self, now_s: float, text: str) -> None:
        print(f"{now_s:4.1f} s  {text}", file=self._out, flush=True)


class Screen:
    every_s = 0.1

    def __init__(self, out: TextIO, *, colour: bool) -> None:
        self._out = out
        self._colour = colour
        self._glyphs = glyphs_for(out.encoding)
        self._drawn = 0
        """How many lines the last picture had; the next one is drawn over them."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._write(_SHOW_CURSOR)

    def show(self, books: Books, now_s: float) -> None:
        width, height = shutil.get_terminal_size()
        # The cursor rests below the picture, so one line of the terminal must stay free.
        lines = picture(books, now_s, width, self._glyphs)[: height - 1]
        drawn = "".join(self._drawn_line(line) for line in lines)
        # Hidden here and not on entry: an interrupt between the two would leave it hidden.
        self._write(f"{_HIDE_CURSOR}{self._back()}{drawn}")
        self._drawn = len(lines)

    def note(self, text: str, now_s: float) -> None:
        """Write above the picture; the next one is drawn below it."""
        self._write(f"{self._back()}{_CLEAR_BELOW}{now_s:5.1f} s  {text}\n")
        self._drawn = 0

    def _back(self) -> str:
        return f"\x1b[{self._drawn}A\r" if self._drawn else ""

    def _drawn_line(self, line: Line) -> str:
        return f"{painted(line, colour=self._colour)}{_CLEAR_LINE}\n"

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()
