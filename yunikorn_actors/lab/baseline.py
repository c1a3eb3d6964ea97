"""What the core did in drawn worlds when they were recorded, to be compared with what it does now.

Oracles know rules. What no rule of theirs decides, such as which of two allowed nodes an ask gets
or how a refusal is worded, they let pass; a change of it shows here. So a change of behaviour that
nobody meant is found, and one that was meant is recorded anew, with the commit that makes it.

Of each thing that can be seen two bytes of a digest are kept: enough to name the first that is
different, and not what it was. `lab baseline show` prints what is seen of a world, with the version
before the change and the one after it. What is seen from outside is kept apart from what goes on
inside: a change inside alone is a refactoring, or a defect that did no harm there.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from yunikorn_actors.drivers.simulator.simulator import Checker
from yunikorn_actors.errors import CoreError
from yunikorn_actors.lab.fan_out import RUNS_IN_SHARE
from yunikorn_actors.lab.observed_run import TURNS, WIDTH, Observation, Watched, can_be_seen
from yunikorn_actors.lab.run_schedule import Outcome, explore
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.swarm.drawn import Drawn
from yunikorn_actors.lab.swarm.failing_policies import WHERE, WHERE_FOLDS
from yunikorn_actors.lab.swarm.small_constants import made_small
from yunikorn_actors.lab.swarm.swarm_runs import Plan
from yunikorn_actors.lab.swarm.world_parts import RESTART
from yunikorn_actors.version import VERSION

T = TypeVar("T")
PACKAGED: Final = Path(__file__).parent / "baseline.msgpack"
SEED: Final = 0
"""Of the worlds that are recorded; those of `lab swarm` begin with seed 1."""
WORLDS: Final = 400
"""So many are chosen, if nobody says how many."""
_FAILING: Final = (WHERE, WHERE_FOLDS)
_FAILS_EACH: Final = 25
"""In so many worlds policies fail in one, and in another one policies that remember something."""
_OF_CONSTANTS: Final = 7
"""The seed of which bounds are small."""
BYTES_MAX: Final = 16 << 20
WORLD: Final = "the world"
"""What is seen first: where it is different, worlds are drawn in another way than before."""


class BadBaseline(CoreError, ValueError):
    """A file is no baseline, or one that this version cannot compare with."""


class Seen(NamedTuple):
    outside: list[Observation]
    inside: list[Observation]


def drawn_world(number: int, seed: int = SEED) -> Drawn:
    """Draw a world; in some policies fail."""
    policies = _FAILING[number % _FAILS_EACH] if number % _FAILS_EACH < len(_FAILING) else ""
    return Plan(seed=seed, policies=policies).drawn(number)


def play_drawn(run: Drawn, checkers: tuple[Checker, ...] = ()) -> Outcome:
    """Play a world, in many with small bounds."""
    with made_small(Draw(_OF_CONSTANTS, run.number)) if _has_small(run.number) else nullcontext():
        return explore(run.case, run.schedule(), checkers)


def watched(number: int, seed: int = SEED) -> Seen:
    """Play a world, and return what can be seen of it."""
    run = drawn_world(number, seed)
    settings = run.case.scenario.settings
    watched = Watched(number, settings, begins_again=RESTART in run.parts)
    outcome = play_drawn(run, watched.checkers)
    if outcome.ok:
        # Its core has a thread, which would see bounds come and go.
        watched.at_the_front_door()
    end = "" if outcome.violation is None else outcome.violation.kind
    outside = [Observation(WORLD, run.case.text), *watched.sights, Observation("the end", end)]
    return Seen(outside, watched.inside)


def seen_in(number: int, seed: int = SEED) -> list[Observation]:
    """Play a world, and return what can be seen of it from outside."""
    return watched(number, seed).outside


def digests_of(sights: Sequence[Observation]) -> bytes:
    return b"".join(it.digest() for it in sights)


def _has_small(number: int) -> bool:
    """Whether bounds that nobody can set are small: in half of the worlds of each turn."""
    return number % (2 * TURNS) >= TURNS


class Digests(Struct, frozen=True, array_like=True):
    """Those of one world."""

    outside: bytes
    inside: bytes


def digests_of_world(number: int, seed: int = SEED) -> Digests:
    return Digests(*map(digests_of, watched(number, seed)))


class Change(Struct, frozen=True, kw_only=True):
    """A world in which the core does something else than when it was recorded."""

    number: int
    place: int
    """Which of the things that are seen is the first that is different, from 1 on."""
    sight: str
    """What is seen there now."""
    is_inside: bool = False
    """From outside all is as it was."""


class Baseline(Struct, frozen=True, kw_only=True):
    """The digests of worlds by their numbers, those first that show most."""

    version: str
    """Of the package that they were recorded with."""
    seed: int
    worlds: dict[int, Digests]

    def write(self, path: Path) -> None:
        path.write_bytes(msgspec.msgpack.encode(self))

    def compare(self, number: int) -> Change | None:
        """Play a world again; return the first thing that is different, if one is each time.

        A program at the front door has threads, and what it sends may go in one request or in two:
        so what differs is played once more. A change of the core is there each time.
        """
        change = self._difference(number)
        return change if change is None else self._difference(number)

    def _difference(self, number: int) -> Change | None:
        before, now = self.worlds[number], watched(number, self.seed)
        return _change(number, before.outside, now.outside) or _change(
            number, before.inside, now.inside, is_inside=True
        )


def _change(
    number: int, before: bytes, sights: Sequence[Observation], *, is_inside: bool = False
) -> Change | None:
    now = digests_of(sights)
    if before == now:
        return None
    place = next(
        at for at in range(len(sights) + 1)
        if before[at * WIDTH : (at + 1) * WIDTH] != now[at * WIDTH : (at + 1) * WIDTH]
    )  # fmt: skip
    what = str(sights[place]) if place < len(sights) else "nothing more"
    return Change(number=number, place=place + 1, sight=what, is_inside=is_inside)


def read_baseline(path: Path = PACKAGED) -> Baseline:
    """Read a file; raise BadBaseline if it is none."""
    remedy = "write one with `lab baseline write`"
    try:
        with path.open("rb") as file:
            data = file.read(BYTES_MAX + 1)
    except OSError as error:
        raise BadBaseline(f"{path}: {error.strerror}: {remedy}") from error
    if len(data) > BYTES_MAX:
        raise BadBaseline(f"{path} has more than {BYTES_MAX} bytes, so it is no baseline: {remedy}")
    try:
        return msgspec.msgpack.decode(data, type=Baseline)
    except msgspec.MsgspecError as error:
        raise BadBaseline(f"{path} is no baseline ({error}): {remedy}") from error


# -- many at a time


class Share(Struct, frozen=True):
    """Worlds that are played together; with a baseline they are compared with it."""

    numbers: Sequence[int]
    before: Baseline | None = None

    def __str__(self) -> str:
        return f"worlds {self.numbers[0]} to {self.numbers[-1]} of the baseline"


def shares(numbers: Sequence[int], before: Baseline | None = None) -> Iterator[Share]:
    """Divide worlds; each share has only its part of the baseline with it."""
    for first in range(0, len(numbers), RUNS_IN_SHARE):
        some = numbers[first : first + RUNS_IN_SHARE]
        part = before and replace(before, worlds={it: before.worlds[it] for it in some})
        yield Share(some, part)


def record(share: Share) -> list[Digests]:
    return [digests_of_world(number) for number in share.numbers]


def compare(share: Share) -> list[Change | None]:
    assert share.before is not None
    return [share.before.compare(number) for number in share.numbers]


Doer = Callable[[Callable[[Share], list[T]], Iterable[Share]], Iterator[list[T]]]
"""Plays shares of worlds, here or in other processes."""


def recorded(numbers: Sequence[int], do: Doer[Digests]) -> Baseline:
    digests = (it for some in do(record, shares(numbers)) for it in some)
    return Baseline(version=VERSION, seed=SEED, worlds=dict(zip(numbers, digests, strict=True)))


class Compared(Struct, frozen=True, kw_only=True):
    version: str
    worlds: int
    """How many were played."""
    seconds: float
    changes: tuple[Change, ...]


def compared(
    before: Baseline, runs: int, do: Doer[Change | None], seconds: float | None = None
) -> Compared:
    """Play so many worlds again, or as many as there is time for."""
    begun, took_s, worlds, changes = time.perf_counter(), 0.0, 0, list[Change]()
    seen = [number for number in before.worlds if can_be_seen(number)]
    for some in do(compare, shares(seen[:runs], before)):
        worlds += len(some)
        changes += (it for it in some if it is not None)
        took_s = time.perf_counter() - begun
        if seconds is not None and took_s > seconds:
            break
    return Compared(version=before.version, worlds=worlds, seconds=took_s, changes=tuple(changes))
