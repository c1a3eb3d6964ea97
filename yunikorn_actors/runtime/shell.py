"""Where a machine or a resource manager's callback works: a station, maybe with its own thread.

A station takes envelopes in order, hands each message to what it holds, and lets the system carry
out the effects. Whatever is raised in here ends in here: pykka would kill the actor for an
exception, and for anything worse every actor of the process, those of the embedder included. A
shell is the station that is an actor; those without a thread are in `line`.
"""

import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from functools import cache
from time import monotonic_ns
from typing import Any, Final, Protocol, cast

import pykka

from yunikorn_actors import si
from yunikorn_actors.gateway import Follower
from yunikorn_actors.machines.machine import (
    Effect,
    Joining,
    Machine,
    Replaceable,
    Send,
    report_of,
)
from yunikorn_actors.messages.base import RM_PROXY, Cause, Delivery, Envelope, Message, is_outside
from yunikorn_actors.messages.callbacks import call_back
from yunikorn_actors.messages.following import CatchUpRequested, ManagerDescribed
from yunikorn_actors.messages.queries import Accepted
from yunikorn_actors.messages.restart import EventsRestored
from yunikorn_actors.messages.scheduling import PartitionSnapshot, RunSlice
from yunikorn_actors.runtime.clock import Clock
from yunikorn_actors.runtime.mailbox import Mailbox
from yunikorn_actors.runtime.meter import Gauge, Meter, role_of
from yunikorn_actors.runtime.recorder import Recorder

STORY_LENGTH = 30
JOINT_MAX_NS: Final = 5_000_000
"""So long messages are taken together: looked at after each, so that the rest waits no longer."""

LENT_MAX_NS: Final = 2_000_000
"""So long a thread works for other actors before it wakes theirs."""


class Here(threading.local):
    """What the running thread is to the core."""

    shell: "Shell | None" = None
    """The actor whose thread it is."""


class System(Protocol):
    """What an actor wants of the core that it is a part of."""

    @property
    def clock(self) -> Clock: ...

    @property
    def recorder(self) -> Recorder | None: ...

    @property
    def meter(self) -> Meter | None: ...

    @property
    def here(self) -> Here: ...

    def send(self, station: "Station", to: str, message: Message) -> None: ...

    def carry_out(self, station: "Station", effect: Effect) -> None: ...

    def decline(self, envelope: Envelope) -> None: ...

    def fail(self, station: "Station", envelope: Envelope, error: BaseException) -> None: ...

    def survive(self, station: "Station", envelope: Envelope, error: Exception) -> None: ...

    def stopped_from_outside(self, shell: "Shell") -> None: ...

    def go_on(self) -> None: ...


class Outsider(ABC):
    """Holds somebody outside of the core, who has a thread whatever the machines have."""

    @abstractmethod
    def handle(self, message: Message, now_ns: int) -> list[Effect]: ...


_STAND: Final = frozenset({ManagerDescribed, PartitionSnapshot})


class FollowerHolder(Outsider):
    """A read side: the core goes on without one that raises.

    Two machines tell it how things stand: the records of before come from the event publisher. What
    becomes true meanwhile waits, as its records follow those.
    """

    def __init__(self, follower: Follower, leave: Callable[[Exception], None]) -> None:
        self._follower = follower
        self._leave = leave
        self._has_left = False
        self._waiting: list[Message] | None = []
        """For the records of before; None when those are told."""

    def handle(self, message: Message, now_ns: int) -> list[Effect]:  # noqa: ARG002
        if self._waiting is None:
            return self._tell(message)
        if type(message) is EventsRestored:
            told, self._waiting = (message, *self._waiting), None
            return [effect for it in told for effect in self._tell(it)]
        if type(message) in _STAND and not self._waiting:
            return self._tell(message)
        self._waiting.append(message)
        return []

    def _tell(self, message: Message) -> list[Effect]:
        if isinstance(message, CatchUpRequested):
            return [Send(to=message.reply_to, message=Accepted())]
        if not self._has_left:
            try:
                self._follower.hear(message)
            except Exception as error:  # noqa: BLE001 - the edge: told, and asked no more
                self._has_left = True
                self._leave(error)
        return []


