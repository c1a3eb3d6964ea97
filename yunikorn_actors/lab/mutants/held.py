"""A schedule that stays close to first in, first out: most races need one or two deviations."""

from yunikorn_actors.drivers.simulator.choosers import Channel, Channels, oldest
from yunikorn_actors.lab.harness import World
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.tapes.tape import Entry
from yunikorn_actors.messages.scheduling import ProposeAllocations


class Held:
    """First in, first out, but for a few deviations: a message is held, or a step comes early."""

    watched: frozenset[str] | None = frozenset()

    def __init__(self, draw: Draw, length: int, count: int | None = None) -> None:
        self._draw = draw
        count = 1 + draw.number(2) if count is None else count
        self._moments = sorted((draw.number(length) for _ in range(count)), reverse=True)
        self._awaits_proposal = False
        """The next proposal is held: it is what anything else may overtake to good effect."""
        self._until: dict[int, int] = {}
        """Messages that wait, by the number of their sending, each for so many events."""
        self._until_step: dict[int, str] = {}
        """Those that wait until the case has gone on from this step."""
        self._events = 0

    def choose(self, world: World) -> Channel | Entry | None:
        self._events += 1
        channels, step = world.deliverable(), world.next_step
        if self._moments and self._moments[-1] <= self._events:
            self._moments.pop()
            if self._draw.chance(0.3) and len(world.script) > 1 and step:
                return Entry("do", self._draw.one_of(tuple(world.script)).name)
            self._awaits_proposal = self._draw.chance(0.5)
            if not self._awaits_proposal and channels:
                self._hold(channels, step)
        free = self._free(channels, step)
        if self._awaits_proposal and _proposing(free):
            self._awaits_proposal = False
            self._hold(_proposing(free), step)
            free = self._free(channels, step)
        if free:
            return oldest(free)
        return None if step or not channels else oldest(channels)

    def _hold(self, channels: Channels, step: str) -> None:
        number = channels[oldest(channels)][0][0]
        if step and self._draw.chance(0.6):
            self._until_step[number] = step
        else:
            self._until[number] = self._events + 1 + self._draw.number(12)

    def _free(self, channels: Channels, step: str) -> Channels:
        if not self._until and not self._until_step:
            return channels
        return {
            channel: queue
            for channel, queue in channels.items()
            if self._until.get(queue[0][0], 0) <= self._events
            and self._until_step.get(queue[0][0], "-") != step
        }

    def happened(self, event: str) -> None:
        """Nothing waits for a certain event."""

    def confirmation(self, _: str) -> str:
        return ""


def _proposing(channels: Channels) -> Channels:
    """Leave the channels from which a proposal comes next."""
    return {
        channel: queue
        for channel, queue in channels.items()
        if isinstance(queue[0][1].message, ProposeAllocations)
    }
