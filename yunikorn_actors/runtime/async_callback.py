"""Questions of the core to a program on an event loop.

The core asks on a delivery thread, which waits; the program answers on its loop, so its methods
need no lock. When the core is over, or another registration has come, the delivery thread is let
go.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError, Future
from inspect import isawaitable
from typing import Any, Final

from yunikorn_actors import si
from yunikorn_actors.errors import InvalidRequest

TAKEN: Final = ("update_allocation", "update_application", "update_node", "send_event")
"""What an iterator of the handle gives out instead."""


class AsyncResourceManagerCallback:
    """What the iterators of a handle cannot do; each method may be `async`, and runs on the loop.

    The core asks for what is overridden alone, as with `ResourceManagerCallback`.
    """

    def predicates(self, args: si.PredicatesArgs) -> str | Awaitable[str | None] | None:
        """Return None if the allocation fits the node, otherwise the reason why not."""

    def preemption_predicates(
        self, args: si.PreemptionPredicatesArgs
    ) -> si.PreemptionPredicatesResponse | Awaitable[si.PreemptionPredicatesResponse | None] | None:
        """Return success and the index of the last victim to preempt; None is a no."""

    def update_container_scheduling_state(
        self, request: si.UpdateContainerSchedulingStateRequest
    ) -> Awaitable[None] | None:
        """Hear that an ask waits, was skipped, was reserved or has its place."""

    def get_state_dump(self) -> str | Awaitable[str]:
        """Return its own state as JSON; a state dump of the core has it (`rm_diagnostics`)."""
        return "{}"


AnyCallback = AsyncResourceManagerCallback | si.ResourceManagerCallback


def check_callback(callback: object) -> None:
    """Raise InvalidRequest for what would never be called."""
    if not isinstance(callback, AnyCallback):
        raise InvalidRequest(
            f"callback: must be an AsyncResourceManagerCallback, not {type(callback).__name__}; "
            "subclass it and override what you care about"
        )
    for method in TAKEN:
        if has_own(callback, method):
            raise InvalidRequest(
                f"callback.{method}: is never called here; iterate over what the registration "
                "returns, and leave this method out"
            )


def has_own(callback: AnyCallback, method: str) -> bool:
    own = getattr(type(callback), method, None)
    bases = (AsyncResourceManagerCallback, si.ResourceManagerCallback)
    return own not in (None, *(getattr(base, method, None) for base in bases))


class Answerer:
    """Has the methods of a callback run on the loop, for a thread that waits for the outcome."""

    def __init__(self, callback: AnyCallback | None, loop: asyncio.AbstractEventLoop) -> None:
        self._callback = callback
        self._loop = loop
        self._lock = threading.RLock()
        """Between a question and the end: one that began after the end had looked would wait for
        ever."""
        self._asked: Future[Any] | None = None
        self._is_over = False

    def answers(self, method: str) -> bool:
        return self._callback is not None and has_own(self._callback, method)

    def ask(self, method: str, *arguments: object, otherwise: Any) -> Any:  # noqa: ANN401 - its own
        """Return what the method returns, or `otherwise` if nobody waits for it any more."""
        work = _answer(getattr(self._callback, method), arguments)
        try:
            # Under the lock `end` sees either no question or this one, and cancels it.
            with self._lock:
                if self._is_over:
                    # Never awaited otherwise, which Python complains about.
                    work.close()
                    return otherwise
                asked = self._asked = asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError:
            # The loop is closed; a program that has left it there has no answers.
            work.close()
            raise
        try:
            answer, exit_ = asked.result()
        except CancelledError:
            # By the end of the registration; or the program has cancelled its own task.
            if self._has_ended():
                return otherwise
            raise
        # Raised here, on the delivery thread: it is reported as raised by the callback.
        if exit_ is not None:
            raise exit_
        return answer

    def _has_ended(self) -> bool:
        return self._is_over

    def end(self) -> None:
        with self._lock:
            self._is_over = True
            asked = self._asked
        # Outside of the lock: cancelling may run callbacks of the future on this thread.
        if asked is not None:
            asked.cancel()


async def _answer(
    method: Callable[..., Any], arguments: tuple[object, ...]
) -> tuple[Any, SystemExit | None]:
    """A `SystemExit` is carried by hand: raised here it would end the loop of the program."""
    try:
        answer = method(*arguments)
        return (await answer if isawaitable(answer) else answer), None
    except SystemExit as error:
        return None, error
