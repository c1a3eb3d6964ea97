"""The collector of garbage, where it would find none."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


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
