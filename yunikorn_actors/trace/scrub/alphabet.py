"""New names for old ones: each name has one, and they sort as the old ones did.

All names have to be known before the first new one is asked for.
"""

from bisect import bisect
from typing import Final

from yunikorn_actors.config.names import (
    RECOVERY_QUEUE,
    ROOT,
    WILDCARD,
    is_group_name,
    is_queue_name,
    is_user_name,
)
from yunikorn_actors.values.ids import DEFAULT_PARTITION


class Alphabet:
    """Names that are compared among themselves alone, such as those of nodes."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._known: set[str] = set()
        self._new: dict[str, str] = {}

    def note(self, name: str) -> None:
        if name:
            self._known.add(name)

    def settle(self) -> None:
        """All names are known."""
        width = len(str(len(self._known)))
        self._new = {
            name: self._named(name, f"{number:0{width}}")
            for number, name in enumerate(sorted(self._known), 1)
        }

    def new(self, name: str) -> str:
        return self._new[name] if name else ""

    def all(self) -> frozenset[str]:
        return frozenset(self._known)

    def _named(self, name: str, number: str) -> str:  # noqa: ARG002 - a word looks at it
        return f"{self._kind}-{number}"


_KEPT: Final = (RECOVERY_QUEUE, DEFAULT_PARTITION, ROOT)
"""Words that mean something to the core, in their order."""
_BETWEEN: Final = ("0-name", "a-name", "name", "the-name")
"""What sorts before the first of them, behind it, and so on."""
_MARKS: Final = ("", "@", "$", "%", "-" * 64)
"""Behind a new name: with one of them it may be used where the old one could be."""


class Words(Alphabet):
    """Names of users, groups and queues, and whatever becomes the name of a queue.

    A queue may have the name of a user or the value of a tag, and ignores case.
    """

    def __init__(self) -> None:
        super().__init__("name")

    def note(self, name: str) -> None:
        if name != WILDCARD and name.lower() not in _KEPT:
            super().note(name)

    def settle(self) -> None:
        written = self._known
        self._known = {name.lower() for name in written}
        super().settle()
        self._new = {name: self._in_case(name) for name in written | self._known}

    def new(self, name: str) -> str:
        return self._new.get(name, name)

    def _in_case(self, name: str) -> str:
        new = self._new[name.lower()]
        if name == name.lower():
            return new
        return new.upper() if name == name.upper() else new.capitalize()

    def _named(self, name: str, number: str) -> str:
        allowed = _uses_of(name)
        front = _BETWEEN[bisect(_KEPT, name)]
        if name[0].isdigit():
            front = _BETWEEN[0]
        candidates = (f"{front}-{number}{mark}" for mark in _MARKS)
        return next((it for it in candidates if _uses_of(it) == allowed), f"{front}-{number}%")


def _uses_of(name: str) -> tuple[bool, bool, bool]:
    return is_queue_name(name), is_user_name(name), is_group_name(name)
