"""Schedules that explore: each is made for one run, from the number of the run.

What is drawn only once for a run makes runs differ more than draws at each event would: how soon
the case goes on, or who comes before whom.
"""

from collections.abc import Callable
from math import comb
from typing import Final, NamedTuple

from yunikorn_actors.drivers.simulator.choosers import Channel, Channels
from yunikorn_actors.lab.harness import Schedule, World
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.tapes.tape import Entry

_HASTE: Final = (0.0, 0.03, 0.1, 0.3)
"""How often the case goes on before all is quiet; each run draws one."""
_CASE: Final = ("", "the case")
"""What stands for the case where it takes part like a channel."""


class Lot(NamedTuple):
    """All that determines a schedule of one case."""

    number: int
    """The number of the run."""
    draw: Draw
    length: int
    """How many messages the undisturbed run has."""
    depth: int


class Forgetful:
    """Chooses without looking back, and leaves confirmations as they are."""

    watched: frozenset[str] | None = frozenset()

    def happened(self, event: str) -> None:
        """Nothing waits for a certain event."""

    def confirmation(self, _: str) -> str:
        return ""


class Uniform(Forgetful):
    """Every channel has the same chance."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._haste = draw.one_of(_HASTE)

    def choose(self, world: World) -> Channel | Entry | None:
        channels = tuple(world.deliverable())
        if not channels:
            return None
        if world.next_step and self._draw.chance(self._haste):
            return Entry("do", world.next_step)
        return self._draw.one_of(channels)


class Pct(Forgetful):
    """Probabilistic concurrency testing: the first in an order of precedence that is drawn once.

    The case takes part like a channel. At `depth` - 1 events, drawn as well, the one that would
    come first comes last from there on. Strict precedence may starve a channel for good, so after
    as many events as the undisturbed run has, every channel has the same chance.
    """

    def __init__(self, draw: Draw, length: int, depth: int) -> None:
        self._draw = draw
        self._fair = Uniform(draw)
        self._left = length
        self._demotions = {draw.number(length): rank for rank in range(depth - 1)}
        """How many events are left at each demotion, and the precedence that it leads to."""
        self._precedence: dict[Channel, float] = {}

    def choose(self, world: World) -> Channel | Entry | None:
        if not self._left:
            return self._fair.choose(world)
        self._left -= 1
        channels = tuple(world.deliverable())
        if not channels:
            return None
        taking_part = (*channels, _CASE) if world.next_step else channels
        first = self._first(taking_part)
        if self._left in self._demotions:
            self._precedence[first] = -1 - self._demotions[self._left]
            first = self._first(taking_part)
        return Entry("do", world.next_step) if first == _CASE else first

    def _first(self, channels: tuple[Channel, ...]) -> Channel:
        for channel in channels:
            if channel not in self._precedence:
                self._precedence[channel] = self._draw.share()
        return max(channels, key=self._precedence.__getitem__)


class Pos(Forgetful):
    """Partial order sampling: each message draws a precedence, and again when it loses a race.

    Only the order within a mailbox can matter, so those race that are under way to the same one.
    A message that was drawn low is not held back for good by it, and what does not race is not
    drawn again and again.
    """

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._haste = draw.one_of(_HASTE)
        self._precedence: dict[int, float] = {}
        """Of the messages under way, by the number of their sending."""

    def choose(self, world: World) -> Channel | Entry | None:
        channels = world.deliverable()
        if not channels:
            return None
        if world.next_step and self._draw.chance(self._haste):
            return Entry("do", world.next_step)
        first = max(channels, key=lambda channel: self._of(channels[channel][0][0]))
        for channel, queue in channels.items():
            if channel[1] == first[1]:
                self._precedence.pop(queue[0][0])
        return first

    def _of(self, number: int) -> float:
        if number not in self._precedence:
            self._precedence[number] = self._draw.share()
        return self._precedence[number]


class Delaying(Forgetful):
    """First in, first out, but for messages that are delayed at certain events.

    What is delayed is the message that would be next. A short delay puts it behind all that is
    under way. A long one also puts it behind the next step of the case and all that comes of that.
    """

    def __init__(self, delays: dict[int, bool]) -> None:
        """Each delay is identified by the number of its event, and by whether it is long."""
        self._delays = delays
        self._events = 0
        self._places: dict[int, float] = {}
        """Where messages with a short delay stand, among the numbers of the others."""
        self._behind: dict[int, str] = {}
        """Messages with a long delay, each with the step it waits for."""

    def choose(self, world: World) -> Channel | Entry | None:
        channels = world.deliverable()
        free = self._free(channels, world.next_step)
        if not free:
            return None
        is_long = self._delays.get(self._events)
        self._events += 1
        if is_long is not None:
            self._delay(free, world, is_long=is_long)
            free = self._free(channels, world.next_step)
        return min(free, key=lambda it: self._place(free[it][0][0])) if free else None

    def _delay(self, free: Channels, world: World, *, is_long: bool) -> None:
        number = min((queue[0][0] for queue in free.values()), key=self._place)
        if is_long and world.next_step:
            self._behind[number] = world.next_step
        else:
            last = max(queue[-1][0] for queue in world.channels.values())
            self._places[number] = last + 0.5

    def _free(self, channels: Channels, next_step: str) -> Channels:
        """Leave what is not delayed; without that, what only waited for a step that was done."""
        free = {it: queue for it, queue in channels.items() if queue[0][0] not in self._behind}
        return free or {
            it: queue for it, queue in channels.items() if self._behind[queue[0][0]] != next_step
        }

    def _place(self, number: int) -> float:
        return self._places.get(number, number)


def _delaying(lot: Lot) -> Delaying:
    """Make the schedule that has this number among all with at most `depth` delays."""
    number = lot.number
    for size in range(lot.depth + 1):
        count = _count(lot.length, size)
        if number < count:
            which, manner = divmod(number, 1 << size)
            events = _combination(which, lot.length, size)
            return Delaying({event: bool(manner >> n & 1) for n, event in enumerate(events)})
        number -= count
    raise IndexError(lot.number)


def _count(length: int, size: int) -> int:
    """Count the schedules with so many delays: at which events, and each short or long."""
    return comb(length, size) << size


def _combination(number: int, length: int, size: int) -> list[int]:
    """Return the combination of this number, in the order of their greatest elements."""
    chosen = []
    for left in range(size, 0, -1):
        event = next(it for it in range(length - 1, -1, -1) if comb(it, left) <= number)
        number -= comb(event, left)
        chosen.append(event)
    return chosen


STRATEGIES: Final[dict[str, Callable[[Lot], Schedule]]] = {
    "uniform": lambda lot: Uniform(lot.draw),
    "pct": lambda lot: Pct(lot.draw, lot.length, lot.depth),
    "pos": lambda lot: Pos(lot.draw),
    "delay": _delaying,
}
"""Each makes the schedule of one run."""
DEEP: Final = ("pct", "delay")
"""Those that have a depth."""
EXHAUSTIVE: Final = "exhaustive"
"""Plays all orders: each run follows from those before it, so it is not made by its number."""
SYSTEMATIC: Final = ("delay", EXHAUSTIVE)
"""Those that draw nothing: their runs have no faults, which are drawn, and come to an end."""


def schedules_of(strategy: str, length: int, depth: int) -> int | None:
    """Count the schedules of a strategy that has numbered them all; None for the others."""
    if strategy != "delay":
        return None
    return sum(_count(length, size) for size in range(depth + 1))
