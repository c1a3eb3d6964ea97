"""Seldom collections of garbage, for a process in which worlds are played one after the other.

Each world is a cycle of a thousand objects that ends as a whole, and beside it little comes to
stay. The usual collector walks the living world again and again, and all modules now and then:
that was a seventh of the time of a run.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_NEW_MAX: Final = 10_000
"""So many objects are made before those that are new are looked at."""


class _Others:
    """What the program around the laboratory does with its collector."""

    have_frozen = False
    """Once seen it is not asked again: to count what is frozen walks through all of it."""


@contextmanager
def seldom_collecting() -> Iterator[None]:
    """Pass over what there is already; afterwards the collector is as it was."""
    was_frozen = _Others.have_frozen = _Others.have_frozen or gc.get_freeze_count() > 0
    newest, *older = gc.get_threshold()
    if not was_frozen:
        gc.freeze()
    gc.set_threshold(max(newest, _NEW_MAX), *older)
    try:
        yield
    finally:
        gc.set_threshold(newest, *older)
        if not was_frozen:
            gc.unfreeze()
