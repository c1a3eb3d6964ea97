"""Reconnecting: a front whose service goes away and comes back registers again and reports.

The delay between two attempts grows and is bounded. It varies, so that the clients of a service
that comes back do not all come at once.
"""

import threading
import time
from typing import Any

from yunikorn_actors.errors import ConnectionLost, CoreError, InvalidRequest
from yunikorn_actors.front.operations import Operations
from yunikorn_actors.front.outbox import Ending
from yunikorn_actors.service.breaks import backoff
from yunikorn_actors.service.remote import RemoteCore


def read_give_up_after(seconds: float | None) -> float:
    if seconds is None:
        return float("inf")
    if type(seconds) not in {int, float} or not seconds >= 0:
        raise InvalidRequest(f"give_up_after: must be seconds, 0 or more, not {seconds!r:.100}")
    return float(seconds)


class Reconnecting:
    """Keeps a front and its service together; it ends when the front is closed, or for good."""

    def __init__(self, core: RemoteCore, front: Operations[Any], give_up_after: float) -> None:
        self._core = core
        self._front = front
        self._give_up_after = give_up_after
        self._lock = threading.Lock()
        """Guards whether a thread is at it."""
        self._is_trying = False
        self._is_closed = threading.Event()
        core.when_over.append(self._is_closed.set)
        core.when_away = self._went_away

    def _went_away(self, error: CoreError) -> None:
        """Called on the thread of the conversation that has ended."""
        self._front.went_away(error)
        with self._lock:
            # A thread is at it: it sees that the connection has broken again.
            if self._is_trying:
                return
            self._is_trying = True
        try:
            threading.Thread(
                target=self._come_back, name="yunikorn-actors-reconnect", daemon=True
            ).start()
        except RuntimeError as raised:
            # Nobody would try: so that is the end, and the program learns of it.
            self._core.fail(ConnectionLost(f"{error}; and nothing can make it again: {raised}"))

    # -- on its thread

    def _come_back(self) -> None:
        since = time.monotonic()
        for delay in backoff():
            # With the delay: an attempt that would come too late is not made.
            if time.monotonic() - since + delay > self._give_up_after:
                self._give_up()
                return
            if self._is_closed.wait(delay):
                return
            try:
                self._register()
            except Exception as error:  # noqa: BLE001 - the edge: whatever it is, it is tried again
                self._front.tried(error)
                continue
            # Under the lock: a break between the look and the end would start no thread.
            with self._lock:
                # It may have broken again meanwhile, and then it is still this thread's affair.
                if self._core.away is None:
                    self._is_trying = False
                    return

    def _register(self) -> None:
        self._core._connect_anew().open()
        # What is being sent ends first, or the report would not be the first message.
        self._front.settle()
        self._core.register_resource_manager(self._front.registration, self._front.callback)
        # Only now is it there: everything is reported in one go.
        self._front.came_back(self._endings)

    def _endings(self) -> list[Ending] | None:
        """Return what is to be sent again; None where it has broken again."""
        return self._core.sent.take() if self._core.away is None else None

    def _give_up(self) -> None:
        text = f"the service at {self._core.address} was away for {self._give_up_after:g} s"
        self._core.fail(ConnectionLost(f"{text}: connect again when it is back"))
