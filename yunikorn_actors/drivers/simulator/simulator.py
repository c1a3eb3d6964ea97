"""The simulator: all mailboxes on one thread, in virtual time, in an order that a seed chooses.

It drives the same machines as the threads do. Each pair of sender and receiver has a channel, which
keeps the order of its messages, as on threads. The chooser decides which channel delivers next.
Time moves only when the caller advances it. Callbacks of resource managers are mailboxes too: when
one calls the core, that is a message like any other.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, MutableSequence
from itertools import count
from typing import Any, Protocol

from yunikorn_actors import si
from yunikorn_actors.config import ExtraConfig
from yunikorn_actors.core.backlog import Backlog
from yunikorn_actors.core.driver import Follower
from yunikorn_actors.core.due import ArmedTimers
from yunikorn_actors.core.entry import Gateway
from yunikorn_actors.drivers.simulator.choosers import Channel, Channels, Chooser, Fifo
from yunikorn_actors.drivers.simulator.quiescence import RestWatch
from yunikorn_actors.errors import NoReply, WouldBlock
from yunikorn_actors.machines.machine import (
    REPLACED_MAX,
    CallRm,
    CancelTimer,
    Effect,
    Joining,
    Log,
    Machine,
    Replaceable,
    Send,
    SetTimer,
    StartMachine,
    StopCore,
    StopMachine,
    refusal_of,
    report_of,
)
from yunikorn_actors.machines.topology import Topology
from yunikorn_actors.messages.base import (
    CONTEXT,
    GATEWAY,
    RM_PROXY,
    TIMER,
    Cause,
    Delivery,
    Envelope,
    Message,
    is_callback,
    is_reply,
    manager_of,
    reply_address,
    role_of,
)
from yunikorn_actors.messages.callbacks import call_back
from yunikorn_actors.messages.followers import CatchUpRequested
from yunikorn_actors.messages.queries import Accepted

EPOCH_NS = 1_767_225_600_000_000_000
"""Virtual time starts at 2026-01-01T00:00Z."""


class Checker(Protocol):
    """Judges messages; with `receivers` those to such roles, and any that ends in rest."""

    def delivered(self, simulator: "Simulator", delivery: Delivery) -> None: ...


Look = Callable[["Simulator", Delivery], None]
"""How a checker judges one message."""


class CheckerGroup:
    """Shows each handled message to all checkers."""

    def __init__(self, checkers: tuple[Checker, ...]) -> None:
        self.set(checkers)

    def set(self, checkers: tuple[Checker, ...]) -> None:
        """Have these judge what comes, in place of those before."""
        self._checkers = checkers
        self._looks: tuple[Look, ...] = tuple(it.delivered for it in checkers)
        self._looks_at: dict[str, tuple[Look, ...]] = {}
        """By role of the receiver, those that look at its messages while others are under way."""

    def add(self, checker: Checker) -> None:
        self.set((*self._checkers, checker))

    def __bool__(self) -> bool:
        return bool(self._checkers)

    def __iter__(self) -> Iterator[Checker]:
        return iter(self._checkers)

    def judge(self, simulator: "Simulator", in_hand: list[Delivery]) -> None:
        """Show each message that was handled as one, and the effects with the last of them."""
        if len(in_hand) > 1:
            # Effects follow the last of them; checkers must not take them for those of an earlier
            # one.
            effects, simulator.effects = simulator.effects, []
            for delivery in in_hand[:-1]:
                self._show(simulator, delivery)
            simulator.effects = effects
        self._show(simulator, in_hand[-1])

    def _show(self, simulator: "Simulator", delivery: Delivery) -> None:
        looks = self._looks
        # At rest every checker looks, whichever machine the message was for.
        if simulator.channels:
            role = role_of(delivery.mailbox)
            known = self._looks_at.get(role)
            looks = self._looks_of(role) if known is None else known
        for look in looks:
            look(simulator, delivery)

    def _looks_of(self, role: str) -> tuple[Look, ...]:
        found = self._looks_at[role] = tuple(
            it.delivered for it in self._checkers if role in getattr(it, "receivers", (role,))
        )
        return found


class Simulator(Gateway):
    """A whole core on one thread: mailboxes, clock, timers and callbacks.

    It does what takes several modules on threads. There each needs locks of its own; here each is
    a few fields, and a run has to own all of them to be repeated exactly.
    """

    def __init__(
        self,
        topology: Topology,
        *,
        chooser: Chooser | None = None,
        checkers: tuple[Checker, ...] = (),
        recorders: tuple[Callable[[Delivery], None], ...] = (),
        accounts: Mapping[str, tuple[str, ...]] | None = None,
        replaced_for: tuple[type[Exception], ...] = (),
    ) -> None:
        """`accounts` is what the resolver `os` knows here: users, each with its groups.

        A machine that can be replaced and raises one of `replaced_for` is replaced as on threads.
        Every other exception ends the run: runs are there to find them. Recorders get a message
        before it is handled, so they also have the one that ends the run.
        """
        known = {} if accounts is None else accounts
        super().__init__(
            lookups={"os": known.get}, now_ns=lambda: self.now_ns, policies=topology.policies
        )
        self.now_ns = EPOCH_NS
        self.machines: dict[str, Machine] = topology.first_machines()
        self.callback_errors: list[Exception] = []
        self.lines: MutableSequence[str] = []
        """The lines that on threads would go to the log."""
        self.delivered = 0
        self.effects: list[Effect] = []
        """The effects of the last message that was handled, and of those joined to it."""
        self.topology = topology
        self._chooser = chooser or Fifo()
        self._recorders = recorders
        self.failure: Exception | None = None
        """What ended the run: the exception of a machine or of a checker."""
        self.callbacks: dict[str, si.ResourceManagerCallback] = {}
        self._followers: dict[str, Follower] = {}
        self._replies: dict[str, Message] = {}
        self._reply_numbers = count(1)
        self.channels: Channels = {}
        self._sent = count()
        self._steps: dict[str, int] = {}
        self.timers = ArmedTimers()
        self._rest = RestWatch()
        self._replaced_for = replaced_for
        self._raised: deque[Exception] = deque(maxlen=REPLACED_MAX + 1)
        """The exceptions for which machines were replaced."""
        self._dead: set[str] = set()
        """Addresses whose machine has failed and is not replaced yet."""
        self._at: tuple[Cause, str] | None = None
        """The message being handled, and its stimulus; None between messages."""
        self._in_hand: list[Delivery] = []
        """What is being handled as one."""
        self.checkers = CheckerGroup(checkers)

    # -- running

    def step(self) -> bool:
        """Deliver one message; False when every mailbox is empty."""
        if self.is_at_rest:
            return False
        self.deliver_from(self._chooser.choose(self.channels))
        return True

    def deliver_from(self, channel: Channel) -> None:
        """Deliver the first message of a channel, which is not empty."""
        self._deliver(channel[1], self._pop(channel))

    def _pop(self, channel: Channel) -> Envelope:
        queue = self.channels[channel]
        _, envelope = queue.popleft()
        if not queue:
            del self.channels[channel]
        return envelope

    def settle(self) -> None:
        """Run until every mailbox is empty; time stands still.

        Raises NoRest if messages go round.
        """
        choose, channels = self._chooser.choose, self.channels
        # Read anew each time: a delivery adds and removes channels.
        while channels:
            self.deliver_from(choose(channels))

    def advance(self, duration_ns: int) -> None:
        """Let time pass; timers fire in order, and each moment is settled before the next.

        Timers of the same moment are sent together, so the handler of one may cancel another that
        is in a mailbox already: such a stale firing must do no harm (R-027).
        """
        self.settle()
        target = self.now_ns + duration_ns
        while (due_ns := self.timers.first_due_ns()) is not None and due_ns <= target:
            # Never backwards: a timer that was armed in the past fires now.
            self.now_ns = max(self.now_ns, due_ns)
            self._fire_due()
            self.settle()
        self.now_ns = target

    def _fire_due(self) -> None:
        # All that are due at this moment, before any of them is handled.
        while (due_ns := self.timers.first_due_ns()) is not None and due_ns <= self.now_ns:
            to, envelope = self.timers.pop()
            self.put((TIMER, to), envelope)

    @property
    def is_at_rest(self) -> bool:
        """Whether every mailbox is empty."""
        return not self.channels

    @property
    def is_handling(self) -> bool:
        """Whether a message is being handled: then a call comes from inside, from a callback."""
        return self._at is not None

    @property
    def last(self) -> Delivery:
        """The message handled last; of several that were handled as one, the last of them."""
        return self._in_hand[-1]

    @property
    def taken(self) -> list[Message]:
        """The messages that were handled as one."""
        return [it.message for it in self._in_hand]

    def _deliver(self, address: str, envelope: Envelope) -> None:
        self._in_hand = []
        try:
            # Before it is handled: a recording has the message that ends a run.
            self._note(address, envelope)
            self._dispatch(address, envelope)
            # Before the checkers: what they ask of the core comes from outside.
            self._at = None
            if self.checkers:
                self.checkers.judge(self, self._in_hand)
            # Last: a contradiction says more than a run that does not end.
            self._rest.note(self.last, self.effects, self.machines.get(CONTEXT))
        except Exception as error:
            self.failure = error
            raise
        finally:
            self._at = None

    def _note(self, address: str, envelope: Envelope) -> None:
        """Record a message before it is handled; what is sent from here on, it has caused."""
        sender, message, cause, stimulus, _ = envelope
        step = self._steps[address] = self._steps.get(address, 0) + 1
        self.delivered += 1
        joined = bool(self._in_hand)
        delivery = Delivery(address, step, sender, cause, stimulus, self.now_ns, message, joined)
        self._in_hand.append(delivery)
        for record in self._recorders:
            record(delivery)
        self._at = (Cause(address, step), stimulus)

    def _dispatch(self, address: str, envelope: Envelope) -> None:
        machine = self.machines.get(address)
        if machine is not None:
            self.effects = self._effects(address, machine, envelope)
            for effect in self.effects:
                self._carry_out(address, effect)
        elif address in self.callbacks:
            self._call_back(address, envelope.message)
        elif address in self._followers:
            self._tell_follower(address, envelope.message)
        elif address == GATEWAY:
            self.managers.receive(envelope.message)
        else:
            self._replies[address] = envelope.message

    def _tell_follower(self, address: str, message: Message) -> None:
        if isinstance(message, CatchUpRequested):
            self._send(address, message.reply_to, Accepted())
        else:
            self._followers[address].receive(message)

    def _set_up(self, rm_id: str, extra: ExtraConfig) -> None:
        """Ignore the wishes: there is no log here, and checkers run after every message."""

    def _effects(self, address: str, machine: Machine, envelope: Envelope) -> list[Effect]:
        """Run the handler; if it fails, the only effect is to be replaced."""
        message = envelope.message
        try:
            if isinstance(machine, Joining) and type(message) in machine.joined:
                together = self._together(address, envelope, machine)
                return machine.handle_together(together, self.now_ns)
            return machine.handle(message, self.now_ns)
        except self._replaced_for as error:
            if not isinstance(machine, Replaceable):
                raise
            # Its failure is an ordinary step: `MachineFailed` goes to Context from its address.
            self._raised.append(error)
            self._dead.add(address)
            self._decline(envelope)
            self._stop(address)
            return [report_of(machine, address, error)]

    def _together(self, address: str, first: Envelope, joining: Joining) -> Iterator[Message]:
        """Yield a message and as many of those behind it as the chooser says."""
        yield first.message
        channel = (first.sender, address)
        while queue := self.channels.get(channel):
            _, envelope = queue[0]
            # Asked in this order: the chooser draws only where something could join.
            if not joining.joins(first.message, envelope.message) or not self._joins(channel):
                return
            self._note(address, self._pop(channel))
            yield envelope.message

    def _joins(self, _: Channel) -> bool:
        """Whether the first message of the channel is handled with those before it."""
        return self._chooser.joins()

    def _call_back(self, address: str, call: Message) -> None:
        answer, error = call_back(self.callbacks[address], call)
        if error is not None:
            self.managers.raised_in[manager_of(address)] += 1
        if answer is not None:
            self._send(address, RM_PROXY, answer)
        elif isinstance(error, Exception):
            # The resource manager's own fault, and kept for it.
            self.callback_errors.append(error)
        elif error is not None:
            raise error

    def _carry_out(self, address: str, effect: Effect) -> None:
        match effect:
            case Send():
                self._send(address, effect.to, effect.message)
            case CallRm():
                self._send(address, effect.callback, effect.call)
            case SetTimer():
                envelope = self._envelope(TIMER, effect.message)
                self.timers.arm(address, effect.name, effect.due_ns, envelope)
            case CancelTimer():
                self.timers.cancel(address, effect.name)
            case StopCore():
                raise self._raised[0]
            case StartMachine():
                self._stop(effect.address)
                self._dead.discard(effect.address)
                self.machines[effect.address] = self.topology.build(effect.kind, effect.arguments)
            case StopMachine():
                self._stop(effect.address)
            case Log():
                self.lines.append(effect.text)

    def _stop(self, address: str) -> None:
        self.machines.pop(address, None)
        self.callbacks.pop(address, None)
        self._followers.pop(address, None)
        for channel in [channel for channel in self.channels if channel[1] == address]:
            for _, envelope in self.channels.pop(channel):
                # A caller must not wait for a machine that is gone.
                self._decline(envelope)
        self.timers.cancel_all(address)

    def _decline(self, envelope: Envelope) -> None:
        """Refuse the question of a caller whose machine has failed."""
        answer = refusal_of(envelope)
        if answer is not None:
            declined = Envelope(GATEWAY, answer.message, envelope.cause, envelope.stimulus)
            self.put((GATEWAY, answer.to), declined)

    def _send(self, sender: str, to: str, message: Message) -> None:
        # To an address without a receiver nothing is sent, as on threads.
        if to in self.machines or to in self.callbacks or self._is_outside(to):
            self.put((sender, to), self._envelope(sender, message))

    def _is_outside(self, address: str) -> bool:
        return address == GATEWAY or is_reply(address) or address in self._followers

    def _envelope(self, sender: str, message: Message) -> Envelope:
        assert self._at is not None
        return Envelope(sender, message, *self._at)

    def put(self, channel: Channel, envelope: Envelope) -> None:
        queue = self.channels.get(channel)
        if queue is None:
            queue = self.channels[channel] = deque()
        queue.append((next(self._sent), envelope))

    # -- the door

    def _post(self, address: str, message: Message, stimulus: str) -> None:
        """Send a call from outside, or from inside a callback, which is then the sender.

        All calls share one channel, so they keep the order in which they were made.
        """
        if self._at is None:
            envelope = Envelope(GATEWAY, message, Cause(GATEWAY, 0), stimulus)
        else:
            envelope = Envelope(self._at[0].mailbox, message, *self._at)
        # Failed and not replaced yet: the question is refused at once.
        if address in self._dead:
            self._decline(envelope)
        else:
            # All calls are one sender, so their order is kept.
            self.put((GATEWAY, address), envelope)

    def _await_answer(self, post: Callable[[str], None], stimulus: str) -> Message:
        if self._at is not None:
            raise WouldBlock(
                f"{stimulus} waits for the core and was called from inside it: call it from "
                "another thread, or after the callback has returned"
            )
        reply_to = reply_address(next(self._reply_numbers))
        post(reply_to)
        while reply_to not in self._replies:
            if not self.step():
                raise NoReply(f"nobody answered {stimulus}")
        return self._replies.pop(reply_to)

    def _go_on(self) -> None:
        """Nothing is handled before the program settles."""

    def _await_room(self, backlog: Backlog) -> None:
        while self._at is None and backlog.is_full:
            # Inside a callback nobody waits.
            if not self.step():
                raise NoReply("everything was handled, and the backlog is full")

    def _check_former(self, rm_id: str) -> None:
        """Do nothing: a simulated call always returns."""

    def _open_callback(self, address: str, callback: si.ResourceManagerCallback) -> None:
        assert is_callback(address)
        self.callbacks[address] = callback

    def _open_follower(self, address: str, follower: Follower) -> None:
        self._followers[address] = follower

    def _close_callback(self, address: str) -> None:
        self._stop(address)

    def check_running(self) -> None:
        """Do nothing: a simulated core runs from the moment it is made."""

    def states(self) -> dict[str, dict[str, Any]]:
        """Return the state of every machine, by address."""
        return {
            address: machine.canonical_state() for address, machine in sorted(self.machines.items())
        }