class CallbackHolder(Outsider):
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


class Station(ABC):
    def __init__(
        self,
        system: System,
        address: str,
        holder: "Machine | Outsider",
        step: int = 0,
    ) -> None:
        self.address = address
        self.holder = holder
        self.handled = 0
        """Written by one thread at a time, and only after all the message caused was sent."""
        self.deaf = False
        """Once set, messages are counted and not handled."""
        self.retired_s: float | None = None
        """When it was taken from its address, on the monotonic clock."""
        self.has_failed = False
        """Its machine is to be replaced, and its callers learn so."""
        self.at: tuple[Cause, str] | None = None
        """The message being handled, and its stimulus; of several together the last."""
        self.story: deque[tuple[str, type[Message], str]] = deque(maxlen=STORY_LENGTH)
        """The last messages, for the text of a failure."""
        self._system = system
        self._joining = holder if isinstance(holder, Joining) else None
        self._gauge: Gauge | None = None
        self._taken = 0
        """How many messages are being handled as one."""
        self.step = step
        """Of the message that was handled last at this address."""
        self.promises: Promises | None = None
        """Those of the thread that handles the message, if it makes any."""

    @property
    @abstractmethod
    def received(self) -> int:
        """How many messages have been put here; never behind those that were handled."""

    @abstractmethod
    def put(self, envelope: Envelope, promises: "Promises | None" = None) -> bool:
        """Leave an envelope; False when nothing more is taken.

        A thread that sees to its `promises` wakes nobody yet.
        """

    @abstractmethod
    def launch(self) -> None:
        """Begin to work."""

    @abstractmethod
    def end(self) -> None:
        """Handle nothing more, and end as soon as the message in hand is done."""

    @abstractmethod
    def join(self, timeout: float) -> None:
        """Wait until it has ended."""

    @property
    @abstractmethod
    def is_alive(self) -> bool:
        """It works, or has not ended yet."""

    @abstractmethod
    def give_up(self) -> None:
        """It did not end in time, and is left behind."""

    @abstractmethod
    def _look(self) -> Envelope | None:
        """Return the envelope that is next, if there is one: nobody else takes it."""

    @abstractmethod
    def _take_out(self) -> None:
        """Take out what was looked at."""

    def _receive(self, envelope: Envelope) -> None:
        self._taken = 1
        if not self.deaf:
            self._take(envelope)
        elif self.has_failed:
            self._system.decline(envelope)

    def _take(self, envelope: Envelope) -> None:
        system = self._system
        now_ns = system.clock.now_ns()
        try:
            self._note(envelope, now_ns)
            for effect in self._effects(envelope, now_ns):
                # Nearly all are messages: the table of the others is not asked for these.
                if type(effect) is Send:
                    system.send(self, effect.to, effect.message)
                else:
                    system.carry_out(self, effect)
        except BaseException as error:  # noqa: BLE001 - the edge: the first failure is kept
            # Now: what is called when a core fails may take its time.
            if self.promises is not None:
                self.promises.wake()
            system.fail(self, self._in_hand, error)
            self._hand_on(error)
        finally:
            self.at = None
            if system.recorder is not None:
                system.recorder.took(self.address, system.clock.now_ns() - now_ns)
            if system.meter is not None:
                gauge = self._gauge_of(system.meter)
                gauge.handled(envelope, now_ns, system.clock.now_ns() - now_ns)

    def _note(self, envelope: Envelope, now_ns: int, *, joined: bool = False) -> None:
        self._in_hand = envelope
        sender, message, cause, stimulus, sent_ns = envelope
        self.step += 1
        self.story.append((sender, type(message), stimulus))
        self.at = (Cause(self.address, self.step), stimulus)
        # Recorded before it is handled: a trace has the message at which a machine failed.
        recorder = self._system.recorder
        if recorder is not None:
            at = (self.address, self.step, sender, cause, stimulus, now_ns)
            recorder.add(Delivery(*at, message, joined, sent_ns))

    def _gauge_of(self, meter: Meter) -> Gauge:
        """A core may come to have a meter at any time, and then keeps it."""
        gauge = self._gauge
        if gauge is None:
            gauge = self._gauge = meter.gauge(self.address)
        return gauge

    def _effects(self, envelope: Envelope, now_ns: int) -> list[Effect]:
        """A machine that has failed handles nothing more; all it wants is to be replaced."""
        message, joining = envelope.message, self._joining
        try:
            if joining is not None and joining.joins(message, message):
                together = self._together(message, joining, now_ns)
                return joining.handle_together(together, now_ns)
            return self.holder.handle(message, now_ns)
        except Exception as error:
            if not isinstance(self.holder, Replaceable):
                raise
            self.deaf = self.has_failed = True
            self._system.survive(self, self._in_hand, error)
            return [report_of(self.holder, self.address, error)]

    def _together(self, first: Message, joining: Joining, now_ns: int) -> Iterator[Message]:
        """Yield a message and those behind it that may be handled with it, while there is time."""
        until_ns = monotonic_ns() + JOINT_MAX_NS
        yield first
        while monotonic_ns() < until_ns and not self.deaf:
            envelope = self._look()
            if envelope is None or not joining.joins(first, envelope.message):
                return
            self._take_out()
            self._taken += 1
            self._note(envelope, now_ns, joined=True)
            meter = self._system.meter
            if meter is not None:
                self._gauge_of(meter).joined(envelope, now_ns)
            yield envelope.message

    @abstractmethod
    def _hand_on(self, error: BaseException) -> None:
        """Raise what has failed the core if it was meant for the thread that runs it."""


