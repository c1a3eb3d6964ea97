"""What is printed: as wide as a terminal, whole for a pipe, and nothing that steers a terminal."""

import shutil
import sys
from collections.abc import Iterable, Iterator
from typing import Any, Final, Self

import msgspec

from yunikorn_actors.recording.plain_text import printable
from yunikorn_actors.recording.text_width import columns


def is_terminal() -> bool:
    return sys.stdout.isatty()


def width() -> int:
    """Return 0 where nothing is to be cut."""
    return shutil.get_terminal_size().columns if is_terminal() else 0


def tell(values: Iterable[Any] | None, lines: Iterable[str]) -> None:
    """Print values as JSON, one on a line, or else the lines."""
    out = lines if values is None else map(json_of, values)
    sys.stdout.writelines(f"{line}\n" for line in out)


def tell_sentences(values: Iterable[Any] | None, lines: Iterable[str]) -> None:
    """Do the same with lines of prose, which a terminal wraps between words, indented."""
    shown = map(printable, lines)
    room = width()
    tell(values, (part for line in shown for part in wrapped(line, room)) if room else shown)


def wrapped(line: str, room: int) -> Iterator[str]:
    """Cut a line into parts of so many columns; a word is not cut."""
    words = line.lstrip().split(" ")
    indent = line[: len(line) - len(line.lstrip())]
    part = indent + words[0]
    for word in words[1:]:
        if columns(part) + 1 + columns(word) > room:
            yield part
            part = f"{indent}  {word}"
        else:
            part += f" {word}"
    yield part


def json_of(value: object) -> str:
    """Write a value on one line; what a terminal would act on is escaped, as JSON does it."""
    text = msgspec.json.encode(value).decode()
    if text.isprintable():
        return text
    return "".join(it if it.isprintable() else _escaped(it) for it in text)


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


class Progress:
    """A line on a terminal that counts messages, and that is gone in the end."""

    EACH: Final = 1_000

    def __init__(self) -> None:
        self._is_seen = sys.stderr.isatty()
        self._last = "", 0

    def tell(self, messages: int, doing: str = "") -> None:
        """Count on; `doing` says what is done with them."""
        now = doing, messages // self.EACH
        if self._is_seen and now[1] and now != self._last:
            self._last = now
            print(f"\r{doing}{messages} messages\x1b[K", end="", file=sys.stderr, flush=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_seen:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def complain(text: str) -> None:
    for line in text.splitlines() or [""]:
        print(printable(line), file=sys.stderr)
