"""The actors of a core: its machines, and outsiders (callbacks, streams, followers).

An actor takes envelopes in order, hands each message to what it holds, and carries out the effects.
Whatever is raised in here ends in here: pykka would kill the actor for an exception, and for
anything worse every actor of the process, those of the embedder included. The dispatcher runs the
machines. An outsider has a thread of its own, as its code may wait for anything.
"""

import queue
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from time import monotonic_ns
from typing import Any, Final, Protocol, TypeVar, cast

import pykka
from msgspec import Struct

from yunikorn_actors import si
from yunikorn_actors.core.driver import Follower
from yunikorn_actors.drivers.live.clock import Clock
from yunikorn_actors.drivers.live.dispatcher import Dispatcher, is_main
from yunikorn_actors.machines.machine import (
    CallRm,
    Effect,
    Joining,
    Machine,
    Replaceable,
    Send,
    report_of,
)
from yunikorn_actors.messages.base import (
    RM_PROXY,
    Cause,
    Delivery,
    Envelope,
    Message,
    role_of,
)
from yunikorn_actors.messages.callbacks import call_back
from yunikorn_actors.messages.followers import CatchUpRequested, ManagerDescribed
from yunikorn_actors.messages.queries import Accepted
from yunikorn_actors.messages.restart import EventsRestored
from yunikorn_actors.messages.scheduling import PartitionSnapshot
from yunikorn_actors.recording.meter import Gauge, Meter
from yunikorn_actors.recording.recorder import Recorder


class Outsider(ABC):
    """Holds an object outside of the core, which may take its time: it has a thread of its own."""

    @abstractmethod
    def handle(self, message: Message, now_ns: int) -> list[Effect]: ...


# How things stand, sent by Context in one handler; the first facts come behind it.
_STAND: Final = frozenset({ManagerDescribed, PartitionSnapshot})


class FollowerHolder(Outsider):
    """A read side: the core goes on without one that raises.

    Two machines send it how things stand: partitions come from Context, earlier event records from
    the event publisher. Facts that arrive before those records wait, because their records follow
    the earlier ones.
    """

    def __init__(self, follower: Follower, leave: Callable[[Exception], None]) -> None:
        self._follower = follower
        self._leave = leave
        self._has_left = False
        self._waiting: list[Message] | None = []
        """For the records of before; None when those are sent."""

    def handle(self, message: Message, now_ns: int) -> list[Effect]:  # noqa: ARG002
        if self._waiting is None:
            return self._tell(message)
        # The earlier records have come: they go first, then what waited for them.
        if type(message) is EventsRestored:
            messages, self._waiting = (message, *self._waiting), None
            return [effect for it in messages for effect in self._tell(it)]
        if type(message) in _STAND and not self._waiting:
            return self._tell(message)
        self._waiting.append(message)
        return []

    def _tell(self, message: Message) -> list[Effect]:
        # Answered also when it has left: the caller waits for a follower, not for its success.
        if isinstance(message, CatchUpRequested):
            return [Send(to=message.reply_to, message=Accepted())]
        if not self._has_left:
            try:
                self._follower.receive(message)
            except Exception as error:  # noqa: BLE001 - the edge: reported, and called no more
                # Left once: what still waits in its mailbox is passed over.
                self._has_left = True
                self._leave(error)
        return []


class CallbackHolder(Outsider):
    """A resource manager's callback: an exception of it is reported and stops nothing."""

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


A = TypeVar("A", bound="Actor")

STORY_LENGTH = 30
JOINT_MAX_NS: Final = 5_000_000
"""So long messages are taken together: looked at after each, so that the rest waits no longer."""


class System(Protocol):
    """What an actor wants of the core that it is a part of."""

    @property
    def clock(self) -> Clock: ...

    @property
    def recorder(self) -> Recorder | None: ...

    @property
    def meter(self) -> Meter | None: ...

    @property
    def here(self) -> "Here": ...

    @property
    def by_address(self) -> Mapping[str, "Actor"]: ...

    def send_elsewhere(self, actor: "Actor", to: str, message: Message) -> None: ...

    def carry_out(self, actor: "Actor", effect: Effect) -> None: ...

    def decline(self, envelope: Envelope) -> None: ...

    def fail(self, actor: "Actor", envelope: Envelope | None, error: BaseException) -> None: ...

    def survive(self, actor: "Actor", envelope: Envelope, error: Exception) -> None: ...

    def stopped_from_outside(self, actor: "Actor") -> None: ...


