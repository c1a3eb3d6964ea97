"""The collector of garbage, where it would find none."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Self


@contextmanager
def without_collections() -> Iterator[None]:
    """Collect no garbage while much is made that stays: it would be visited again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def kept_for_good() -> Iterator[None]:
    """Load what stays until the process ends, in a process that is ours.

    The collector passes over it then, also at the end, where it would visit all modules once more:
    that is a part of a short command that one sees.
    """
    with without_collections():
        yield
    gc.freeze()


# Garbage collection in a service: full collections look only at what is new.
#
# A full collection looks at every object that there is, and meanwhile no thread runs. With a
# million waiting asks that is half a second. So what has survived a full collection is frozen:
# the next one passes over it. A frozen object that comes to be on a cycle is not freed. Therefore
# a collection looks at everything again when twice as much is frozen as the last time.
#
# A library must not do this to the program that embeds it, whose collector it is.

_FULL: Final = 2
"""The generation that holds everything."""
WHOLE_FROM: Final = 1_000_000
"""So many objects are frozen before a collection looks at everything again."""


class BriefCollections:
    """Called by the collector before and after each collection."""

    def __init__(self, whole_from: int = WHOLE_FROM) -> None:
        self._least = self._whole_at = whole_from
        self._frozen = 0
        self._is_whole = False
        self._was_frozen = False

    def __enter__(self) -> Self:
        self._was_frozen = gc.get_freeze_count() > 0
        gc.callbacks.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        gc.callbacks.remove(self)
        gc.unfreeze()
        if self._was_frozen:
            # The process around the service had frozen objects, and wants no walk through them.
            gc.freeze()

    def __call__(self, phase: str, info: dict[str, Any]) -> None:
        # Young generations are quick, and are left as they are.
        if info["generation"] != _FULL:
            return
        if phase == "start":
            self._is_whole = self._frozen > self._whole_at
            if self._is_whole:
                gc.unfreeze()
                self._frozen = 0
            return
        # Counted here: to ask how much is frozen walks through all of it.
        self._frozen += len(gc.get_objects(_FULL))
        gc.freeze()
        # Measured after it: the next whole one is due at twice as much.
        if self._is_whole:
            self._whole_at = max(self._least, 2 * self._frozen)
