"""What is wrong with a configuration, for the person who wrote it.

A fault names the line, the place (a path of keys or of queues), what is wrong there and what to do.
Faults come in the order in which the configuration is checked; the first one is the reason.
"""

from collections.abc import Iterable
from itertools import islice
from typing import Final, Self

from msgspec import Struct

TEXT_BYTES_MAX: Final = 4 * 1024 * 1024
"""No configuration is larger."""
DOCUMENT: Final = "document"
"""The place of a fault that has no better one."""
FAULTS_MAX: Final = 100
"""More than anyone reads at once; a text of nothing but faults must not become a huge answer."""


def why_unreadable(error: OSError | UnicodeDecodeError) -> str:
    """Say why a text file cannot be read, and what to do; the caller names the file."""
    if isinstance(error, UnicodeDecodeError):
        line = error.object.count(b"\n", 0, error.start) + 1
        return f"line {line} is not UTF-8; save the file as UTF-8"
    return f"cannot be read: {error.strerror}; name a file that exists and may be read"


WORDS_MAX: Final = 500
"""So much is shown of a place and of what is wrong there: both may hold a value, of any length."""


class Fault(Struct, frozen=True, kw_only=True):
    """One fault of a configuration, for the person who wrote it."""

    line: int
    """Its line in the text, from 1."""
    path: str
    """Its place: a path of keys or of queues."""
    what: str
    """What is wrong there."""
    remedy: str
    """What to do."""

    def __str__(self) -> str:
        return f"line {self.line}: {_cut(self.path)}: {_cut(self.what)} ({self.remedy})"


def _cut(words: str) -> str:
    return words if len(words) <= WORDS_MAX else f"{words[:WORDS_MAX]}..."


class ConfigError(ValueError):
    """A configuration that is refused, with at least one fault."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults: tuple[Fault, ...] = tuple(faults)
        super().__init__("\n".join(str(fault) for fault in self.faults))

    def __reduce__(self) -> tuple[type[Self], tuple[tuple[Fault, ...]]]:
        """From another process it comes with its faults."""
        return type(self), (self.faults,)


def refuse_any(faults: Iterable[Fault]) -> None:
    """Raise what was found, if something was."""
    found = tuple(islice(faults, FAULTS_MAX))
    if found:
        raise ConfigError(found)
