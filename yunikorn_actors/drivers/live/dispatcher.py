"""The dispatcher runs the machines: one at a time, whichever has messages (ADR 40).

Each machine is an actor with a mailbox of its own. A machine never waits for anything, and under
one interpreter lock only one runs at a time anyway, so a thread for each would only bring changes
of threads. One dispatcher runs whichever actor has messages, for a slice of time, then the next.
RmProxy comes first: calls are taken in and answers go out while the others have much to do.

One thread at a time runs the machines: it has the *hold*, which is tried and never waited for. A
thread that leaves a message and finds the hold free takes it. With the driver `threads` it passes
the hold on to the dispatcher's own thread; with `direct` it runs the machines itself, for a bounded
number of messages, and then passes it on. A thread that finds the hold taken leaves its message:
the thread with the hold looks again after it has let go. So nothing is forgotten, and no caller
waits.

An interrupt (Ctrl-C) of a caller that runs the machines waits until the message in hand is handled,
because half a handler is half a truth; then it is raised in the call, and the rest is passed on.
Python raises interrupts in the main thread only. A program that has a handler of its own for SIGINT
decides for itself when it is interrupted.

Anything else that a signal raises in a handler, or between two, fails the core; the dispatcher's
own thread goes on, because it may have the hold.
"""

import _signal  # type: ignore[import-not-found]
import math
import queue
import signal
import threading
import time
from collections import deque
from time import monotonic_ns
from types import TracebackType
from typing import Any, Final, Protocol, Self

from yunikorn_actors.messages.base import Cause, Envelope
from yunikorn_actors.messages.scheduling import RunSlice


class DeferredInterrupt:
    """In a `with`: an interrupt that comes meanwhile is raised at its end."""

    # Class attributes: nothing is written for a call that no interrupt meets.
    has_come = False
    _is_deferred = False

    def __enter__(self) -> Self:
        # As `signal` has them they make enumerations of what they are given: 15 times the cost, and
        # this is paid at every call of the main thread.
        if _signal.getsignal(signal.SIGINT) is signal.default_int_handler and is_main():
            self._is_deferred = True
            _signal.signal(signal.SIGINT, self._note)
        return self

    def _note(self, *_: object) -> None:
        self.has_come = True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self._is_deferred:
            return
        # A hook of the embedder may have set another one.
        if _signal.getsignal(signal.SIGINT) == self._note:
            _signal.signal(signal.SIGINT, signal.default_int_handler)
        if self.has_come:
            raise KeyboardInterrupt


def is_main() -> bool:
    return threading.get_ident() == threading.main_thread().ident


# Longer slices join more messages, shorter ones let others in sooner; measured, see ADR 40.
SLICE_NS: Final = 2_000_000
"""How long one machine runs while others have messages. What waits in one mailbox is handled
together, so a slice of one message would cost more."""
RUN_MAX: Final = 1_000
"""Messages that a caller handles before it passes the hold on."""

END_S: Final = 1.0


class Dispatched(Protocol):
    """An actor whose machine the dispatcher runs."""

    address: str
    at: tuple[Cause, str] | None
    handled: int
    waiting: deque[Any]
    """Envelopes, and messages that a program sends by pykka's reference to this actor."""
    is_ready: bool
    """The dispatcher will come here, or is here."""

    def deliver(self, envelope: Envelope) -> None: ...

    def receive_from_pykka(self, item: Any) -> None: ...  # noqa: ANN401 - pykka's envelope

    def come_again(self) -> None:
        """Have the dispatcher come again, after the others."""

    def broken_off(self, item: Any, error: BaseException) -> None:  # noqa: ANN401 - as `waiting`
        """Something was raised around what was taken out last: see that the core knows."""

    def drop(self) -> None:
        """Count what waits, and let go of callers."""


class Outside(Protocol):
    """An actor with a thread of its own."""

    def hand_over(self, envelope: Envelope) -> None: ...


