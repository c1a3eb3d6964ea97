"""Recordings of runs: `open` one, and ask it."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from yunikorn_actors.trace.recording import Recording, open  # noqa: A004 - as in gzip, zipfile

__all__ = ["Recording", "open"]


def __getattr__(name: str) -> object:
    """Import what is asked for: the commands need a part of it each."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("yunikorn_actors.trace.recording"), name)
