"""Plays all orders of a case that differ in what some mailbox gets; what is right then is proved.

Two deliveries to different mailboxes commute, unless one causes the other: a machine is
deterministic and shares nothing, so its state is what it received, in order, and nothing inside of
it has to be looked at. Of all runs that differ only in which mailbox went first, one is played
(dynamic partial order reduction with source sets and sleep sets, Abdulla et al., POPL 2014). So no
state is looked at twice because it was reached in another order.

What does not communicate by messages is not a machine: callbacks, callers and the case itself may
share anything, so they count as one mailbox. Time, and machines that start or stop, are seen by
all.
"""

import hashlib
from collections.abc import Callable, Sequence
from typing import Final

from yunikorn_actors.drivers.simulator.choosers import Channel
from yunikorn_actors.drivers.simulator.simulator import Checker
from yunikorn_actors.lab.case import Case
from yunikorn_actors.lab.harness import Redundant, Schedule, World
from yunikorn_actors.lab.run_schedule import Outcome, explore
from yunikorn_actors.lab.schedules.strategies import Forgetful
from yunikorn_actors.lab.tapes.tape import Entry
from yunikorn_actors.messages.base import is_reply

_CASE: Final[Channel] = ("", "the case")
"""Who goes on with the case: it takes part like a channel."""
_OUTSIDE: Final = ""
"""The mailbox of all that is no machine."""


class _Moment:
    """A state on the way that was taken last, and what is still to be tried from it."""

    def __init__(self, enabled: tuple[Channel, ...], asleep: dict[Channel, bool]) -> None:
        self.enabled = enabled
        self.asleep = asleep
        """What leads to nothing new from here; each with whether all see it happen."""
        self.wanted: dict[Channel, None] = {}
        self.chosen = next((it for it in enabled if it not in asleep), None)
        if self.chosen is not None:
            self.wanted[self.chosen] = None

    def turn(self) -> bool:
        """Choose the next that is wanted and was not tried; False if there is none."""
        self.chosen = next((it for it in self.wanted if it not in self.asleep), None)
        return self.chosen is not None

    def want(self, channels: Sequence[Channel]) -> None:
        """See to it that one of these is tried: each is the beginning of the same."""
        if any(it in self.wanted or it in self.asleep for it in channels):
            return
        first = next((it for it in channels if it in self.enabled), None)
        self.wanted.update(dict.fromkeys(self.enabled if first is None else (first,)))


class _Event:
    """A delivery, or that the case goes on. A set of events is a number with a bit for each."""

    def __init__(self, channel: Channel, mailbox: str, needed: int) -> None:
        self.channel = channel
        self.mailbox = mailbox
        self.needed = needed
        """What must come before it: what caused it, what is before it in its channel, and so on."""
        self.past = 0
        """What comes before it in each order that is not another one, and itself."""
        self.is_seen_by_all = False

    def depends_on(self, other: "_Event") -> bool:
        return self.mailbox == other.mailbox or self.is_seen_by_all or other.is_seen_by_all


class _States:
    """Counts the different states that were passed.

    A state is known by what each mailbox received from whom, in order: as a number, the sum of a
    digest for each mailbox.
    """

    def __init__(self) -> None:
        self.passed: set[int] = set()
        self._told: dict[str, int] = {}
        self._sum = 0

    def start(self) -> None:
        self._told = {}
        self._sum = 0

    def tell(self, event: _Event) -> None:
        self._add(event.mailbox, event.channel)
        if event.is_seen_by_all:
            self._add("all", (str(self._sum), ""))
        self.passed.add(self._sum)

    def _add(self, mailbox: str, what: Channel) -> None:
        before = self._told.get(mailbox, 0)
        text = "\n".join((mailbox, *what, str(before))).encode()
        self._told[mailbox] = int.from_bytes(hashlib.blake2b(text, digest_size=16).digest(), "big")
        self._sum += self._told[mailbox] - before


class _Following(Forgetful):
    """Goes a way that was gone before."""

    def __init__(self, way: Sequence[Channel]) -> None:
        self._way = iter(way)

    def choose(self, world: World) -> Channel | Entry | None:
        return _choice(next(self._way, None), world)


def _choice(chosen: Channel | None, world: World) -> Channel | Entry | None:
    if chosen == _CASE:
        return Entry("do", world.next_step) if world.channels else None
    return chosen