class Dispatcher:
    def __init__(self, *, callers_run: bool) -> None:
        self.actor: Dispatched | None = None
        """The one whose message is being handled."""
        self._callers_run = callers_run
        self.lock: Final = threading.RLock()
        """Guards the mailboxes and who is ready; held for a moment only."""
        self.ready: Final[deque[Dispatched]] = deque()
        """Those with messages, each once, but for the one that is running."""
        self._outgoing: list[tuple[Outside, Envelope]] = []
        """What goes outside is handed over last: the running thread is about to wait then, and the
        interpreter is free for the threads of the callbacks."""
        self._hand_over_ns = 0
        """When it is handed over though machines have messages left."""
        # A plain lock: it is taken on one thread and given back on another, passed on through the
        # bell.
        self._hold = threading.Lock()
        self._runner: int | None = None
        self._is_closed = False
        self._bell: queue.SimpleQueue[bool] = queue.SimpleQueue()
        """True passes the hold to the dispatcher's thread, False ends it."""
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        thread = threading.Thread(target=self._loop, name="yunikorn-actors-dispatcher", daemon=True)
        thread.start()
        self._thread = thread

    @property
    def is_mine(self) -> bool:
        """Whether this thread is running the machines at this moment."""
        return self._runner == threading.get_ident()

    # -- messages

    def send_outside(self, actor: Outside, envelope: Envelope) -> None:
        """Hand over a message of a machine to the thread of an outsider, soon."""
        # Another thread: it may hand over at once, as it runs no machine.
        if self._runner != threading.get_ident():
            actor.hand_over(envelope)
            return
        if not self._outgoing:
            self._hand_over_ns = monotonic_ns() + SLICE_NS
        self._outgoing.append((actor, envelope))

    def hand_over(self) -> None:
        """Hand over now what goes outside: what follows may take its time."""
        # Swapped before the loop: what is added meanwhile waits for the next time.
        outgoing = self._outgoing
        if outgoing:
            self._outgoing = []
            for actor, envelope in outgoing:
                actor.hand_over(envelope)

    # -- running

    def go_on(self) -> None:
        """Make sure that some thread handles the ready mailboxes; called without any lock."""
        # No lock: where this looks too early, the thread with the hold looks again after letting
        # go.
        if not self.ready or not self._hold.acquire(blocking=False):
            return
        # The hold goes with the bell: the thread that takes the bell has it.
        if not self._callers_run:
            self._bell.put(True)
            return
        is_done = False
        try:
            with DeferredInterrupt() as interrupt:
                is_done = self._run(RUN_MAX, interrupt)
        except BaseException:
            # A signal of the program's own is raised in its call. Elsewhere it is no affair of the
            # caller: the core has failed of it, see `broken_off`.
            if is_main():
                raise
        finally:
            # Also after an exception: the hold must not be lost, or no machine would ever run
            # again.
            if not is_done:
                self._bell.put(True)

    def _loop(self) -> None:
        """Run on the dispatcher's own thread, whenever it gets the hold."""
        nothing = DeferredInterrupt()
        while self._bell.get():
            is_done = False
            try:  # noqa: SIM105 - `suppress` would be a call more each time
                is_done = self._run(math.inf, nothing)
            except BaseException:  # noqa: BLE001, S110 - the core has failed of it
                # See `broken_off`. This thread has the hold, which a stop waits for.
                pass
            # More may be left: it rings for itself and looks at the bell, where an end may stand.
            if not is_done:
                self._bell.put(True)

    def _run(self, left: float, interrupt: DeferredInterrupt) -> bool:  # noqa: C901, PLR0912
        """Handle what waits, and let go of the hold; False with the hold if more may be left.

        One machine runs for a slice of time, then the next. Most slices are one message, so slices
        are no method of their own: it would be one call more for each message.
        """
        ready = self.ready
        while True:
            self._runner = threading.get_ident()
            try:
                while ready:
                    # Left over for the dispatcher's own thread, with the hold.
                    if left <= 0 or interrupt.has_come:
                        return False
                    try:
                        # Taken out: while it runs it is not in the row, and `put` does not put it
                        # there (`is_ready`).
                        actor = self.actor = ready.popleft()
                    except IndexError:
                        # Dropped meanwhile, by who could not wait for the hold.
                        break
                    waiting, before, until_ns = actor.waiting, actor.handled, 0
                    item = None
                    try:
                        while waiting:
                            item = waiting.popleft()
                            if type(item) is not Envelope:
                                actor.receive_from_pykka(item)
                                continue
                            actor.deliver(item)
                            # The end of a slice of long work: callers that wait get the interpreter
                            # now.
                            if type(item.message) is RunSlice:
                                self._yield()
                            if not waiting:
                                break
                            # Only where more is there: no clock is read for a single message.
                            now_ns = monotonic_ns()
                            until_ns = until_ns or now_ns + SLICE_NS
                            # Several messages handled together count as several.
                            is_enough = actor.handled - before >= left
                            if now_ns >= until_ns or interrupt.has_come or is_enough:
                                break
                    except BaseException as error:
                        # The core learns what was lost; the hold is left to `go_on` or `_loop`.
                        actor.broken_off(item, error)
                        raise
                    finally:
                        # Who leaves a message now finds that nobody comes, or is seen here.
                        actor.is_ready = False
                        # A message may have come between the last look and this line; `come_again`
                        # takes the lock.
                        if waiting:
                            actor.come_again()
                    left -= actor.handled - before
                    # Also in the middle of much work: callbacks wait for 2 ms at most.
                    if self._outgoing and ready and monotonic_ns() >= self._hand_over_ns:
                        self._yield()
            finally:
                # In any case: a callback must get what was decided before an exception.
                self.hand_over()
                self.actor = self._runner = None
            self._hold.release()
            # Looked at again: what came in between was left by a thread that found the hold taken.
            if not ready or not self._hold.acquire(blocking=False):
                return True

    def _yield(self) -> None:
        """Let the threads of callbacks and callers have the interpreter.

        Without this they would get it only when its switch interval is over, at each step of each
        of their messages.
        """
        self.hand_over()
        time.sleep(0)

    # -- the end

    def close(self, timeout: float) -> None:
        """Wait for who runs the machines, and drop what is left; the actors are deaf."""
        if self._is_closed:
            return
        self._is_closed = True
        # Not given back: nobody runs the machines any more.
        has_hold = self._hold.acquire(timeout=timeout)
        while self.ready:
            try:
                actor = self.ready.popleft()
            except IndexError:
                # Taken by who has the hold, whose handler has just returned.
                break
            actor.is_ready = False
            # Deaf actors only count, and let callers go.
            actor.drop()
        if has_hold:
            self.hand_over()
        # Behind whatever was rung before: the thread ends when it comes to this.
        self._bell.put(False)
        if self._thread is not None and has_hold:
            # It has nothing to do, so it ends at once, however little time is left.
            self._thread.join(END_S)