class Here(threading.local):
    """What the running thread is to the core."""

    actor: "OutsideActor | None" = None
    """The outsider whose thread it is."""


class Actor(ABC):
    def __init__(
        self, system: System, address: str, holder: Machine | Outsider, step: int = 0
    ) -> None:
        self.address = address
        self.holder = holder
        self.received = 0
        """How many messages have been put here; never behind those that were handled."""
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
        self.step = step
        """Of the message that was handled last at this address."""
        self._system = system
        self._joining = holder if isinstance(holder, Joining) else None
        self._gauge: Gauge | None = None
        self._taken = 1
        """How many messages are being handled as one."""

    @abstractmethod
    def put(self, envelope: Envelope) -> bool:
        """Leave an envelope; False when nothing more is taken."""

    @abstractmethod
    def launch(self) -> None:
        """Register with pykka and begin to work."""

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
        """It did not end in time, and is left behind: a `stop_all` must not wait for it."""

    @abstractmethod
    def _next(self) -> Envelope | None:
        """Return what would be taken out next, if that is an envelope."""

    @abstractmethod
    def _take_next(self) -> None:
        """Take it out."""

    @abstractmethod
    def _failed(self, error: BaseException) -> None:
        """The core has failed here: let nobody wait, raise what was meant for the thread."""

    def deliver(self, envelope: Envelope) -> None:  # noqa: C901 - a call is paid for each message
        """Handle a message, carry out its effects, and count it."""
        if self.deaf:
            # Deaf: counted, so that "settled" stays exact, and handled by nobody.
            self._pass_over(envelope)
            return
        system, address = self._system, self.address
        self._taken, now_ns, stamps = 1, 0, False
        # All of it inside the `try`: a signal may raise at any of these lines.
        try:
            sender, message, _, stimulus, _ = self._in_hand = envelope
            by_address, now_ns = system.by_address, system.clock.now_ns()
            # Read once a message: a meter that comes in between is used from the next one on.
            stamps = system.recorder is not None or system.meter is not None
            joining = self._joining
            self.step += 1
            self.story.append((sender, type(message), stimulus))
            self.at = (Cause(address, self.step), stimulus)
            if stamps:
                self._record(envelope, now_ns)
            try:
                # A kind that joins goes this way also alone; the driver does not look whether
                # another waits.
                if joining is not None and type(message) in joining.joined:
                    together = self._together(message, joining, now_ns)
                    effects = joining.handle_together(together, now_ns)
                else:
                    effects = self.holder.handle(message, now_ns)
            except Exception as error:  # noqa: BLE001 - a machine that holds no truth is replaced
                effects = self._effects_of_failure(error)
            # Of several messages handled together the last is the cause: all effects come behind
            # it.
            assert self.at is not None
            cause, stimulus = self.at
            for effect in effects:
                # Nearly all are messages to actors: the table of the others is not asked for these.
                if type(effect) is Send:
                    to, message = effect.to, effect.message
                elif type(effect) is CallRm:
                    to, message = effect.callback, effect.call
                else:
                    system.carry_out(self, effect)
                    continue
                actor = by_address.get(to)
                # Between machines of one core no clock is read, unless it is recorded.
                sent_ns = system.clock.now_ns() if stamps else None
                made = Envelope(address, message, cause, stimulus, sent_ns)
                # Nobody is there, or it has ended: a caller, the gateway, or a message that is
                # lost.
                if actor is None or not actor.put(made):
                    system.send_elsewhere(self, to, message)
        except BaseException as error:  # noqa: BLE001 - the edge: the first failure is kept
            system.fail(self, self._in_hand, error)
            self._failed(error)
        finally:
            self.at = None
            if stamps:
                self._measure(envelope, now_ns)
            # Last, see `ActorRegistry.is_settled`: what these caused is counted as received by now.
            self.handled += self._taken

    def _record(self, envelope: Envelope, now_ns: int, *, joined: bool = False) -> None:
        """Before it is handled: a trace has the message at which a machine failed."""
        sender, message, cause, stimulus, sent_ns = envelope
        recorder = self._system.recorder
        if recorder is not None:
            at = (self.address, self.step, sender, cause, stimulus, now_ns)
            recorder.add(Delivery(*at, message, joined, sent_ns))

    def _pass_over(self, envelope: Envelope) -> None:
        """Count a message that is not handled; a caller that waits for its answer is let go."""
        try:
            if self.has_failed:
                # The caller of a machine that failed is refused; one of a core that stops is let go
                # elsewhere.
                self._system.decline(envelope)
        finally:
            self.handled += 1

    def _effects_of_failure(self, error: Exception) -> list[Effect]:
        """A machine that has failed handles nothing more; all it wants is to be replaced."""
        # Context or RmProxy: their failure ends the core (ADR 14).
        if not isinstance(self.holder, Replaceable):
            raise error
        # Deaf before anything else runs: nothing of its mailbox reaches the heir.
        self.deaf = self.has_failed = True
        self._system.survive(self, self._in_hand, error)
        return [report_of(self.holder, self.address, error)]

    def _together(self, first: Message, joining: Joining, now_ns: int) -> Iterator[Message]:
        """Yield a message and those behind it that may be handled with it, while there is time."""
        # Real time, not the core's clock: this bounds what others wait.
        until_ns = monotonic_ns() + JOINT_MAX_NS
        yield first
        while monotonic_ns() < until_ns and not self.deaf:
            envelope = self._next()
            if envelope is None or not joining.joins(first, envelope.message):
                return
            self._take_next()
            self._taken += 1
            self.step += 1
            # A failure belongs to the message in hand, not to the first one.
            self._in_hand = envelope
            self.story.append((envelope.sender, type(envelope.message), envelope.stimulus))
            self.at = (Cause(self.address, self.step), envelope.stimulus)
            self._record(envelope, now_ns, joined=True)
            meter = self._system.meter
            if meter is not None:
                self._gauge_of(meter).joined(envelope, now_ns)
            yield envelope.message

    def _measure(self, envelope: Envelope, now_ns: int) -> None:
        system = self._system
        try:
            took_ns = system.clock.now_ns() - now_ns
            if system.recorder is not None:
                system.recorder.took(self.address, took_ns)
            if system.meter is not None:
                self._gauge_of(system.meter).handled(envelope, now_ns, took_ns)
        except BaseException as error:  # noqa: BLE001 - the message has still to be counted
            # Caught here and not in `deliver`, whose `finally` calls this.
            system.fail(self, envelope, error)

    def _gauge_of(self, meter: Meter) -> Gauge:
        """A core may come to have a meter at any time, and then keeps it."""
        gauge = self._gauge
        if gauge is None:
            gauge = self._gauge = meter.gauge(self.address)
        return gauge


