"""Calls of a policy: it is a program of others, and what it raises is a text from here on."""

from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")


def tried(what: str, call: Callable[[], _T]) -> tuple[_T | None, str]:
    """Return what the call returns; else what went wrong, in words."""
    try:
        return call(), ""
    except Exception as error:  # noqa: BLE001 - whatever it is, it must stop nobody
        return None, f"{what} raised {error!r:.300}"
