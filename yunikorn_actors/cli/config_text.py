"""The text of a configuration file that a command is given, or of standard input."""

import sys
from pathlib import Path
from typing import Final

from yunikorn_actors.config.fault import TEXT_BYTES_MAX, Fault, why_unreadable
from yunikorn_actors.recording.plain_text import printable

STANDARD_INPUT: Final = "-"


class Unreadable(Exception):
    """The configuration cannot be read, so it cannot be checked."""


def name_of(file: str) -> str:
    return "<stdin>" if file == STANDARD_INPUT else printable(file)


def line_of(name: str, fault: Fault, kind: str = "") -> str:
    """Write a fault in the form that editors know from compilers."""
    return f"{name}:{fault.line}: {kind}{fault.path}: {fault.what} ({fault.remedy})"


def read_text(file: str) -> str:
    try:
        data = _read_bytes(file)
    except OSError as error:
        raise Unreadable(why_unreadable(error)) from None
    if len(data) > TEXT_BYTES_MAX:
        raise Unreadable(f"larger than {TEXT_BYTES_MAX} bytes, no configuration may be; shorten it")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Unreadable(why_unreadable(error)) from None


def _read_bytes(file: str) -> bytes:
    """Read at most one byte more than is allowed: some files have no end."""
    if file == STANDARD_INPUT:
        return sys.stdin.buffer.read(TEXT_BYTES_MAX + 1)
    with Path(file).open("rb") as opened:
        return opened.read(TEXT_BYTES_MAX + 1)
