"""Functions that other processes call; one that gets them has nothing else to load."""

import os
import signal
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

KILLED = "YUNIKORN_ACTORS_TEST_KILLED"
"""The variable that names the file which a worker that is killed leaves behind."""
_STUCK_S = 600
"""Longer than any test takes."""


def square(number: int) -> int:
    return number * number


def fail(text: str) -> None:
    raise LookupError(text)


def end_all() -> None:
    os._exit(3)


def unpicklable() -> Any:
    return threading.Lock()


async def coroutine() -> None:
    """Never called."""


def leave() -> None:
    raise SystemExit(7)


def wait_for(path: Path) -> str:
    path.with_suffix(".new").write_text(str(os.getpid()))
    path.with_suffix(".new").rename(path.with_suffix(".begun"))
    while not path.exists():
        time.sleep(0.005)
    return path.read_text()


def let_go(path: Path, text: str = "") -> None:
    """Written elsewhere first: one that waits would read it while it is empty."""
    path.with_suffix(".text").write_text(text)
    path.with_suffix(".text").rename(path)


def half_told(share: int) -> int:
    """Have the worker of the share 3 be killed in the middle of its result, if it is the first."""
    return _told_in_part(share, lambda: os.kill(os.getpid(), signal.SIGKILL))


def never_told(share: int) -> int:
    """Have the worker of the share 3 stop in the middle of its result."""
    return _told_in_part(share, lambda: time.sleep(_STUCK_S))


def _told_in_part(share: int, then: Callable[[], None]) -> int:
    def tell_half(self: Connection, data: bytes) -> None:
        os.write(self.fileno(), data[: len(data) // 2])
        Path(os.environ[KILLED]).touch()
        then()

    if share == 3 and not Path(os.environ[KILLED]).exists():
        # Python has written results by this method for long; the file shows that it still does.
        Connection._send = tell_half  # type: ignore[attr-defined]
    return share


def is_deaf(_: object) -> bool:
    """Whether ctrl-C does not reach this process."""
    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())
