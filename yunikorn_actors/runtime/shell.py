"""The one actor class: a thread around a machine, or around a resource manager's callback.

A shell takes envelopes in order, hands each message to what it holds, and lets the system carry out
the effects. Whatever is raised in here ends in here: pykka would kill the actor for an exception,
and for anything worse every actor of the process, those of the embedder included.
"""

import queue
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol, cast

import pykka

from yunikorn_actors import si
from yunikorn_actors.machines.machine import Effect, Machine, Replaceable, Send, report_of
from yunikorn_actors.messages.base import RM_PROXY, Cause, Delivery, Envelope, Message
from yunikorn_actors.messages.callbacks import call_back
from yunikorn_actors.runtime.clock import Clock
from yunikorn_actors.runtime.recorder import Recorder

STORY_LENGTH = 30


class Here(threading.local):
    """What the running thread is to the core."""

    shell: "Shell | None" = None


class System(Protocol):
    """What an actor wants of the core that it is a part of."""

    @property
    def clock(self) -> Clock: ...

    @property
    def recorder(self) -> Recorder | None: ...

    @property
    def here(self) -> Here: ...

    def carry_out(self, shell: "Shell", effect: Effect) -> None: ...

    def decline(self, envelope: Envelope) -> None: ...

    def fail(self, shell: "Shell", envelope: Envelope, error: BaseException) -> None: ...

    def survive(self, shell: "Shell", envelope: Envelope, error: Exception) -> None: ...

    def stopped_from_outside(self, shell: "Shell") -> None: ...


class CallbackHolder:
    """A resource manager's callback: what it raises is its own affair, and is reported as such."""

    def __init__(
        self,
        callback: si.ResourceManagerCallback,
        tell: Callable[[Message, BaseException], None],
    ) -> None:
        self._callback = callback
        self._tell = tell

    def handle(self, message: Message, now_ns: int) -> list[Effect]:  # noqa: ARG002
        try:
            answer, error = call_back(self._callback, message)
        except KeyboardInterrupt as raised:
            # Nobody interrupts a thread; so this one was raised by the callback itself.
            answer, error = None, raised
        if error is not None:
            self._tell(message, error)
        return [] if answer is None else [Send(to=RM_PROXY, message=answer)]


class Mailbox:
    """An inbox that counts what it takes, and takes nothing once its actor has ended."""

    def __init__(self) -> None:
        self.received = 0
        self._closed = False
        self._lock = threading.RLock()
        """Held from the look whether it is closed to the putting: an item that came in between
        would be counted and never handled."""
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.get = self._queue.get
        self.empty = self._queue.empty

    def put(self, item: object) -> None:
        with self._lock:
            if self._closed:
                raise pykka.ActorDeadError("the actor has ended")
            # Counted before it can be taken out: the count of handled messages is never ahead.
            self.received += 1
            self._queue.put(item)

    def close(self) -> None:
        with self._lock:
            self._closed = True


class Shell(pykka.ThreadingActor):
    def __init__(
        self,
        system: System,
        address: str,
        holder: "Machine | CallbackHolder",
        step: int = 0,
    ) -> None:
        super().__init__()
        self.address = address
        self.holder = holder
        self.mailbox = cast("Mailbox", self.actor_inbox)
        self.handled = 0
        """Written by this thread alone, and only after everything the message caused was sent."""
        self.deaf = False
        """Once set, messages are counted and not handled."""
        self.retired_s: float | None = None
        """When it was taken from its address, on the monotonic clock."""
        self.has_failed = False
        """Its machine is to be replaced, and its callers learn so."""
        self.at: tuple[Cause, str] | None = None
        """The message being handled, and its stimulus."""
        self.story: deque[tuple[str, type[Message], str]] = deque(maxlen=STORY_LENGTH)
        """The last messages, for the text of a failure."""
        self.thread = threading.Thread(
            target=self._actor_loop, name=f"yunikorn-actors-{address}", daemon=True
        )
        self._system = system
        self.step = step
        """Of the message that was handled last at this address."""

    @staticmethod
    def _create_actor_inbox() -> Any:  # noqa: ANN401 - pykka's protocol, which is private
        return Mailbox()

    def launch(self) -> None:
        """Do what pykka's `start` does, for an actor that its maker holds.

        Pykka returns a weak reference, and a `stop_all` of the embedder may have stopped the actor
        before that reference is used.
        """
        # Registered first: an actor that is asked to stop by a broadcast has to be found.
        pykka.ActorRegistry.register(self.actor_ref)
        try:
            self.thread.start()
        except RuntimeError:
            pykka.ActorRegistry.unregister(self.actor_ref)
            raise

    def end(self) -> None:
        """Handle nothing more, and let the thread end as soon as it is free."""
        # Deaf first: pykka's stop is a message behind those that wait, and none of them counts now.
        self.deaf = True
        try:
            self.actor_ref.stop(block=False)
        except pykka.ActorDeadError:
            return

    # -- on its own thread

    def on_start(self) -> None:
        self._system.here.shell = self

    def on_receive(self, message: object) -> None:
        """Anything else than an envelope is a broadcast of the embedder, to actors of its own."""
        if isinstance(message, Envelope):
            if not self.deaf:
                self._take(message)
            elif self.has_failed:
                self._system.decline(message)
        # Last, see Shells.is_settled: what this message caused is counted as received by now.
        self.handled += 1

    def _take(self, envelope: Envelope) -> None:
        system = self._system
        self.step += 1
        self.story.append((envelope.sender, type(envelope.message), envelope.stimulus))
        now_ns = system.clock.now_ns()
        self.at = (Cause(self.address, self.step), envelope.stimulus)
        try:
            if system.recorder is not None:
                system.recorder.add(
                    Delivery(
                        self.address,
                        self.step,
                        envelope.sender,
                        envelope.cause,
                        envelope.stimulus,
                        now_ns,
                        envelope.message,
                    )
                )
            # Recorded before it is handled: a trace has the message at which a machine failed.
            for effect in self._effects(envelope, now_ns):
                system.carry_out(self, effect)
        except BaseException as error:  # noqa: BLE001 - the edge: the first failure is kept
            system.fail(self, envelope, error)
        finally:
            self.at = None

    def _effects(self, envelope: Envelope, now_ns: int) -> list[Effect]:
        """A machine that has failed handles nothing more; all it wants is to be replaced."""
        try:
            return self.holder.handle(envelope.message, now_ns)
        except Exception as error:
            if not isinstance(self.holder, Replaceable):
                raise
            self.deaf = self.has_failed = True
            self._system.survive(self, envelope, error)
            return [report_of(self.holder, self.address, error)]

    def on_stop(self) -> None:
        """What is left in the mailbox will never be handled; the books must still balance."""
        self.mailbox.close()
        while self.has_failed and not self.mailbox.empty():
            item = self.mailbox.get()
            if isinstance(item, Envelope):
                self._system.decline(item)
        self.handled = self.mailbox.received
        # The core makes an actor deaf before it stops it; so this one was stopped by the embedder.
        if not self.deaf:
            self._system.stopped_from_outside(self)
