"""What the core did in drawn worlds when they were recorded, to be compared with what it does now.

Oracles know rules. What no rule of theirs decides, such as which of two allowed nodes an ask gets
or how a refusal is worded, they let pass; a change of it shows here. So a change of behaviour that
nobody meant is found, and one that was meant is recorded anew, with the commit that makes it.

Of each thing that can be seen from outside two bytes of a digest are kept: enough to name the first
that is different, and not what it was. `lab baseline show` prints what is seen of a world, with the
version before the change and the one after it.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from yunikorn_actors.errors import CoreError
from yunikorn_actors.lab.fan_out import RUNS_IN_SHARE
from yunikorn_actors.lab.run_schedule import explore
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.sights import TURNS, WIDTH, Sight, Watched
from yunikorn_actors.lab.swarm.failing_policies import WHERE, WHERE_FOLDS
from yunikorn_actors.lab.swarm.small_constants import made_small
from yunikorn_actors.lab.swarm.swarm_runs import Plan
from yunikorn_actors.lab.swarm.world_parts import RESTART
from yunikorn_actors.version import VERSION

T = TypeVar("T")
PACKAGED: Final = Path(__file__).parent / "baseline.msgpack"
SEED: Final = 0
"""Of the worlds that are recorded; those of `lab swarm` begin with seed 1."""
RUNS: Final = 400
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


def seen_in(number: int, seed: int = SEED) -> list[Sight]:
    """Play a world, and return what can be seen of it."""
    policies = _FAILING[number % _FAILS_EACH] if number % _FAILS_EACH < len(_FAILING) else ""
    run = Plan(seed=seed, policies=policies).drawn(number)
    settings = run.case.scenario.settings
    watched = Watched(number, settings, begins_again=RESTART in run.parts)
    with made_small(Draw(_OF_CONSTANTS, number)) if _has_small(number) else nullcontext():
        outcome = explore(run.case, run.schedule(), watched.checkers)
    if outcome.ok:
        # Its core has a thread, which would see bounds come and go.
        watched.at_the_front_door()
    end = "" if outcome.violation is None else outcome.violation.kind
    return [Sight(WORLD, run.case.text), *watched.sights, Sight("the end", end)]


def digests_of(sights: Sequence[Sight]) -> bytes:
    return b"".join(it.digest() for it in sights)


def _has_small(number: int) -> bool:
    """Whether bounds that nobody can set are small: in half of the worlds of each turn."""
    return number % (2 * TURNS) >= TURNS


class Baseline(Struct, frozen=True, kw_only=True):
    """The digests of worlds, by their numbers from 1 on."""

    version: str
    """Of the package that they were recorded with."""
    seed: int
    worlds: tuple[bytes, ...]

    def write(self, path: Path) -> None:
        path.write_bytes(msgspec.msgpack.encode(self))

    def compare(self, number: int) -> "Change | None":
        """Play a world again; return the first thing that is different, if one is."""
        before, sights = self.worlds[number - 1], seen_in(number, self.seed)
        now = digests_of(sights)
        if before == now:
            return None
        place = next(
            at for at in range(len(sights) + 1)
            if before[at * WIDTH : (at + 1) * WIDTH] != now[at * WIDTH : (at + 1) * WIDTH]
        )  # fmt: skip
        what = str(sights[place]) if place < len(sights) else "nothing more"
        return Change(number=number, place=place + 1, sight=what)


class Change(Struct, frozen=True, kw_only=True):
    """A world in which the core does something else than when it was recorded."""

    number: int
    place: int
    """Which of the things that are seen is the first that is different, from 1 on."""
    sight: str
    """What is seen there now."""


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


def shares(runs: int, before: Baseline | None = None) -> Iterator[Share]:
    for first in range(1, runs + 1, RUNS_IN_SHARE):
        yield Share(range(first, min(first + RUNS_IN_SHARE, runs + 1)), before)


def record(share: Share) -> list[bytes]:
    return [digests_of(seen_in(number)) for number in share.numbers]


def compare(share: Share) -> list[Change | None]:
    assert share.before is not None
    return [share.before.compare(number) for number in share.numbers]


Doer = Callable[[Callable[[Share], list[T]], Iterable[Share]], Iterator[list[T]]]
"""Plays shares of worlds, here or in other processes."""


def recorded(runs: int, do: Doer[bytes]) -> Baseline:
    worlds = tuple(it for some in do(record, shares(runs)) for it in some)
    return Baseline(version=VERSION, seed=SEED, worlds=worlds)


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
    for some in do(compare, shares(min(runs, len(before.worlds)), before)):
        worlds += len(some)
        changes += (it for it in some if it is not None)
        took_s = time.perf_counter() - begun
        if seconds is not None and took_s > seconds:
            break
    return Compared(version=before.version, worlds=worlds, seconds=took_s, changes=tuple(changes))
