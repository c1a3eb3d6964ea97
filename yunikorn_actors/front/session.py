"""The session: whether a front is open, its one lock, and who waits for the core.

The core calls on its delivery thread, the program on any of its own, and a grace time ends on the
thread of the outbox. One lock keeps them apart, and this is its whole discipline:

- `Operations` (calls of the program) and `FrontCallback` (the core) take it, and so does what is
  made by `unless_closed` (a lease that is released, a time that is over). The thread that has left
  it has the outbox send what was put there meanwhile.
- `Nodes`, `Applications`, `Asks`, `Keys`, `EndedAsks` and `Readers` never take it: they are called
  with it held. Only `Keys.asked_about`, and what a program may see of a lease or an application,
  need none.
- `Outbox`, `SlowFits`, `CallbackThreads` and each subscription have a lock of their own that is
  taken last.
- A thread that holds it never waits, calls the core or calls the program: requests are put into the
  outbox, done callbacks have threads of their own.
"""

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Final, Generic, TypeVar

from yunikorn_actors.errors import CoreError, NoReply, SchedulerClosed, WouldBlock, anew
from yunikorn_actors.front.arguments import Options
from yunikorn_actors.front.lease import BaseLease
from yunikorn_actors.front.outbox import Outbox
from yunikorn_actors.front.subscriptions import Connection, Readers
from yunikorn_actors.runtime.core_api import Core
from yunikorn_actors.runtime.core_arguments import check_process
from yunikorn_actors.runtime.scheduler_core import REPLY_TIMEOUT_S

L = TypeVar("L", bound=BaseLease)
T = TypeVar("T")


class Session(Generic[L]):
    """While it is open a front takes calls; before and after there is a reason why not.

    It is opened once and closed once: the first reason is the one that is reported.
    """

    def __init__(self, core: Core, options: Options, outbox: Outbox) -> None:
        self.core: Final = core
        self.options: Final = options
        self.outbox: Final = outbox
        """To the core; putting a request there makes no caller wait."""
        self.readers: Final[Readers[L]] = Readers()
        """Of events; a reader that is late makes no writer wait."""
        self.lock: Final = threading.RLock()
        self.connection = Connection(state="closed", reason="it was not started")
        self.is_inside: Callable[[], bool] = core.is_inside
        """Whether the code that runs was called by the core, which waits for it."""
        # Of this process: in a fork the threads of the core are missing.
        self._process = os.getpid()
        self.was_opened = False
        self._closed: CoreError | None = SchedulerClosed(
            "the scheduler was not started: use it in a `with` block, or call start()"
        )

    def open(self) -> None:
        self._closed, self.was_opened = None, True

    def close(self, reason: CoreError) -> bool:
        """Say whether this closes it; false where it was closed already."""
        if self._closed is not None:
            return False
        self._closed = reason
        return True

    def check(self) -> None:
        """Raise what closed this front."""
        if self._closed is not None:
            raise anew(self._closed)
        self.core.check_running()

    def __enter__(self) -> None:
        """Take the lock of the records for a call of the program."""
        # Before the lock: in a forked process its owner may be gone for ever.
        self.check()
        self.lock.acquire()
        # Closed while it waited for the lock.
        if self._closed is not None:
            self.lock.release()
            raise anew(self._closed)

    def __exit__(self, *_: object) -> None:
        self.lock.release()
        # After the lock was left: sending may wait for the core.
        self.outbox.send()

    def unless_closed(self, change: Callable[[], None]) -> None:
        """Make a change that the end has made already if it came first."""
        # Outside of the lock, like every call; a closed front has nothing to change.
        try:
            self.check()
        except CoreError:
            return
        with self.lock:
            # Again under the lock: it may have been closed in between.
            if self._closed is None:
                change()
        self.outbox.send()

    # -- waiting for the core

    def check_may_wait(self, what: str) -> None:
        """Raise where no answer can come: inside the core, and in the fork of a process."""
        if os.getpid() != self._process:
            check_process(self._process)
        if self.is_inside():
            raise WouldBlock(
                f"{what} waits for the core and was called from inside it (from fits, or from a "
                "callback): call it from another thread or task"
            )

    def wait(self, future: Future[T], what: str) -> T:
        """Wait for the core's answer to a call of the program."""
        try:
            return future.result(REPLY_TIMEOUT_S)
        except TimeoutError:
            raise self.no_reply(what) from None

    def no_reply(self, what: str) -> NoReply:
        """Say where no answer came from, and what may be the reason."""
        text = f"no answer to {what} within {REPLY_TIMEOUT_S:.0f} s"
        # A core elsewhere may not be reachable; one here may be held up by the program.
        if self.connection.address:
            return NoReply(f"{text}: {self.connection}; make the call again, or look at connection")
        return NoReply(f"{text}: while fits or a callback runs, the core delivers nothing")


@contextmanager
def undone(undo: Callable[[], None]) -> Iterator[None]:
    """Take back what was sent to the core, if the program stops waiting for the answer."""
    try:
        yield
    except BaseException as error:
        # An answer of the core is no reason to take anything back.
        is_answer = isinstance(error, CoreError) and not isinstance(error, NoReply)
        if not is_answer:
            with suppress(CoreError):
                undo()
        raise
