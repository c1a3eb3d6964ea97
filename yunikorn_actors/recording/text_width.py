"""Columns that a text takes on a terminal, and texts cut to a number of them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Final
from unicodedata import category, east_asian_width

CUT: Final = "..."


def columns(text: str) -> int:
    """Count the columns: most characters of East Asia take two, those that combine none."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(character: str) -> int:
    if category(character) in {"Mn", "Me"}:
        return 0
    return 2 if east_asian_width(character) in "WF" else 1


def filled(text: str, width: int, *, right: bool = False) -> str:
    """Align a text at the left, or at the right, in `width` columns."""
    blank = " " * (width - columns(text))
    return blank + text if right else text + blank


def cut(texts: Sequence[str], width: int) -> Sequence[str]:
    """Cut what is longer: at the end, or elsewhere where more of them stay different so.

    Paths of queues are alike at their beginnings, names of tasks at both ends.
    """
    if all(columns(it) <= width for it in texts):
        return texts
    # Only those that are cut count: what fits stays whole.
    shared = _shared([it for it in texts if columns(it) > width])
    ways: tuple[Callable[[str], str], ...] = (
        lambda text: _begun(text, width - len(CUT)) + CUT,
        lambda text: CUT + _ended(text, width - len(CUT)),
        lambda text: _between(text, shared, width),
    )
    outcomes = ([it if columns(it) <= width else way(it) for it in texts] for way in ways)
    return max(outcomes, key=lambda them: len({*them}))


def _shared(texts: Sequence[str]) -> int:
    """Count the characters with which all begin: those of the first and the last in order do."""
    return sum(1 for _ in takewhile(lambda it: it[0] == it[1], zip(min(texts), max(texts))))  # noqa: B905 - to the shorter


def _between(text: str, shared: int, width: int) -> str:
    """Cut the shared beginning, and as much of the end as has no room."""
    rest = text[shared:]
    if columns(rest) + len(CUT) <= width:
        return CUT + _ended(text, width - len(CUT))
    return CUT + _begun(rest, width - 2 * len(CUT)) + CUT


def _begun(text: str, room: int) -> str:
    return "".join(_fitting(text, room))


def _ended(text: str, room: int) -> str:
    return "".join(_fitting(reversed(text), room))[::-1]


def _fitting(characters: Iterable[str], room: int) -> Iterator[str]:
    for character in characters:
        room -= _columns(character)
        if room < 0:
            return
        yield character
