"""Looks for a mutant: plays small cases with the mistake in force until an oracle speaks up.

The first runs are undisturbed, one of each case. Then deviations are drawn: messages that are held,
faults, or an order that is drawn throughout. Only cases that come to the edited function can find
it, so most runs are given to those; which they are is seen once, on the core as it is.
"""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from yunikorn_actors.lab.case import Case, read_case
from yunikorn_actors.lab.draw import Draw
from yunikorn_actors.lab.fan_out import FanOut, Processes
from yunikorn_actors.lab.faults import FAULTS, Faulty
from yunikorn_actors.lab.mutants.corpus import BY_ID
from yunikorn_actors.lab.mutants.mutant import Mutant, function_of
from yunikorn_actors.lab.oracles import oracles
from yunikorn_actors.lab.play import Violation, explore, play, write
from yunikorn_actors.lab.shrink import Shrinker
from yunikorn_actors.lab.strategies import Uniform
from yunikorn_actors.lab.tape import Entry
from yunikorn_actors.lab.world import Schedule, World
from yunikorn_actors.machines.topology import TOPOLOGIES
from yunikorn_actors.messages.scheduling import ProposeAllocations
from yunikorn_actors.sim.choosers import Channel, Channels, oldest

CASES: Final = Path(__file__).parent.parent / "cases"
RUNS_MAX: Final = 400
"""So many disturbed runs a mutant gets before it counts as not found."""
NEAR_SHARE: Final = 0.8
"""This part of them is given to cases that come to the edited function undisturbed."""


class Hunted(Struct, frozen=True, kw_only=True):
    """What came of looking for one mutant."""

    id: str = ""
    found: bool
    strategy: str = ""
    runs: int = 0
    seconds: float = 0.0
    deviations: int = 0
    stimuli: int = 0
    messages: int = 0
    violation: str = ""
    tape: str = ""


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


UNDISTURBED: Final = "undisturbed"
STRATEGIES: Final = ("quiet, faults", "quiet, faults", "held, faults", "held, faults", "held")
_ORDERS: Final[dict[str, Callable[[Draw, int], Schedule]]] = {
    "quiet": lambda draw, length: Held(draw, length, 0),
    "held": Held,
    "uniform": lambda draw, _: Uniform(draw),
}


class _Ground(NamedTuple):
    """A case, and what is known of its undisturbed run on the core as it is."""

    case: Case
    reached: set[CodeType]
    length: int
    """How many messages it has."""


class _Try(NamedTuple):
    """One run: what is played, and how it is disturbed."""

    ground: _Ground
    strategy: str = UNDISTURBED
    number: int = 0


class Hunter:
    """Looks for one mutant after the other, with the same cases and the same draws."""

    def __init__(self, seed: int = 1, runs: int = RUNS_MAX) -> None:
        self._seed = seed
        self._runs = runs
        self._grounds = tuple(_explored(case) for case in cases())

    def hunt(self, mutant: Mutant) -> Hunted:
        begun, number = time.perf_counter(), 0
        near = self._near(mutant)
        with mutant.applied():
            found = Hunted(found=False)
            for tried in self._tries(near):
                number += 1
                violation = self._play(tried)
                if violation is not None:
                    found = self._shrunk(tried, violation)
                    break
        return replace(found, id=mutant.id, runs=number, seconds=time.perf_counter() - begun)

    def _near(self, mutant: Mutant) -> tuple[_Ground, ...]:
        code = function_of(mutant.where).__code__
        return tuple(ground for ground in self._grounds if code in ground.reached)

    def _tries(self, near: tuple[_Ground, ...]) -> Iterator[_Try]:
        yield from (_Try(ground) for ground in self._grounds)
        for number in range(1, self._runs + 1):
            draw = Draw(-self._seed, number)
            among = near if near and draw.chance(NEAR_SHARE) else self._grounds
            yield _Try(draw.one_of(among), draw.one_of(STRATEGIES), number)

    def _play(self, tried: _Try) -> Violation | None:
        case = tried.ground.case
        if tried.strategy == UNDISTURBED:
            return play(case, case.tape(), oracles()).violation
        return explore(case, self._schedule(tried), oracles()).violation

    def _schedule(self, tried: _Try) -> Schedule:
        """Make the schedule of a run; the same number gives the same schedule."""
        draw, length = Draw(self._seed, tried.number), tried.ground.length
        schedule = _ORDERS[tried.strategy.partition(",")[0]](draw, length)
        if tried.strategy.endswith("faults"):
            return Faulty(schedule, draw, tuple(FAULTS), length)
        return schedule

    def _shrunk(self, tried: _Try, violation: Violation) -> Hunted:
        case = tried.ground.case
        tape = write(case, self._schedule(tried), oracles()) if tried.number else case.tape()
        shrinker = Shrinker(case, violation.kind, oracles)
        tape = shrinker.shrink(tape)
        outcome = shrinker.play(tape)
        assert outcome.violation is not None, "the tape gives another run than was explored"
        return Hunted(
            found=True,
            strategy=tried.strategy,
            deviations=len(tape.entries),
            stimuli=outcome.stimuli,
            messages=outcome.messages,
            violation=outcome.violation.text,
            tape=tape.line(),
        )


def cases() -> tuple[Case, ...]:
    """Return the cases of the package, on each topology."""
    files = sorted(CASES.glob("*.yaml"))
    return tuple(read_case(file, topology) for topology in TOPOLOGIES for file in files)


def _explored(case: Case) -> _Ground:
    reached: set[CodeType] = set()
    with _noting(reached):
        outcome = play(case, case.tape())
    return _Ground(case, reached, outcome.messages)


@contextmanager
def _noting(reached: set[CodeType]) -> Iterator[None]:
    """Note every function that is called meanwhile."""

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            reached.add(frame.f_code)

    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)


# -- several at a time


def hunt_all(ids: Sequence[str], seed: int, runs: int, jobs: int = 1) -> Iterator[Hunted]:
    """Look for these mutants, in so many processes; the results come in the order asked for."""
    quests = (_Quest(seed, runs, id_) for id_ in ids)
    if jobs <= 1:
        yield from map(_hunt, quests)
        return
    with FanOut(Processes(jobs)) as fan_out:
        yield from fan_out.each(_hunt, quests)


class _Quest(NamedTuple):
    seed: int
    runs: int
    id: str

    def __str__(self) -> str:
        return f"mutant {self.id}"


def _hunt(quest: _Quest) -> Hunted:
    return _hunter(quest.seed, quest.runs).hunt(BY_ID[quest.id])


@lru_cache(maxsize=1)
def _hunter(seed: int, runs: int) -> Hunter:
    return Hunter(seed, runs)
