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


@contextmanager
def seldom_collecting() -> Iterator[None]:
    """Pass over what there is already; afterwards the collector is as it was."""
    was_frozen, (newest, *older) = gc.get_freeze_count() > 0, gc.get_threshold()
    if not was_frozen:
        gc.freeze()
    gc.set_threshold(max(newest, _NEW_MAX), *older)
    try:
        yield
    finally:
        gc.set_threshold(newest, *older)
        if not was_frozen:
            gc.unfreeze()
