"""A command, given as a shell gives it, in this process."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from typing import Final

from yunikorn_actors.cli import main
from yunikorn_actors.lab.schedules.random_draw import Draw

_COLUMNS: Final = ("60", "80", "130")


class _Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@contextmanager
def _columns(number: str) -> Iterator[None]:
    """Set how wide a terminal is, also where a mistake is explained."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = number
    try:
        yield
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before


def called(words: list[str], draw: Draw) -> tuple[int, str, str]:
    """Give a command; return its status, and what it has printed and complained of."""
    out: StringIO = _Terminal() if draw.once_in(2) else StringIO()
    errors = StringIO()
    with _columns(draw.one_of(_COLUMNS)), redirect_stdout(out), redirect_stderr(errors):
        try:
            status = main(words)
        except SystemExit as end:
            status = int(end.code or 0)
    return status, out.getvalue(), errors.getvalue()