class _Inbox:
    """What pykka sees of a machine's mailbox: the way in for what a program asks of an actor."""

    def __init__(self) -> None:
        self.actor: MachineActor | None = None

    def put(self, item: Any) -> None:  # noqa: ANN401 - pykka's envelope
        assert self.actor is not None
        # As pykka does it: the embedder gets the error that it knows.
        if not self.actor.put_from_pykka(item):
            raise pykka.ActorDeadError("the actor has ended")

    def get(self) -> Any:  # noqa: ANN401 - pykka's protocol
        raise NotImplementedError("a machine is run by the dispatcher")

    def empty(self) -> bool:
        return True


class MachineActor(Actor, pykka.Actor):
    """A machine that the dispatcher runs; `actor_class` makes a class for each kind of machine."""

    def __init__(
        self,
        system: System,
        address: str,
        holder: Machine,
        step: int,
        dispatcher: Dispatcher,
        *,
        comes_first: bool = False,
    ) -> None:
        pykka.Actor.__init__(self)
        Actor.__init__(self, system, address, holder, step)
        self.waiting: deque[Any] = deque()
        """Envelopes, and messages that a program sends by pykka's reference to this actor."""
        self.is_ready = False
        """The dispatcher will come here, or is here."""
        self._dispatcher = dispatcher
        self._lock = dispatcher.lock
        ready = dispatcher.ready
        # First in the row of ready machines: RmProxy is never behind a machine with much to do.
        self._become_ready = ready.appendleft if comes_first else ready.append
        self._has_ended = False
        self.actor_inbox.actor = self  # type: ignore[attr-defined]

    @staticmethod
    def _create_actor_inbox() -> Any:  # noqa: ANN401 - pykka's protocol, which is private
        return _Inbox()

    @staticmethod
    def _create_future() -> pykka.Future[Any]:
        return pykka.ThreadingFuture()

    def _start_actor_loop(self) -> None:
        """The dispatcher runs it."""

    def put(self, envelope: object) -> bool:
        """Leave a message here; the dispatcher takes it when it goes round.

        Not at once: the caller may hold a lock that the machines need.
        """
        # One lock for all mailboxes and the row of ready machines: they change together.
        with self._lock:
            if self._has_ended:
                return False
            # Counted before it can be taken out: the count of handled messages is never ahead.
            self.received += 1
            self.waiting.append(envelope)
            # Once in the row, however many messages wait: the dispatcher takes them in one slice.
            if not self.is_ready:
                self.is_ready = True
                self._become_ready(self)
        return True

    def come_again(self) -> None:
        with self._lock:
            # Behind the others: its slice is over.
            if not self.is_ready:
                self.is_ready = True
                self._dispatcher.ready.append(self)

    def broken_off(self, item: Any, error: BaseException) -> None:  # noqa: ANN401 - as `waiting`
        with self._lock:
            # Taken out and neither handled nor counted: raised between the two, by a signal.
            lost = self.received - len(self.waiting) - self.handled
            # What was taken out and not begun is lost, and the books must still balance.
            self.handled += lost
        envelope = item if type(item) is Envelope else None
        # What a program has asked of the actor by its reference is no message of the core.
        if (lost or envelope) and not self.deaf:
            self._system.fail(self, envelope, error)

    def put_from_pykka(self, item: object) -> bool:
        is_taken = self.put(item)
        # A program's message needs the dispatcher as any other.
        self._dispatcher.go_on()
        return is_taken

    def launch(self) -> None:
        # Pykka's `start` returns a weak reference, and a `stop_all` of the embedder may have
        # stopped the actor before that is used.
        pykka.ActorRegistry.register(self.actor_ref)

    def end(self) -> None:
        with self._lock:
            self.deaf = self._has_ended = True
        self.actor_stopped.set()
        pykka.ActorRegistry.unregister(self.actor_ref)

    def join(self, timeout: float) -> None:
        """The dispatcher is closed for all machines together."""

    @property
    def is_alive(self) -> bool:
        # Ended, but with messages in hand or waiting: `drop` and the running handler still count
        # them.
        return not self._has_ended or self.handled < self.received

    def give_up(self) -> None:
        """It is not registered any more."""

    def drop(self) -> None:
        # Counted one by one through `deliver`: deaf, it only counts and lets callers go.
        while self.waiting:
            try:
                item = self.waiting.popleft()
            except IndexError:
                return
            if type(item) is Envelope:
                self.deliver(item)
            else:
                self.receive_from_pykka(item)

    def receive_from_pykka(self, item: Any) -> None:  # noqa: ANN401 - pykka's envelope
        """Do what pykka's loop does with what a program has asked of the actor by its reference."""
        try:
            answer = self._answer_pykka(item.message)
        except BaseException as error:  # noqa: BLE001 - the edge: it is for who has asked, if any
            # Whatever it is, the thread goes on: it has the hold, which nobody could give back.
            if item.reply_to is not None:
                item.reply_to.set_exception()
            self._failed(error)
        else:
            if item.reply_to is not None:
                item.reply_to.set(answer)
        finally:
            self.handled += 1

    def _answer_pykka(self, message: object) -> object:
        if self._has_ended:
            raise pykka.ActorDeadError("the actor has ended")
        return self._handle_receive(message)

    def on_receive(self, message: object) -> None:
        """Ignore a broadcast of the embedder, meant for actors of its own."""

    def on_stop(self) -> None:
        # The core makes an actor deaf before it ends it; so this one was stopped by the embedder.
        if not self.deaf:
            self._has_ended = self.deaf = True
            self._system.stopped_from_outside(self)

    def _next(self) -> Envelope | None:
        # A message of pykka is not joined: it ends what is handled together.
        item = self.waiting[0] if self.waiting else None
        return item if type(item) is Envelope else None

    def _take_next(self) -> None:
        self.waiting.popleft()

    def _failed(self, error: BaseException) -> None:
        """Only on the main thread it may be a signal that raised, and not the machine or a call."""
        # The main thread belongs to the program: what its signal raised must reach it.
        if not isinstance(error, Exception) and is_main():
            raise error


