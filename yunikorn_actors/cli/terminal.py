"""What is printed: as wide as a terminal, whole for a pipe, and nothing that steers a terminal."""

import shutil
import sys
from collections.abc import Iterable
from typing import Any

import msgspec

from yunikorn_actors.runtime.printable import printable


def is_terminal() -> bool:
    return sys.stdout.isatty()


def width() -> int:
    """Return 0 where nothing is to be cut."""
    return shutil.get_terminal_size().columns if is_terminal() else 0


def tell(values: Iterable[Any] | None, lines: Iterable[str]) -> None:
    """Print values as JSON, one on a line, or else the lines."""
    out = lines if values is None else map(json_of, values)
    sys.stdout.writelines(f"{line}\n" for line in out)


def json_of(value: object) -> str:
    """Write a value on one line; what a terminal would act on is escaped, as JSON does it."""
    text = msgspec.json.encode(value).decode()
    if text.isprintable():
        return text
    return "".join(it if it.isprintable() else _escaped(it) for it in text)


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def complain(text: str) -> None:
    for line in text.splitlines() or [""]:
        print(printable(line), file=sys.stderr)