class Descent(Forgetful):
    """One run: it follows the moments that there are, and appends new ones."""

    def __init__(self, moments: list[_Moment], states: _States) -> None:
        self._moments = moments
        self._states = states
        states.start()
        self._events: list[_Event] = []
        self._is_open = False
        """Whether the last event is not judged yet: only now is it known what came of it."""
        self._last_of: dict[Channel, int] = {}
        """The last event of each channel, as the set of what comes before it and itself."""
        self._answered = 0
        """The same of the last answer to a caller: the case waits for those."""
        self._sent: list[int] = []
        """For each event, the number of the last message that was sent before it."""
        self._machines: dict[str, object] = {}
        self._callbacks: dict[str, object] = {}
        self._now_ns = 0

    def choose(self, world: World) -> Channel | Entry | None:
        self.judge(world)
        enabled = (*world.channels, *((_CASE,) if world.next_step else ()))
        if not enabled:
            return None
        if len(self._events) == len(self._moments):
            self._moments.append(_Moment(enabled, self._asleep()))
        chosen = self._moments[len(self._events)].chosen
        if chosen is None:
            raise Redundant
        self._begin(world, chosen)
        return _choice(chosen, world)

    def _asleep(self) -> dict[Channel, bool]:
        """Return what was tried before the last event, and commutes with it."""
        if not self._events:
            return {}
        last = self._events[-1]
        before = self._moments[len(self._events) - 1].asleep
        return {
            channel: seen
            for channel, seen in before.items()
            if not seen and not last.is_seen_by_all and self._mailbox(channel) != last.mailbox
        }

    def _mailbox(self, channel: Channel) -> str:
        return channel[1] if channel[1] in self._machines else _OUTSIDE

    def _begin(self, world: World, channel: Channel) -> None:
        self._machines = dict(world.simulator.machines)
        self._callbacks = dict(world.simulator.callbacks)
        self._now_ns = world.simulator.now_ns
        self._sent.append(max((queue[-1][0] for queue in world.channels.values()), default=-1))
        needed = self._last_of.get(channel, 0)
        if channel == _CASE:
            needed |= self._answered
        else:
            needed |= self._cause(world.channels[channel][0][0])
        self._events.append(_Event(channel, self._mailbox(channel), needed))
        self._is_open = True

    def _cause(self, number: int) -> int:
        """Return the past of the event that sent a message: the last one before it was sent."""
        for event, sent in zip(reversed(self._events), reversed(self._sent[:-1]), strict=True):
            if sent < number:
                return event.past
        return 0

    def judge(self, world: World) -> None:
        """Now that the last event has happened, find the races that it was in."""
        if not self._is_open:
            return
        self._is_open = False
        index, event = len(self._events) - 1, self._events[-1]
        simulator = world.simulator
        event.is_seen_by_all = (
            simulator.now_ns != self._now_ns
            or simulator.machines != self._machines
            or simulator.callbacks != self._callbacks
        )
        self._states.tell(event)
        event.past = event.needed | 1 << index
        for other in range(index - 1, -1, -1):
            if event.depends_on(self._events[other]):
                if not event.past >> other & 1:
                    self._moments[other].want(self._beginnings(other, index))
                event.past |= self._events[other].past
        self._last_of[event.channel] = event.past
        if is_reply(event.channel[1]):
            self._answered = event.past

    def _beginnings(self, first: int, second: int) -> list[Channel]:
        """Return with what a run may begin that has the second of two events before the first."""
        apart = [
            index for index in range(first + 1, second) if not self._events[index].past >> first & 1
        ]
        found, before = [], 0
        for index in apart:
            if not self._events[index].past & before:
                found.append(self._events[index].channel)
            before |= 1 << index
        event = self._events[second]
        waits = any(event.depends_on(self._events[index]) for index in apart)
        if not event.needed & before and not waits:
            found.append(event.channel)
        return found

    @property
    def way(self) -> tuple[Channel, ...]:
        return tuple(event.channel for event in self._events)

    def is_seen_by_all(self, index: int) -> bool:
        return index >= len(self._events) or self._events[index].is_seen_by_all


class Descents:
    """All runs of a case that have to be played, one after the other."""

    def __init__(self, case: Case, checkers: Callable[[], tuple[Checker, ...]]) -> None:
        self.is_exhausted = False
        self.orders = 0
        self.way: tuple[Channel, ...] = ()
        """What the last run chose."""
        self._case = case
        self._checkers = checkers
        self._moments: list[_Moment] = []
        self._states = _States()

    @property
    def states(self) -> int:
        return len(self._states.passed)

    def play(self) -> Outcome | None:
        """Play the next run; None if it leads to nothing new."""
        descent = Descent(self._moments, self._states)
        outcome = None
        try:
            outcome = explore(self._case, descent, self._checkers())
            self.orders += 1
        except Redundant:
            pass
        self.way = descent.way
        self._turn(descent)
        return outcome

    def again(self) -> Schedule:
        """Make a schedule that gives the last run."""
        return _Following(self.way)

    def _turn(self, last: Descent) -> None:
        """Go back to the last moment at which something is still to be tried."""
        while self._moments:
            moment = self._moments[-1]
            if moment.chosen is not None:
                moment.asleep[moment.chosen] = last.is_seen_by_all(len(self._moments) - 1)
            if moment.turn():
                return
            self._moments.pop()
        self.is_exhausted = True