class _Letter(Struct):
    """What pykka's loop finds in the inbox of an outsider, if nobody waits for the outcome."""

    message: Envelope
    reply_to: None = None


class OutsideActor(Actor, pykka.ThreadingActor):
    """An outsider on a thread of its own."""

    def __init__(
        self, system: System, address: str, holder: Outsider, step: int, dispatcher: Dispatcher
    ) -> None:
        pykka.ThreadingActor.__init__(self)
        Actor.__init__(self, system, address, holder, step)
        self._dispatcher = dispatcher
        # Its own lock: an outsider's mailbox is filled by the dispatcher and by other threads.
        self._lock = threading.RLock()
        """Guards the count and the end: what came between them would never be handled."""
        self._is_closed = False
        self._thread = threading.Thread(
            target=self._actor_loop, name=f"yunikorn-actors-{address}", daemon=True
        )

    @staticmethod
    def _create_actor_inbox() -> Any:  # noqa: ANN401 - pykka's protocol, which is private
        return queue.SimpleQueue()

    def put(self, envelope: Envelope) -> bool:
        with self._lock:
            if self._is_closed:
                return False
            # Counted before it can be taken out: the count of handled messages is never ahead.
            self.received += 1
        # Through the dispatcher: callbacks are woken when the machines have nothing to do.
        self._dispatcher.send_outside(self, envelope)
        return True

    def hand_over(self, envelope: Envelope) -> None:
        self.actor_inbox.put(_Letter(envelope))  # type: ignore[arg-type]

    def launch(self) -> None:
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
            # Not waited for: a callback may be in a call that never returns.
            self.actor_ref.stop(block=False)
        except pykka.ActorDeadError:
            return

    def join(self, timeout: float) -> None:
        self._thread.join(timeout)

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def give_up(self) -> None:
        pykka.ActorRegistry.unregister(self.actor_ref)

    # -- on its own thread

    def on_start(self) -> None:
        # From here on the thread is inside the core: a call that waits for the core would wait for
        # itself.
        self._system.here.actor = self

    def _handle_receive(self, message: object) -> object:
        """Take an envelope without asking whether it is one of pykka's own messages."""
        if type(message) is not Envelope:
            return super()._handle_receive(message)
        self.deliver(message)
        # What it has answered waits for the dispatcher.
        self._dispatcher.go_on()
        return None

    def on_receive(self, message: object) -> None:
        """Ignore a broadcast of the embedder, meant for actors of its own."""

    def on_stop(self) -> None:
        """What is left in the inbox will never be handled; the books must still balance."""
        with self._lock:
            self._is_closed = True
            # Dropped messages count as handled, or the core would never be settled again.
            self.handled = self.received
        # The core makes an actor deaf before it stops it; so this one was stopped by the embedder.
        if not self.deaf:
            self._system.stopped_from_outside(self)

    def _next(self) -> Envelope | None:
        """No outsider handles messages together."""
        return None

    def _take_next(self) -> None:
        raise NotImplementedError

    def _failed(self, error: BaseException) -> None:
        """Its thread is its own."""


def name_of(address: str, holder: Machine | Outsider) -> str:
    """Return the name under which pykka registers the actor at this address.

    `ActorRegistry.get_by_class_name` finds a machine by its own class name. The address names the
    machine, and not the type of the holder: a journal stands in for Context.
    """
    if isinstance(holder, Outsider):
        return type(holder).__name__
    # `event_publisher` becomes EventPublisher: the name by which an embedder finds the actor.
    return role_of(address).title().replace("_", "")


def actor_class(base: type[A], name: str) -> type[A]:
    return cast("type[A]", _class_of(base, name))


# One class for each name: pykka finds actors by their class.
@cache
def _class_of(base: type[Actor], name: str) -> type[Actor]:
    return type(name, (base,), {"__module__": base.__module__, "__doc__": base.__doc__})
