"""A disk that gets full while a journal writes to it."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from yunikorn_actors.journal import folder, writing


@contextmanager
def full_disk(room: int) -> Iterator[None]:
    """Take so many bytes more, a part of a record perhaps, and nothing behind them."""
    former = folder.write_all

    def write_all(descriptor: int, data: bytes) -> None:
        nonlocal room
        taken = min(room, len(data))
        former(descriptor, data[:taken])
        room -= taken
        if taken < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    assert vars(writing)["write_all"] is former
    try:
        vars(writing)["write_all"] = write_all
        yield
    finally:
        vars(writing)["write_all"] = former