class Promises:
    """What a thread has left with idle actors: it sees to that itself, or wakes their threads."""

    def __init__(self) -> None:
        self.machines: deque[Shell] = deque()
        self.outsiders: list[Shell] = []
        """Woken last: the thread is about to wait then, and the interpreter is free for theirs."""

    def wake(self) -> None:
        for shells in (self.machines, self.outsiders):
            while shells:
                shells.pop().mailbox.ring()


class Shell(Station, pykka.ThreadingActor):
    """A station with a thread of its own; `shell_class` makes the class of each kind of actor."""

    def __init__(
        self,
        system: System,
        address: str,
        holder: "Machine | Outsider",
        step: int = 0,
    ) -> None:
        pykka.ThreadingActor.__init__(self)
        Station.__init__(self, system, address, holder, step)
        self.mailbox = cast("Mailbox", self.actor_inbox)
        self._own = None if isinstance(holder, Outsider) else Promises()
        """The promises of its own thread. That of an outsider makes none, and no other runs an
        outsider: its code may wait for whatever it likes."""
        self.promises = self._own
        self._thread = threading.Thread(
            target=self._actor_loop, name=f"yunikorn-actors-{address}", daemon=True
        )

    @staticmethod
    def _create_actor_inbox() -> Any:  # noqa: ANN401 - pykka's protocol, which is private
        return Mailbox()

    @property
    def received(self) -> int:
        return self.mailbox.received

    def put(self, envelope: Envelope, promises: Promises | None = None) -> bool:
        try:
            # Pykka's `tell` asks first whether the actor has stopped; its mailbox is closed then.
            has_hold = self.mailbox.leave(envelope)
        except pykka.ActorDeadError:
            return False
        if not has_hold:
            return True
        if promises is None:
            self.mailbox.ring()
        elif self._own is None:
            promises.outsiders.append(self)
        else:
            promises.machines.append(self)
        return True

    def launch(self) -> None:
        """Do what pykka's `start` does, for an actor that its maker holds.

        Pykka returns a weak reference, and a `stop_all` of the embedder may have stopped the actor
        before that reference is used.
        """
        # Registered first: an actor that is asked to stop by a broadcast has to be found.
        pykka.ActorRegistry.register(self.actor_ref)
        try:
            self._thread.start()
        except RuntimeError:
            pykka.ActorRegistry.unregister(self.actor_ref)
            raise

    def end(self) -> None:
        # Deaf first: pykka's stop is a message behind those that wait, and none of them counts now.
        self.deaf = True
        try:
            self.actor_ref.stop(block=False)
        except pykka.ActorDeadError:
            return

    def join(self, timeout: float) -> None:
        self._thread.join(timeout)

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def give_up(self) -> None:
        """A `stop_all` of the embedder must not wait for it."""
        pykka.ActorRegistry.unregister(self.actor_ref)

    # -- on its own thread

    def _look(self) -> Envelope | None:
        return self.mailbox.look()

    def _take_out(self) -> None:
        self.mailbox.take_out()

    def on_start(self) -> None:
        self._system.here.shell = self

    def _handle_receive(self, message: object) -> object:
        """Take an envelope without asking whether it is one of pykka's own messages."""
        if type(message) is not Envelope:
            return super()._handle_receive(message)
        try:
            self._receive(message)
            self._count(self._taken)
        finally:
            self._see_to(message)
        if type(message.message) is RunSlice:
            # Without this others would get the interpreter only when its switch interval is over,
            # at each step of each of their messages.
            time.sleep(0)
        return None

    def _see_to(self, message: Envelope) -> None:
        """Keep what was promised while this message was handled."""
        promises = self._own
        if promises is None:
            return
        try:
            if promises.machines and not self._is_wanted(message):
                self._lend(promises)
        finally:
            promises.wake()

    def _lend(self, promises: Promises) -> None:
        here, until_ns = self._system.here, monotonic_ns() + LENT_MAX_NS
        try:
            # More may be promised meanwhile: what these send is left for others in its turn.
            while promises.machines:
                here.shell = shell = promises.machines.popleft()
                shell._work_for(promises, until_ns)
        finally:
            here.shell = self

    def _is_wanted(self, message: Envelope) -> bool:
        """Whether this thread is to go on here: more calls may come, or others have sent before."""
        following = self.mailbox.look()
        return is_outside(message.sender) or (
            following is not None and following.sender != self.address
        )

    def _work_for(self, promises: Promises, until_ns: int) -> None:
        """Handle what waits here on the thread of another, while there is time."""
        mailbox = self.mailbox
        while mailbox.keep():
            envelope = mailbox.look()
            if envelope is None or monotonic_ns() >= until_ns:
                mailbox.ring()
                return
            mailbox.take_out()
            self.promises = promises
            try:
                self._receive(envelope)
                self._count(self._taken)
            except BaseException:
                self.promises = self._own
                mailbox.ring()
                raise
            self.promises = self._own

    def on_receive(self, message: object) -> None:  # noqa: ARG002
        """A broadcast of the embedder, to actors of its own."""
        self._count(1)

    def _count(self, messages: int) -> None:
        # Last, see Shells.is_settled: what these caused is counted as received by now.
        self.handled += messages
        self._system.go_on()

    def _hand_on(self, error: BaseException) -> None:
        """Its thread is its own."""

    def on_stop(self) -> None:
        """What is left in the mailbox will never be handled; the books must still balance."""
        self.mailbox.close()
        while self.has_failed and not self.mailbox.empty():
            item = self.mailbox.get()
            if isinstance(item.message, Envelope):
                self._system.decline(item.message)
        self.handled = self.mailbox.received
        # The core makes an actor deaf before it stops it; so this one was stopped by the embedder.
        if not self.deaf:
            self._system.stopped_from_outside(self)


def shell_class(address: str, holder: "Machine | Outsider") -> type[Shell]:
    """Return the class under which pykka registers the actor at this address.

    `ActorRegistry.get_by_class_name` finds a machine by its own class name. The address names the
    machine, and not the type of the holder: a journal stands in for Context.
    """
    if isinstance(holder, Outsider):
        return _shell_class(type(holder).__name__)
    return _shell_class(role_of(address).title().replace("_", ""))


@cache
def _shell_class(name: str) -> type[Shell]:
    return type(name, (Shell,), {"__module__": Shell.__module__, "__doc__": Shell.__doc__})
