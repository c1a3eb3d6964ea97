"""The runs in which mutants are looked for, and which mutants each of them would touch."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from msgspec.structs import replace

from yunikorn_actors.drivers.simulator.choosers import Channel, Channels, oldest
from yunikorn_actors.drivers.simulator.simulator import Checker
from yunikorn_actors.lab.case import PACKAGE, Case, parse_case
from yunikorn_actors.lab.harness import Schedule, World
from yunikorn_actors.lab.mutants.mutant import Mutant
from yunikorn_actors.lab.mutants.touching import Watch
from yunikorn_actors.lab.oracles.run_oracles import oracles
from yunikorn_actors.lab.run_schedule import Outcome, explore, play, write
from yunikorn_actors.lab.schedules.faults import USUAL_FAULTS, Faulty
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.tapes.tape import Entry, Tape
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
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


EVENTS_MAX: Final = 2_000
"""The cases are small: what goes on for longer never ends."""
CASES: Final = PACKAGE / "lab/cases"
UNDISTURBED: Final = "undisturbed"
_FAULTS: Final = tuple(kind for kind in USUAL_FAULTS if kind != "join")
"""Joining makes long tapes, and no mutant here is about it."""
STRATEGIES: Final[dict[str, tuple[int | None, tuple[str, ...]]]] = {
    "held": (None, ()),
    "faults": (0, _FAULTS),
    "held, faults": (None, _FAULTS),
    "held, timers": (None, ("fire",)),
    "late": (0, ("confirm",)),
    "proposals": (0, ("propose",)),
    "faults, proposals": (0, ("propose", "propose", "confirm", "drain", "shrink", "fire")),
}
"""How a run is disturbed: by how many deviations, if not by one or two, and by which faults."""
_ALONE: Final = ("held", "faults", "faults", "held, faults", "held, timers", "late")
_DRAWN: Final[dict[str, tuple[str, ...]]] = {
    "proposing": (*_ALONE, "faults", "proposals", "faults, proposals", "faults, proposals"),
    "fused": _ALONE,
}
"""Where planning is fused with the rest, nothing is proposed."""
_FUSED_SHARE: Final = 0.25
"""Less can come in between there, so fewer runs are given to it."""


class Try(NamedTuple):
    """One run: what is played, and how it is disturbed."""

    case: Case
    length: int = 0
    """How many messages the undisturbed run of the case has."""
    number: int = 0
    strategy: str = UNDISTURBED
    touched: frozenset[str] = frozenset()
    """The mutants that make a difference somewhere in it."""


class Tries:
    """The same runs for all mutants: first each case undisturbed, then what is drawn.

    Each is played once on the core as it is, when it is first asked for.
    """

    def __init__(self, mutants: Sequence[Mutant], seed: int, runs: int) -> None:
        self._watch = Watch(mutants)
        self._seed = seed
        self._cases = cases()
        self._count = len(self._cases) + runs
        self._played: list[Try] = []

    def __iter__(self) -> Iterator[Try]:
        for index in range(self._count):
            if index == len(self._played):
                self._played.append(self._watched(self._next()))
            yield self._played[index]

    def _next(self) -> Try:
        number = len(self._played) - len(self._cases) + 1
        if number < 1:
            return Try(self._cases[len(self._played)])
        draw = Draw(-self._seed, number)
        topology: TopologyName = "fused" if draw.chance(_FUSED_SHARE) else "proposing"
        near = draw.one_of([it for it in self._undisturbed if it.case.topology == topology])
        return near._replace(number=number, strategy=draw.one_of(_DRAWN[topology]))

    @property
    def _undisturbed(self) -> list[Try]:
        return self._played[: len(self._cases)]

    def _watched(self, tried: Try) -> Try:
        # Undisturbed runs are watched with the oracles, as these ask the core as well.
        checkers = () if tried.number else oracles()
        with self._watch.noting() as touched:
            outcome = self.play(tried, checkers)
        return tried._replace(length=tried.length or outcome.length, touched=frozenset(touched))

    def play(self, tried: Try, checkers: tuple[Checker, ...] = ()) -> Outcome:
        if not tried.number:
            return play(tried.case, tried.case.tape(), checkers)
        return explore(tried.case, self._schedule(tried), checkers)

    def tape(self, tried: Try, checkers: tuple[Checker, ...] = ()) -> Tape:
        """Write down what is played."""
        if not tried.number:
            return tried.case.tape()
        return write(tried.case, self._schedule(tried), checkers)

    def _schedule(self, tried: Try) -> Schedule:
        """Make the schedule of a run; the same number gives the same schedule."""
        draw, length = Draw(self._seed, tried.number), tried.length
        deviations, faults = STRATEGIES[tried.strategy]
        schedule = Held(draw, length, deviations)
        return Faulty(schedule, draw, faults, length) if faults else schedule


def cases() -> tuple[Case, ...]:
    """Return the cases of the package, on each topology."""
    files = sorted(CASES.glob("*.yaml"))
    found = (_case(file, topology) for topology in TOPOLOGIES for file in files)
    return tuple(replace(case, events_max=EVENTS_MAX) for case in found)


def _case(file: Path, topology: TopologyName) -> Case:
    return parse_case(file.read_text("utf-8"), file.relative_to(PACKAGE).as_posix(), topology)
